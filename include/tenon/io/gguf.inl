#pragma once
#include <algorithm>
#include <cstring>

#include "byte_reader.hpp"
#include "gguf.hpp"
#include "gguf_format.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE Gguf Gguf::open(const std::filesystem::path& path, FileAccess access) {
  Gguf gguf(path.string(), {MappedFile(path, access), {}});
  gguf.parse(gguf.bytes_->file.bytes());
  return gguf;
}

TENON_INLINE Gguf Gguf::from_bytes(std::vector<std::byte> bytes, std::string origin) {
  Gguf gguf(std::move(origin), {{}, std::move(bytes)});
  gguf.parse(gguf.bytes_->vector);
  return gguf;
}

TENON_INLINE void Gguf::parse(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, origin_);
  read_version(reader);
  const auto tensors =
      reader.count(GgufFormat::least_tensor_bytes, {"the number of tensors in the header"});
  const auto keys =
      reader.count(GgufFormat::least_key_bytes, {"the number of metadata keys in the header"});
  if (keys > GgufFormat::most_keys) {
    fail<LoadError>(origin_, ": the number of metadata keys must be at most ",
                    GgufFormat::most_keys, ", it is ", keys,
                    "; the file is damaged or hostile, download or convert it again");
  }
  for (std::uint64_t i = 0; i < keys; ++i) read_entry(reader);
  alignment_ = gguf_alignment<LoadError>(origin_, metadata_);
  std::vector<std::uint64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(tensors));
  tensors_.reserve(static_cast<std::size_t>(tensors));
  for (std::uint64_t i = 0; i < tensors; ++i) offsets.push_back(read_tensor(reader));
  if (!tensors_.empty()) place(reader, offsets);
  index_ = TensorIndex(tensors_, origin_);
}

TENON_INLINE void Gguf::read_version(ByteReader& reader) {
  const auto magic = reader.take(GgufFormat::magic.size(), {"the magic bytes"});
  const std::string_view found{reinterpret_cast<const char*>(magic.data()), magic.size()};
  if (found != GgufFormat::magic) {
    fail<LoadError>(origin_, ": must begin with \"", GgufFormat::magic, "\", it begins with \"",
                    printable(found), "\"; it is not a GGUF file, convert the checkpoint to GGUF");
  }
  version_ = reader.number<std::uint32_t>({"the version"});
  if (version_ != 0 && (version_ & 0xffff) == 0) {
    fail<LoadError>(origin_, ": must be little-endian, its version field is that of a big-endian ",
                    "file; convert the checkpoint for little-endian machines");
  }
  if (version_ < GgufFormat::oldest_version || version_ > GgufFormat::version) {
    fail<LoadError>(origin_, ": the GGUF version must be ", GgufFormat::oldest_version, " or ",
                    GgufFormat::version, ", it is ", version_,
                    "; convert the checkpoint again with a current converter");
  }
}

TENON_INLINE void Gguf::read_entry(ByteReader& reader) {
  const std::string_view key = reader.text({"a metadata key"});
  check_gguf_name<LoadError>(origin_, "a metadata key", key);
  MetaValue value{read_type(reader, key), {}, false};
  if (value.type == MetaType::array) {
    read_array(reader, key, value);
  } else {
    read_scalar(reader, key, value);
  }
  if (!metadata_.insert(std::string(key), std::move(value))) {
    fail<LoadError>(origin_, ": metadata keys must be distinct, \"", printable(key),
                    "\" stands there twice; the file is damaged, download or convert it again");
  }
}

TENON_INLINE MetaType Gguf::read_type(ByteReader& reader, std::string_view key) const {
  const auto type = reader.number<std::uint32_t>({"the value type", key});
  if (type > static_cast<std::uint32_t>(MetaType::f64)) {
    fail<LoadError>(origin_, ": the value type of \"", printable(key), "\" must be 0 to ",
                    static_cast<int>(MetaType::f64), ", it is ", type,
                    "; the file is damaged, or convert it again with a current converter");
  }
  return static_cast<MetaType>(type);
}

TENON_INLINE void Gguf::read_scalar(ByteReader& reader, std::string_view key,
                                    MetaValue& value) const {
  const Field field{"the value", key};
  switch (value.type) {
    case MetaType::u8:
      value.data = std::uint64_t{reader.number<std::uint8_t>(field)};
      break;
    case MetaType::u16:
      value.data = std::uint64_t{reader.number<std::uint16_t>(field)};
      break;
    case MetaType::u32:
      value.data = std::uint64_t{reader.number<std::uint32_t>(field)};
      break;
    case MetaType::u64:
      value.data = reader.number<std::uint64_t>(field);
      break;
    case MetaType::i8:
      value.data = std::int64_t{reader.number<std::int8_t>(field)};
      break;
    case MetaType::i16:
      value.data = std::int64_t{reader.number<std::int16_t>(field)};
      break;
    case MetaType::i32:
      value.data = std::int64_t{reader.number<std::int32_t>(field)};
      break;
    case MetaType::i64:
      value.data = reader.number<std::int64_t>(field);
      break;
    case MetaType::f32:
      value.data = static_cast<double>(reader.number<float>(field));
      break;
    case MetaType::f64:
      value.data = reader.number<double>(field);
      break;
    case MetaType::boolean:
      value.data = truth(reader.take(1, field)[0], key);
      break;
    case MetaType::string:
      value.data = std::string(reader.text(field));
      break;
    case MetaType::array:
      break;  // read_array
  }
}

TENON_INLINE void Gguf::read_array(ByteReader& reader, std::string_view key,
                                   MetaValue& value) const {
  value.item = read_type(reader, key);
  switch (value.item) {
    case MetaType::u8:
      value.data = numbers<std::uint8_t, std::uint64_t>(reader, key);
      break;
    case MetaType::u16:
      value.data = numbers<std::uint16_t, std::uint64_t>(reader, key);
      break;
    case MetaType::u32:
      value.data = numbers<std::uint32_t, std::uint64_t>(reader, key);
      break;
    case MetaType::u64:
      value.data = numbers<std::uint64_t, std::uint64_t>(reader, key);
      break;
    case MetaType::i8:
      value.data = numbers<std::int8_t, std::int64_t>(reader, key);
      break;
    case MetaType::i16:
      value.data = numbers<std::int16_t, std::int64_t>(reader, key);
      break;
    case MetaType::i32:
      value.data = numbers<std::int32_t, std::int64_t>(reader, key);
      break;
    case MetaType::i64:
      value.data = numbers<std::int64_t, std::int64_t>(reader, key);
      break;
    case MetaType::f32:
      value.data = numbers<float, double>(reader, key);
      break;
    case MetaType::f64:
      value.data = numbers<double, double>(reader, key);
      break;
    case MetaType::boolean: {
      std::vector<bool> flags;
      const Field field{"the array", key};
      for (const std::byte b : reader.take(reader.count(1, field), field)) {
        flags.push_back(truth(b, key));
      }
      value.data = std::move(flags);
      break;
    }
    case MetaType::string: {
      constexpr std::uint64_t length_bytes = 8;
      std::vector<std::string> texts(
          static_cast<std::size_t>(reader.count(length_bytes, {"the array", key})));
      for (std::string& text : texts) text = reader.text({"an item", key});
      value.data = std::move(texts);
      break;
    }
    case MetaType::array:
      fail<LoadError>(origin_, ": the array \"", printable(key), "\" must hold plain values, it ",
                      "holds arrays; store them under keys of their own");
  }
}

template <class T, class Wide>
std::vector<Wide> Gguf::numbers(ByteReader& reader, std::string_view key) {
  const Field field{"the array", key};
  const std::uint64_t count = reader.count(sizeof(T), field);
  const std::byte* from = reader.take(count * sizeof(T), field).data();
  std::vector<Wide> wide(static_cast<std::size_t>(count));
  for (Wide& x : wide) {
    T item;
    std::memcpy(&item, from, sizeof(T));
    x = static_cast<Wide>(item);
    from += sizeof(T);
  }
  return wide;
}

TENON_INLINE bool Gguf::truth(std::byte stored, std::string_view key) const {
  if (std::to_integer<int>(stored) > 1) {
    fail<LoadError>(origin_, ": the bool \"", printable(key), "\" must be 0 or 1, it is ",
                    std::to_integer<int>(stored),
                    "; the file is damaged, download or convert it again");
  }
  return stored == std::byte{1};
}

TENON_INLINE std::uint64_t Gguf::read_tensor(ByteReader& reader) {
  TensorInfo tensor;
  tensor.name = reader.text({"a tensor name"});
  check_gguf_name<LoadError>(origin_, "a tensor name", tensor.name);
  const auto rank = reader.number<std::uint32_t>({"the number of axes", tensor.name});
  if (rank < 1 || rank > GgufFormat::most_rank) {
    fail<LoadError>(origin_, ": tensor \"", printable(tensor.name), "\" must have 1 to ",
                    GgufFormat::most_rank, " axes, it has ", rank,
                    "; the file is damaged, download or convert it again");
  }
  tensor.shape.resize(rank);
  for (std::uint32_t axis = rank; axis-- > 0;) {  // the file has the contiguous axis first
    const auto size = reader.number<std::uint64_t>({"a size", tensor.name});
    if (size > static_cast<std::uint64_t>(INT64_MAX)) {
      fail<LoadError>(origin_, ": tensor \"", printable(tensor.name),
                      "\" must have sizes below 2^63, one is ", size,
                      "; the file is damaged, download or convert it again");
    }
    tensor.shape[axis] = static_cast<Dim>(size);
  }
  tensor.ggml_type = reader.number<std::int32_t>({"the type", tensor.name});
  const auto offset = reader.number<std::uint64_t>({"the data offset", tensor.name});
  tensors_.push_back(std::move(tensor));
  return offset;
}

TENON_INLINE void Gguf::place(ByteReader& reader, std::span<const std::uint64_t> offsets) {
  const std::uint64_t past = reader.position() % alignment_;
  if (past != 0) reader.take(alignment_ - past, {"the padding before the tensor data"});
  const std::span<const std::byte> data = reader.take(reader.remaining(), {"the tensor data"});
  std::uint64_t end = 0;  // of the last tensor
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    TensorInfo& tensor = tensors_[i];
    const std::uint64_t bytes =
        gguf_tensor_bytes<LoadError>(origin_, tensor.name, tensor.ggml_type, tensor.shape);
    if (offsets[i] % alignment_ != 0) {
      fail<LoadError>(origin_, ": the data offset of tensor \"", printable(tensor.name),
                      "\" must be a multiple of ", alignment_, ", it is ", offsets[i],
                      "; the file is damaged, download or convert it again");
    }
    if (offsets[i] > data.size() || bytes > data.size() - offsets[i]) {
      fail<LoadError>(origin_, ": tensor \"", printable(tensor.name), "\" ",
                      shape_text(tensor.shape), " must have ", bytes, " bytes at offset ",
                      offsets[i], " of the data, the file has ", data.size(),
                      " bytes of data; it is cut short or damaged, download it again");
    }
    tensor.data =
        data.subspan(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(bytes));
    end = (std::max)(end, offsets[i] + bytes);
  }
  // Writers pad the last tensor as the others, or not at all.
  const std::uint64_t short_by = (alignment_ - data.size() % alignment_) % alignment_;
  if (data.size() > end && short_by > 0 && data.size() + short_by - end < alignment_) {
    fail<LoadError>(origin_, ": the data must end with its last tensor, after ", end,
                    " bytes, or be padded to a multiple of ", alignment_, ", they have ",
                    data.size(), " bytes; the file is cut short, download it again");
  }
  check_apart();
}

TENON_INLINE void Gguf::check_apart() const {
  std::vector<const TensorInfo*> by_address;
  by_address.reserve(tensors_.size());
  for (const TensorInfo& tensor : tensors_) by_address.push_back(&tensor);
  std::sort(by_address.begin(), by_address.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return a->data.data() < b->data.data();
  });
  for (std::size_t i = 1; i < by_address.size(); ++i) {
    const TensorInfo &before = *by_address[i - 1], &after = *by_address[i];
    if (before.data.data() + before.data.size() > after.data.data()) {
      fail<LoadError>(origin_, ": tensors must not share bytes, \"", printable(before.name),
                      "\" reaches into \"", printable(after.name),
                      "\"; the file is damaged, download or convert it again");
    }
  }
}

}  // namespace tenon::inline TENON_ABI
