#pragma once
#include <algorithm>
#include <variant>

#include "../core/checksum.hpp"
#include "../core/memory.hpp"
#include "../io/gguf_format.hpp"
#include "../io/gguf_writer.hpp"
#include "packed_file.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline constexpr std::string_view packed_prefix = "tenon.packed.";
inline constexpr std::uint32_t packed_version = 1;
inline constexpr int packed_type = 24;  // i8

template <class... Parts>
[[noreturn]] void refuse_packed(std::string_view origin, const Parts&... parts) {
  fail<LoadError>(origin, ": ", parts...,
                  "; the packed file is damaged, pack the original checkpoint again");
}

// The arrays under tenon.packed.
class PackedKeys {
 public:
  explicit PackedKeys(const TensorSource& source) : source_(source) {}

  std::string key(std::string_view name) const { return message(packed_prefix, name); }
  bool any() const {
    const auto& entries = source_.metadata().entries();
    return std::any_of(entries.begin(), entries.end(),
                       [](const auto& entry) { return entry.key.starts_with(packed_prefix); });
  }
  void check_version() const {
    const MetaValue* value = source_.metadata().find(key("version"));
    const auto* version = value == nullptr ? nullptr : std::get_if<std::uint64_t>(&value->data);
    if (version == nullptr) {
      refuse_packed(source_.origin(), "metadata key \"", key("version"),
                    "\" must be a number, as other keys of packed files are there, it is ",
                    value == nullptr ? "missing" : value->type_name());
    }
    if (*version == packed_version) return;
    fail<LoadError>(source_.origin(), ": metadata key \"", key("version"), "\" must be ",
                    packed_version, ", it is ", *version,
                    "; this version of tenon arranges weights differently, pack the original "
                    "checkpoint again");
  }
  // The array under that name, of `count` items.
  template <class T>
  const std::vector<T>& array(std::string_view name, std::size_t count) const {
    const std::vector<T>& items = array<T>(name);
    if (items.size() != count) {
      refuse_packed(source_.origin(), "metadata key \"", key(name), "\" must have ", count,
                    " items, it has ", items.size());
    }
    return items;
  }
  template <class T>
  const std::vector<T>& array(std::string_view name) const {
    const MetaValue* value = source_.metadata().find(key(name));
    const auto* items = value == nullptr ? nullptr : std::get_if<std::vector<T>>(&value->data);
    if (items == nullptr) {
      refuse_packed(source_.origin(), "metadata key \"", key(name), "\" must be an array of ",
                    std::is_same_v<T, std::string> ? "names" : "unsigned numbers", ", it is ",
                    value == nullptr ? "missing" : value->type_name());
    }
    return *items;
  }

 private:
  const TensorSource& source_;
};

inline void check_packed_tensor(std::string_view origin, const PackedTensor& packed,
                                const TensorInfo* stored) {
  const TensorInfo& tensor = packed.tensor;
  if (stored == nullptr || stored->ggml_type != packed_type || stored->shape.size() != 1) {
    refuse_packed(origin, "tensor \"", printable(tensor.name),
                  "\" must be a list of i8, as it is named as packed, ",
                  stored == nullptr ? std::string("there is none")
                                    : message("its type is ", stored->ggml_type, " and its shape ",
                                              shape_text(stored->shape)));
  }
  const std::uint64_t least =
      gguf_tensor_bytes<LoadError>(origin, tensor.name, tensor.ggml_type, tensor.shape);
  // Padding fills tiles and cache lines; what it may be is known to whoever binds the format.
  if (stored->data.size() < least) {
    refuse_packed(origin, "tensor \"", printable(tensor.name), "\" ", shape_text(tensor.shape),
                  " must have at least ", least, " packed bytes, it has ", stored->data.size());
  }
}

}  // namespace detail

TENON_INLINE PackedFile::PackedFile(const TensorSource& source) {
  const std::string_view origin = source.origin();
  const detail::PackedKeys keys(source);
  if (!keys.any()) return;
  keys.check_version();
  const std::uint64_t alignment = gguf_alignment<LoadError>(origin, source.metadata());
  if (alignment % cache_line != 0) {
    detail::refuse_packed(origin, "metadata key \"", GgufFormat::alignment_key,
                          "\" must be a multiple of ", cache_line, " in a packed file, it is ",
                          alignment);
  }
  using Numbers = std::uint64_t;
  const auto& names = keys.array<std::string>("names");
  const std::size_t count = names.size();
  const auto& types = keys.array<Numbers>("types", count);
  const auto& ranks = keys.array<Numbers>("ranks", count);
  const auto& layouts = keys.array<Numbers>("layouts", count);
  const auto& digests = keys.array<Numbers>("digests", count);
  const auto& checksums = keys.array<Numbers>("checksums", count);
  const auto& sizes = keys.array<Numbers>("shapes");
  tensors_.reserve((std::min)(count, source.tensors().size()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    PackedTensor packed{{names[i], 0, {}, {}}, nullptr, layouts[i], digests[i], checksums[i]};
    if (types[i] > INT32_MAX || ranks[i] > GgufFormat::most_rank || ranks[i] > sizes.size() - at) {
      detail::refuse_packed(origin, "the original of tensor \"", printable(names[i]),
                            "\" must have a ggml type and a shape within \"", keys.key("shapes"),
                            "\", it has type ", types[i], " and ", ranks[i], " axes");
    }
    packed.tensor.ggml_type = static_cast<int>(types[i]);
    for (std::uint64_t axis = 0; axis < ranks[i]; ++axis, ++at) {
      // What does not fit becomes negative and is refused as a size below 1.
      packed.tensor.shape.push_back(static_cast<Dim>(sizes[at]));
    }
    packed.stored = source.find(names[i]);
    detail::check_packed_tensor(origin, packed, packed.stored);
    packed.tensor.data = packed.stored->data;
    if (!tensors_.emplace(packed.stored->name, packed).second) {
      detail::refuse_packed(origin, "packed tensors must be named once, \"", printable(names[i]),
                            "\" is named twice");
    }
  }
  if (at != sizes.size()) {
    detail::refuse_packed(origin, "metadata key \"", keys.key("shapes"), "\" must have ", at,
                          " items, as the ranks say, it has ", sizes.size());
  }
}

TENON_INLINE const PackedTensor* PackedFile::find(std::string_view name) const {
  const auto at = tensors_.find(name);
  return at == tensors_.end() ? nullptr : &at->second;
}

TENON_INLINE void PackedFile::verify(std::string_view origin, Executor& executor) const {
  std::vector<std::string_view> names;  // in an order that does not depend on hashes
  for (const auto& entry : tensors_) names.push_back(entry.first);
  std::sort(names.begin(), names.end());
  for (const std::string_view name : names) {
    const PackedTensor& packed = tensors_.at(name);
    const std::uint64_t found = packed_checksum(packed.tensor.data, executor);
    if (found == packed.checksum) continue;
    detail::refuse_packed(origin, "tensor \"", printable(name), "\" must have the checksum ",
                          packed.checksum, ", it has ", found);
  }
}

TENON_INLINE void PackedLog::add(PackedTensor tensor, std::shared_ptr<const void> owner) {
  std::string name = tensor.tensor.name;
  entries_.try_emplace(std::move(name), Entry{std::move(tensor), std::move(owner)});
}

TENON_INLINE void write_packed(const std::filesystem::path& path, const TensorSource& source,
                               const PackedLog& log, Executor& executor) {
  using Numbers = std::vector<std::uint64_t>;
  std::vector<std::string> names;
  Numbers types, ranks, sizes, layouts, digests, checksums;
  std::vector<TensorInfo> tensors(source.tensors().begin(), source.tensors().end());
  Metadata metadata = source.metadata();
  for (TensorInfo& tensor : tensors) {
    const auto at = log.entries_.find(tensor.name);
    if (at == log.entries_.end() || log.apart_.contains(tensor.name)) continue;
    const PackedTensor& packed = at->second.tensor;
    names.push_back(tensor.name);
    types.push_back(static_cast<std::uint64_t>(packed.tensor.ggml_type));
    ranks.push_back(packed.tensor.shape.size());
    for (const Dim size : packed.tensor.shape) sizes.push_back(static_cast<std::uint64_t>(size));
    layouts.push_back(packed.layout);
    digests.push_back(packed.digest);
    checksums.push_back(packed_checksum(packed.tensor.data, executor));
    tensor.data = packed.tensor.data;
    tensor.ggml_type = detail::packed_type;
    tensor.shape = {static_cast<Dim>(tensor.data.size())};
    // Of a file that states its vocabulary nowhere else, the embedding's rows are its size.
    const std::string vocab = message(metadata.text("general.architecture"), ".vocab_size");
    if (tensor.name == "token_embd.weight" && !metadata.contains(vocab) &&
        !metadata.contains("tokenizer.ggml.tokens")) {
      metadata.set(vocab, static_cast<std::uint32_t>(packed.tensor.shape[0]));
    }
  }
  const std::uint64_t alignment = gguf_alignment<RequestError>(source.origin(), metadata);
  metadata.set(std::string(GgufFormat::alignment_key),
               static_cast<std::uint32_t>((std::max)(alignment, std::uint64_t{cache_line})));
  const auto set = [&](std::string_view name, MetaType item, MetaValue::Data data) {
    metadata.set(message(detail::packed_prefix, name),
                 MetaValue{MetaType::array, item, std::move(data)});
  };
  metadata.set(message(detail::packed_prefix, "version"), detail::packed_version);
  set("names", MetaType::string, std::move(names));
  set("types", MetaType::u32, std::move(types));
  set("ranks", MetaType::u32, std::move(ranks));
  set("shapes", MetaType::u64, std::move(sizes));
  set("layouts", MetaType::u64, std::move(layouts));
  set("digests", MetaType::u64, std::move(digests));
  set("checksums", MetaType::u64, std::move(checksums));
  write_gguf(path, metadata, tensors);
}

TENON_INLINE std::uint64_t packed_checksum(std::span<const std::byte> bytes, Executor& executor) {
  constexpr std::size_t part = std::size_t{4} << 20;
  std::vector<std::uint64_t> sums((bytes.size() + part - 1) / part);
  executor.run([&](Worker worker) {
    const Range mine = share(static_cast<Dim>(sums.size()), worker);
    for (Dim i = mine.begin; i < mine.end; ++i) {
      const std::size_t from = static_cast<std::size_t>(i) * part;
      sums[static_cast<std::size_t>(i)] =
          checksum(bytes.subspan(from, (std::min)(part, bytes.size() - from)));
    }
  });
  return checksum(std::as_bytes(std::span(sums)));
}

}  // namespace tenon::inline TENON_ABI
