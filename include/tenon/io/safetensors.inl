#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>

#include "../core/json_escapes.hpp"
#include "../core/json_scanner.hpp"
#include "../core/utf8.hpp"
#include "replace_file.hpp"
#include "safetensors.hpp"
#include "tensor_source.hpp"
#include "write_bytes.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
inline constexpr std::uint64_t longest_safetensors_header = 100'000'000;
inline constexpr std::size_t safetensors_length_bytes = 8;
inline constexpr std::string_view safetensors_metadata = "__metadata__";

// Bytes of a tensor of that shape, none when 64 bits do not hold them.
inline std::optional<std::uint64_t> safetensor_bytes(const SafeTensor& tensor) {
  const bool none = std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
  std::uint64_t bytes = tensor.type->bytes;
  for (const Dim size : tensor.shape) {
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor == 0) return 0;
    if (bytes > (std::numeric_limits<std::uint64_t>::max)() / factor) {
      return none ? std::optional<std::uint64_t>(0) : std::nullopt;
    }
    bytes *= factor;
  }
  return bytes;
}
}  // namespace detail

TENON_INLINE SafeTensors SafeTensors::open(const std::filesystem::path& path, FileAccess access) {
  SafeTensors opened(path.string(), {MappedFile(path, access), {}});
  opened.parse(opened.bytes_->file.bytes());
  return opened;
}

TENON_INLINE SafeTensors SafeTensors::from_bytes(std::vector<std::byte> bytes, std::string origin) {
  SafeTensors opened(std::move(origin), {{}, std::move(bytes)});
  opened.parse(opened.bytes_->vector);
  return opened;
}

TENON_INLINE void SafeTensors::done_with(std::span<const std::byte> part) const {
  const auto whole = bytes_->file.bytes();
  const std::less_equal<const std::byte*> order;
  if (whole.empty() || part.empty() || !order(whole.data(), part.data()) ||
      !order(part.data() + part.size(), whole.data() + whole.size())) {
    return;
  }
  bytes_->file.set_aside(part);
}

TENON_INLINE void SafeTensors::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < detail::safetensors_length_bytes) {
    fail<LoadError>(origin_, ": must begin with the 8 bytes of its header's length, it has ",
                    bytes.size(), " bytes; it is cut short, download it again");
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), detail::safetensors_length_bytes);
  if (length > detail::longest_safetensors_header) {
    fail<LoadError>(origin_, ": the header must have at most ", detail::longest_safetensors_header,
                    " bytes, it claims ", length,
                    "; it is no safetensors file, or damaged; download it again");
  }
  const auto rest = bytes.subspan(detail::safetensors_length_bytes);
  if (length > rest.size()) {
    fail<LoadError>(origin_, ": the header must lie in the file, it claims ", length,
                    " bytes and there are ", rest.size(),
                    "; the file is cut short, download it again");
  }
  const std::string_view text(reinterpret_cast<const char*>(rest.data()),
                              static_cast<std::size_t>(length));
  if (!text.starts_with('{')) {
    fail<LoadError>(origin_, ": the header must begin with \"{\", it begins with \"",
                    printable(text.substr(0, 1)), "\"; it is no safetensors file, or damaged");
  }
  if (!is_utf8(text)) {
    fail<LoadError>(origin_,
                    ": the header must be UTF-8, it is not; the file is damaged, "
                    "download or convert it again");
  }
  const auto data = rest.subspan(static_cast<std::size_t>(length));
  JsonScanner scanner(text, origin_);
  Ranges ranges;
  bool metadata = false;
  scanner.expect('{', "an object");
  for (bool first = true; !scanner.take('}'); first = false) {
    if (!first) scanner.expect(',', "a comma or the end of the object");
    const std::string_view name = scanner.string("the name of a tensor");
    if (name == detail::safetensors_metadata) {
      if (metadata) scanner.refuse("\"__metadata__\" once");
      metadata = true;
      scanner.expect(':', "a colon");
      read_metadata(scanner);
    } else {
      std::string owned(name);
      scanner.expect(':', "a colon");
      ranges.push_back(read_tensor(scanner, std::move(owned)));
    }
  }
  scanner.end();
  sort_names();
  check_cover(ranges, data.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].data = data.subspan(static_cast<std::size_t>(ranges[i].first),
                                    static_cast<std::size_t>(ranges[i].second - ranges[i].first));
  }
}

TENON_INLINE void SafeTensors::read_metadata(JsonScanner& scanner) {
  if (scanner.word("null")) return;
  scanner.expect('{', "an object of strings");
  for (bool first = true; !scanner.take('}'); first = false) {
    if (!first) scanner.expect(',', "a comma or the end of the object");
    std::string key(scanner.string("a key of the metadata"));
    scanner.expect(':', "a colon");
    metadata_.emplace_back(std::move(key), scanner.string("a string, as metadata are"));
  }
  std::vector<std::string_view> keys;
  for (const auto& entry : metadata_) keys.push_back(entry.first);
  std::sort(keys.begin(), keys.end());
  if (const auto twice = std::adjacent_find(keys.begin(), keys.end()); twice != keys.end()) {
    fail<LoadError>(origin_, ": keys of the metadata must be distinct, \"", printable(*twice),
                    "\" stands there twice; the file is damaged, write it again");
  }
}

TENON_INLINE std::pair<std::uint64_t, std::uint64_t> SafeTensors::read_tensor(JsonScanner& scanner,
                                                                              std::string name) {
  SafeTensor tensor;
  tensor.name = std::move(name);
  std::pair<std::uint64_t, std::uint64_t> range;
  bool has_type = false, has_shape = false, has_range = false;
  const auto once = [&](bool& seen) {
    if (seen) scanner.refuse("each field of a tensor once");
    seen = true;
    scanner.expect(':', "a colon");
  };
  scanner.expect('{', "the fields of a tensor");
  for (bool first = true; !scanner.take('}'); first = false) {
    if (!first) scanner.expect(',', "a comma or the end of the object");
    const std::string_view field = scanner.string("a field of a tensor");
    if (field == "dtype") {
      once(has_type);
      const std::string_view type = scanner.string("the name of a type");
      tensor.type = find_safe_type(type);
      if (tensor.type == nullptr) {
        fail<LoadError>(origin_, ": tensor \"", printable(tensor.name),
                        "\" must have a type this version knows (F32, F16, BF16, F8_E4M3, ...), it "
                        "has \"",
                        printable(type), "\"; convert the checkpoint to one of them");
      }
    } else if (field == "shape") {
      once(has_shape);
      scanner.expect('[', "a list of sizes");
      for (bool one = true; !scanner.take(']'); one = false) {
        if (!one) scanner.expect(',', "a comma or the end of the list");
        const std::uint64_t size = scanner.whole_number("a size");
        if (size > static_cast<std::uint64_t>((std::numeric_limits<Dim>::max)())) {
          scanner.refuse("sizes below 2^63");
        }
        tensor.shape.push_back(static_cast<Dim>(size));
      }
    } else if (field == "data_offsets") {
      once(has_range);
      scanner.expect('[', "two offsets");
      range.first = scanner.whole_number("an offset");
      scanner.expect(',', "two offsets");
      range.second = scanner.whole_number("an offset");
      scanner.expect(']', "two offsets");
    } else {
      scanner.expect(':', "a colon");
      scanner.skip("a value");  // as the reference, which knows these three
    }
  }
  if (!has_type || !has_shape || !has_range) {
    fail<LoadError>(origin_, ": tensor \"", printable(tensor.name),
                    "\" must have dtype, shape and data_offsets, one of them is missing; the file "
                    "is damaged, write it again");
  }
  tensors_.push_back(std::move(tensor));
  return range;
}

TENON_INLINE void SafeTensors::check_size(const SafeTensor& tensor, std::uint64_t bytes) const {
  const std::optional<std::uint64_t> wanted = detail::safetensor_bytes(tensor);
  if (wanted == bytes) return;
  fail<LoadError>(
      origin_, ": tensor \"", printable(tensor.name), "\" ", shape_text(tensor.shape), " of type ",
      tensor.type->name, " must have ", wanted ? message(*wanted) : std::string("fewer than 2^64"),
      " bytes, its offsets give it ", bytes, "; the file is damaged, download or convert it again");
}

TENON_INLINE void SafeTensors::check_cover(const Ranges& ranges, std::uint64_t size) const {
  std::vector<std::uint32_t> order(ranges.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(i);
  const auto before = [&](std::uint32_t a, std::uint32_t b) { return ranges[a] < ranges[b]; };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::sort(order.begin(), order.end(), before);
  }
  std::uint64_t at = 0;
  for (const std::uint32_t i : order) {
    const auto [begin, end] = ranges[i];
    if (begin != at || end < begin || end > size) {
      fail<LoadError>(origin_, ": tensors must cover the data one after another, tensor \"",
                      printable(tensors_[i].name), "\" has bytes ", begin, " to ", end, " after ",
                      at, " of ", size, "; the file is damaged, download or convert it again");
    }
    check_size(tensors_[i], end - begin);
    at = end;
  }
  if (at != size) {
    fail<LoadError>(origin_, ": tensors must cover all ", size, " bytes of the data, they end at ",
                    at, "; the file is damaged, download or convert it again");
  }
}

// By hashes first: names begin alike, and comparing them took a quarter of reading a header.
TENON_INLINE void SafeTensors::sort_names() {
  by_name_.reserve(tensors_.size());
  for (const SafeTensor& tensor : tensors_) {
    by_name_.push_back(
        {std::hash<std::string_view>()(tensor.name), static_cast<std::uint32_t>(by_name_.size())});
  }
  std::sort(by_name_.begin(), by_name_.end(), [&](const Named& a, const Named& b) {
    return a.hash != b.hash ? a.hash < b.hash : tensors_[a.at].name < tensors_[b.at].name;
  });
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    const std::string& name = tensors_[by_name_[i].at].name;
    if (by_name_[i].hash != by_name_[i - 1].hash || name != tensors_[by_name_[i - 1].at].name) {
      continue;
    }
    fail<LoadError>(origin_, ": tensor names must be distinct, \"", printable(name),
                    "\" stands there twice; the file is damaged, download or convert it again");
  }
}

TENON_INLINE const SafeTensor* SafeTensors::find(std::string_view name) const {
  const std::size_t hash = std::hash<std::string_view>()(name);
  const auto at = std::lower_bound(
      by_name_.begin(), by_name_.end(), name, [&](const Named& a, std::string_view wanted) {
        return a.hash != hash ? a.hash < hash : tensors_[a.at].name < wanted;
      });
  if (at == by_name_.end() || tensors_[at->at].name != name) return nullptr;
  return &tensors_[at->at];
}

namespace detail {

inline void put_json_string(std::string& out, std::string_view text) {
  ((out += '"') += json_escaped(text)) += '"';
}

inline void check_safetensor(const SafeTensor& tensor) {
  constexpr std::string_view origin = "safetensors to write";
  if (!is_utf8(tensor.name) || tensor.name == safetensors_metadata) {
    fail<RequestError>(origin, ": a tensor name must be UTF-8 and not \"", safetensors_metadata,
                       "\", it is \"", printable(tensor.name), "\"; rename it");
  }
  const bool negative =
      std::any_of(tensor.shape.begin(), tensor.shape.end(), [](Dim size) { return size < 0; });
  if (tensor.type == nullptr || negative || safetensor_bytes(tensor) != tensor.data.size()) {
    fail<ShapeError>(origin, ": tensor \"", printable(tensor.name), "\" ", shape_text(tensor.shape),
                     " of type ", tensor.type == nullptr ? "(none)" : tensor.type->name,
                     " must have the bytes of its shape, it is given ", tensor.data.size(),
                     "; pass those");
  }
}

}  // namespace detail

TENON_INLINE void write_safetensors(std::ostream& out, std::span<const SafeTensor> tensors,
                                    const SafeMetadata& metadata) {
  std::vector<const SafeTensor*> order;
  for (const SafeTensor& tensor : tensors) {
    detail::check_safetensor(tensor);
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(), [](const SafeTensor* a, const SafeTensor* b) {
    if (a->type->bytes != b->type->bytes) return a->type->bytes > b->type->bytes;
    if (a->type != b->type) return a->type < b->type;
    return a->name < b->name;
  });
  std::vector<std::string_view> names;
  for (const SafeTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    fail<RequestError>("safetensors to write: tensor names must be distinct, \"", printable(*twice),
                       "\" stands there twice; rename one");
  }
  std::string header = "{";
  if (!metadata.empty()) {
    header += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (!is_utf8(key) || !is_utf8(value)) {
        fail<RequestError>("safetensors to write: metadata must be UTF-8, \"", printable(key),
                           "\" or its value is not; encode it");
      }
      if (header.back() != '{') header += ',';
      detail::put_json_string(header, key);
      header += ':';
      detail::put_json_string(header, value);
    }
    header += '}';
  }
  std::uint64_t offset = 0;
  for (const SafeTensor* tensor : order) {
    if (header.size() > 1) header += ',';
    detail::put_json_string(header, tensor->name);
    header += message(":{\"dtype\":\"", tensor->type->name, "\",\"shape\":[");
    for (std::size_t i = 0; i < tensor->shape.size(); ++i) {
      header += message(i > 0 ? "," : "", tensor->shape[i]);
    }
    header += message("],\"data_offsets\":[", offset, ",", offset + tensor->data.size(), "]}");
    offset += tensor->data.size();
  }
  header += '}';
  header.resize(round_up(header.size(), std::size_t{8}), ' ');
  if (header.size() > detail::longest_safetensors_header) {
    fail<RequestError>("safetensors to write: the header must have at most ",
                       detail::longest_safetensors_header, " bytes, it has ", header.size(),
                       "; write the tensors to several files");
  }
  const std::uint64_t length = header.size();
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const SafeTensor* tensor : order) write_bytes(out, tensor->data);
  if (!out) {
    fail<CapacityError>(
        "safetensors to write: all bytes must be written, the stream refused some; ",
        "free disk space and write it again");
  }
}

TENON_INLINE void write_safetensors(const std::filesystem::path& path,
                                    std::span<const SafeTensor> tensors,
                                    const SafeMetadata& metadata) {
  replace_file(path, [&](std::ostream& out) { write_safetensors(out, tensors, metadata); });
}

}  // namespace tenon::inline TENON_ABI
