#pragma once
// A sequence's cached rows as bytes that outlive the session, and back, whatever the cache layouts.
//
// All numbers are little-endian: "tenonSEQ", u32 version, u32 layers that own rows, u64 fingerprint
// of the model, u64 rows; for each such layer the names of its planes' element formats (u64 length,
// bytes), i32 first, i32 oldest (see SavedRange); their rows, layer after layer; u64 checksum of
// everything before it.
#include <charconv>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "../cache/saved_rows.hpp"
#include "../core/checksum.hpp"
#include "../io/byte_reader.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline constexpr std::string_view saved_magic = "tenonSEQ";
inline constexpr std::uint32_t saved_version = 1;

inline std::string hexadecimal(std::uint64_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16);
  return std::string(digits, end.ptr);
}

// Calls fn(store, slot, RowSpec) for every layer that owns rows, in the order of layers, which no
// choice of caches changes.
template <class Kinds, class Bound, class Stores, class Fn>
void each_cached_layer(const Bound& bound, Stores& stores, Fn&& fn) {
  for (const auto& layer : bound.layers) {
    if (!layer.slot.owns) continue;
    Kinds::visit(layer.kind, [&](auto k) {
      constexpr auto at = static_cast<std::size_t>(Kinds::template store_of<k>);
      auto& store = *std::get<at>(stores);
      if constexpr (RowCache<std::remove_cvref_t<decltype(store)>>) {
        fn(store, layer.slot.index, bound.slots[at][static_cast<std::size_t>(layer.slot.index)]);
      } else {
        fail<RequestError>(
            "a sequence can be saved and restored when all its layers cache rows, a layer of this "
            "model keeps another state; feed the sequence again");
      }
    });
  }
}

template <class Store>
std::string_view element_name(const Store& store, std::size_t plane) {
  return FormatList<typename Store::Formats>::visit(
      store.tags()[plane], []<class F>(F) -> std::string_view { return F::name; });
}

class SavedWriter {
 public:
  explicit SavedWriter(std::vector<std::byte>& to) : to_(to) {}
  template <class T>
  void number(T value) {
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void text(std::string_view text) {
    number(std::uint64_t{text.size()});
    raw(std::as_bytes(std::span(text)));
  }
  void raw(std::span<const std::byte> bytes) {
    const std::size_t at = to_.size();
    to_.resize(at + bytes.size());
    if (!bytes.empty()) std::memcpy(to_.data() + at, bytes.data(), bytes.size());
  }

 private:
  std::vector<std::byte>& to_;
};

// What the head of a saved sequence says.
struct SavedHead {
  std::uint64_t layers = 0, rows = 0;
};
inline constexpr std::string_view saved_origin = "the saved sequence";

// Checks that `reader`, which then stands behind the head, holds a whole saved sequence of the
// model with this fingerprint.
inline SavedHead check_head(ByteReader& reader, std::span<const std::byte> saved,
                            std::uint64_t fingerprint) {
  const auto magic = std::as_bytes(std::span(saved_magic));
  if (saved.size() < magic.size() + 32 ||
      !std::equal(magic.begin(), magic.end(), reader.take(magic.size(), {"the mark"}).begin())) {
    fail<LoadError>("a saved sequence must start with \"", saved_magic, "\" and have at least ",
                    magic.size() + 32, " bytes, these ", saved.size(),
                    " bytes are something else; pass what save() returned");
  }
  const auto version = reader.number<std::uint32_t>({"the version"});
  if (version != saved_version) {
    fail<LoadError>("a saved sequence must have version ", saved_version, ", this one has ",
                    version, "; save it again with this version of the library");
  }
  std::uint64_t stated;
  std::memcpy(&stated, saved.data() + saved.size() - sizeof stated, sizeof stated);
  const std::uint64_t found = checksum(saved.first(saved.size() - sizeof stated));
  if (stated != found) {
    fail<LoadError>("a saved sequence must have the checksum it ends with, ", hexadecimal(stated),
                    ", its bytes have ", hexadecimal(found),
                    "; it is damaged or cut short, save it again");
  }
  SavedHead head;
  head.layers = reader.number<std::uint32_t>({"the number of layers"});
  const auto of = reader.number<std::uint64_t>({"the fingerprint"});
  if (of != fingerprint) {
    fail<RequestError>("a saved sequence must come from the model it is restored to, fingerprint ",
                       hexadecimal(fingerprint), ", it comes from one of fingerprint ",
                       hexadecimal(of), "; open the checkpoint that it was saved with");
  }
  head.rows = reader.number<std::uint64_t>({"the number of rows"});
  return head;
}

// Reads one layer's part of the head; LoadError or RequestError when it does not fit the store.
template <class Store>
SavedRange check_layer(ByteReader& reader, const Store& store, int layer, int slot,
                       const RowSpec& spec, int rows) {
  for (std::size_t plane = 0; plane < 2; ++plane) {
    const std::string_view theirs = reader.text({"the name of an element format"});
    const std::string_view ours = element_name(store, plane);
    if (spec.widths[plane] == 0 || theirs == ours) continue;
    fail<RequestError>("the ", plane == 0 ? "keys" : "values", " of cached layer ", layer,
                       " must be saved as ", ours, " like this session's, they are ",
                       printable(theirs), "; open the session with SessionOptions::cache set so");
  }
  SavedRange range;
  range.first = reader.number<std::int32_t>({"the rows kept for good"});
  range.oldest = reader.number<std::int32_t>({"the oldest row"});
  range.rows = rows;
  if (range.first < 0 || range.first > rows || range.oldest < 0 || range.oldest > rows) {
    fail<LoadError>(saved_origin, ": the rows of cached layer ", layer, " must lie in 0 to ", rows,
                    ", they are the first ", range.first, " and those from ", range.oldest,
                    " on; it is damaged, save it again");
  }
  if (!suffices(store, slot, spec, range)) {
    fail<RequestError>(
        "the cache of layer ", layer, " must get all rows that it may be asked for, of ", rows,
        " rows the saved sequence has the first ", range.first, " and those from ", range.oldest,
        " on; restore it with the cache policy that it was saved with");
  }
  return range;
}

}  // namespace detail

// The `rows` rows of a sequence, of all stores (a tuple of pointers) of a bound model.
template <class Kinds, class Bound, class Stores>
std::vector<std::byte> save_sequence(const Bound& bound, const Stores& stores, SeqId seq,
                                     int rows) {
  std::vector<std::byte> saved;
  detail::SavedWriter writer(saved);
  writer.raw(std::as_bytes(std::span(detail::saved_magic)));
  writer.number(detail::saved_version);
  std::uint32_t layers = 0;
  std::size_t total = 0;
  detail::each_cached_layer<Kinds>(
      bound, stores, [&](const auto& store, int slot, const RowSpec& spec) {
        const SavedRange range = rows_to_save(store, seq, slot, spec, rows);
        total = checked_add(total, saved_bytes(store, slot, range));
        ++layers;
      });
  writer.number(layers);
  writer.number(bound.fingerprint);
  writer.number(static_cast<std::uint64_t>(rows));
  detail::each_cached_layer<Kinds>(
      bound, stores, [&](const auto& store, int slot, const RowSpec& spec) {
        const SavedRange range = rows_to_save(store, seq, slot, spec, rows);
        for (std::size_t plane = 0; plane < 2; ++plane)
          writer.text(detail::element_name(store, plane));
        writer.number(std::int32_t{range.first});
        writer.number(std::int32_t{range.oldest});
      });
  std::size_t at = saved.size();
  saved.reserve(at + total + sizeof(std::uint64_t));
  saved.resize(at + total);
  detail::each_cached_layer<Kinds>(
      bound, stores, [&](const auto& store, int slot, const RowSpec& spec) {
        const SavedRange range = rows_to_save(store, seq, slot, spec, rows);
        save_rows(store, seq, slot, range, saved.data() + at);
        at += saved_bytes(store, slot, range);
      });
  writer.number(checksum(saved));
  return saved;
}

// Fills the empty sequence `seq` and returns its rows, at most `context`. LoadError: the bytes are
// no saved sequence, or damaged; RequestError: another model, element format or bounded cache;
// CapacityError: no room. The stores are then as before.
template <class Kinds, class Bound, class Stores>
int restore_sequence(const Bound& bound, Stores& stores, SeqId seq, int context,
                     std::span<const std::byte> saved) {
  ByteReader reader(saved, detail::saved_origin);
  const detail::SavedHead head = detail::check_head(reader, saved, bound.fingerprint);
  if (head.rows > static_cast<std::uint64_t>(context)) {
    fail<CapacityError>("a sequence has room for Limits::context = ", context,
                        " rows, the saved one has ", head.rows,
                        "; open the session with a longer context");
  }
  const int rows = static_cast<int>(head.rows);
  std::vector<SavedRange> ranges;
  std::size_t total = 0;
  detail::each_cached_layer<Kinds>(
      bound, stores, [&](const auto& store, int slot, const RowSpec& spec) {
        const int layer = static_cast<int>(ranges.size());
        ranges.push_back(detail::check_layer(reader, store, layer, slot, spec, rows));
        total = checked_add(total, saved_bytes(store, slot, ranges.back()));
      });
  if (head.layers != ranges.size() || reader.remaining() != total + sizeof(std::uint64_t)) {
    fail<LoadError>(detail::saved_origin, ": ", ranges.size(), " cached layers must have ", total,
                    " bytes of rows, it has ", head.layers, " layers and ",
                    (std::max)(reader.remaining(), sizeof(std::uint64_t)) - sizeof(std::uint64_t),
                    " bytes; it is damaged, save it again");
  }
  bool room = true;
  std::size_t i = 0;
  detail::each_cached_layer<Kinds>(bound, stores, [&](auto& store, int slot, const RowSpec&) {
    room = room && make_room(store, seq, slot, ranges[i++]);
  });
  if (!room) {
    std::apply([&](auto&... store) { (store->release(seq), ...); }, stores);
    fail<CapacityError>("the cache must have room for the ", rows,
                        " rows of the saved sequence, and its pool is used up; close or truncate a "
                        "sequence, or open the session with a larger Limits::pool_rows");
  }
  i = 0;
  const std::byte* from = saved.data() + reader.position();
  detail::each_cached_layer<Kinds>(bound, stores, [&](auto& store, int slot, const RowSpec&) {
    load_rows(store, seq, slot, ranges[i], from);
    from += saved_bytes(store, slot, ranges[i++]);
  });
  return rows;
}

}  // namespace tenon::inline TENON_ABI
