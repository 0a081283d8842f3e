#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "../core/error.hpp"
#include "../core/memory.hpp"
#include "gguf_format.hpp"
#include "gguf_writer.hpp"
#include "replace_file.hpp"
#include "write_bytes.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// The header of a GGUF file as bytes: everything before the tensor data and its padding.
class GgufHeader {
 public:
  GgufHeader(std::uint64_t tensors, std::uint64_t keys) : bytes_(GgufFormat::magic) {
    put(GgufFormat::version);
    put(tensors);
    put(keys);
  }
  const std::string& bytes() const { return bytes_; }

  void put_entry(std::string_view key, const MetaValue& value) {
    put_text(key);
    put(static_cast<std::int32_t>(value.type));
    if (value.type == MetaType::array) {
      put(static_cast<std::int32_t>(value.item));
      put_array(key, value);
    } else {
      put_scalar(key, value);
    }
  }
  void put_tensor(const TensorInfo& tensor, std::uint64_t offset) {
    put_text(tensor.name);
    put(static_cast<std::uint32_t>(tensor.shape.size()));
    for (std::size_t axis = tensor.shape.size(); axis-- > 0;) put(tensor.shape[axis]);
    put(static_cast<std::int32_t>(tensor.ggml_type));
    put(offset);
  }

 private:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T)); }
  void put_text(std::string_view text) {
    put(std::uint64_t{text.size()});
    bytes_ += text;
  }

  void put_scalar(std::string_view key, const MetaValue& value) {
    std::visit(
        [&](const auto& data) {
          using Data = std::decay_t<decltype(data)>;
          if constexpr (std::is_arithmetic_v<Data> || std::is_same_v<Data, std::string>) {
            put_item(key, value.type, data);
          } else {
            refuse_type(key, value);
          }
        },
        value.data);
  }
  void put_array(std::string_view key, const MetaValue& value) {
    std::visit(
        [&](const auto& data) {
          using Data = std::decay_t<decltype(data)>;
          if constexpr (std::is_arithmetic_v<Data> || std::is_same_v<Data, std::string>) {
            refuse_type(key, value);
          } else {
            put(std::uint64_t{data.size()});
            for (const typename Data::value_type& item : data) put_item(key, value.item, item);
          }
        },
        value.data);
  }
  [[noreturn]] static void refuse_type(std::string_view key, const MetaValue& value) {
    fail<RequestError>("metadata key \"", printable(key),
                       "\" must hold data of its type, it is of type ", value.type_name(),
                       " and holds something else; set the data and the type together");
  }

  // One value under the stored type, whose range it must be in.
  template <class T>
  void put_item(std::string_view key, MetaType type, const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (type != MetaType::string) refuse_type(key, {type, {}, value});
      put_text(value);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (type != MetaType::boolean) refuse_type(key, {type, {}, value});
      put(std::uint8_t{value});
    } else if constexpr (std::is_same_v<T, std::uint64_t>) {
      switch (type) {
        case MetaType::u8:
          return narrow<std::uint8_t>(key, value);
        case MetaType::u16:
          return narrow<std::uint16_t>(key, value);
        case MetaType::u32:
          return narrow<std::uint32_t>(key, value);
        case MetaType::u64:
          return put(value);
        default:
          refuse_type(key, {type, {}, value});
      }
    } else if constexpr (std::is_same_v<T, std::int64_t>) {
      switch (type) {
        case MetaType::i8:
          return narrow<std::int8_t>(key, value);
        case MetaType::i16:
          return narrow<std::int16_t>(key, value);
        case MetaType::i32:
          return narrow<std::int32_t>(key, value);
        case MetaType::i64:
          return put(value);
        default:
          refuse_type(key, {type, {}, value});
      }
    } else {
      switch (type) {
        case MetaType::f32:
          return narrow<float>(key, value);
        case MetaType::f64:
          return put(value);
        default:
          refuse_type(key, {type, {}, value});
      }
    }
  }
  template <class Stored, class T>
  void narrow(std::string_view key, T value) {
    using Limits = std::numeric_limits<Stored>;
    const bool finite = std::is_integral_v<T> || std::isfinite(static_cast<double>(value));
    if (finite &&
        (value < static_cast<T>(Limits::lowest()) || value > static_cast<T>((Limits::max)()))) {
      fail<RequestError>("metadata key \"", printable(key), "\" must hold values within its type, ",
                         +Limits::lowest(), " to ", +(Limits::max)(), ", one is ", value,
                         "; use a wider type");
    }
    put(static_cast<Stored>(value));
  }

  std::string bytes_;
};

inline void put_padding(std::ostream& out, std::uint64_t written, std::uint64_t alignment) {
  const std::string zeros(static_cast<std::size_t>(round_up(written, alignment) - written), '\0');
  out.write(zeros.data(), static_cast<std::streamsize>(zeros.size()));
}

inline constexpr std::string_view gguf_to_write = "GGUF to write";

inline void check_tensor_bytes(const TensorInfo& tensor) {
  const std::uint64_t bytes =
      gguf_tensor_bytes<ShapeError>(gguf_to_write, tensor.name, tensor.ggml_type, tensor.shape);
  if (tensor.data.size() == bytes) return;
  fail<ShapeError>(gguf_to_write, ": tensor \"", printable(tensor.name), "\" ",
                   shape_text(tensor.shape), " of type ", find_ggml_type(tensor.ggml_type)->name,
                   " must have ", bytes, " bytes, it is given ", tensor.data.size(),
                   "; pass the bytes of its shape");
}

TENON_INLINE void write_gguf_by(std::ostream& out, const Metadata& metadata,
                                std::span<const TensorInfo> tensors, Executor& team) {
  constexpr std::string_view origin = gguf_to_write;
  for (const TensorInfo& tensor : tensors) check_tensor_bytes(tensor);
  const std::uint64_t alignment = gguf_alignment<RequestError>(origin, metadata);
  if (metadata.entries().size() > GgufFormat::most_keys) {
    fail<RequestError>(origin, ": the number of metadata keys must be at most ",
                       GgufFormat::most_keys, ", it is ", metadata.entries().size(),
                       "; put lists into arrays");
  }
  GgufHeader header(tensors.size(), metadata.entries().size());
  for (const Metadata::Entry& entry : metadata.entries()) {
    check_gguf_name<RequestError>(origin, "a metadata key", entry.key);
    header.put_entry(entry.key, entry.value);
  }
  std::unordered_set<std::string_view> names;
  std::uint64_t offset = 0;
  for (const TensorInfo& tensor : tensors) {
    check_gguf_name<RequestError>(origin, "a tensor name", tensor.name);
    if (!names.insert(tensor.name).second) {
      fail<RequestError>(origin, ": tensor names must be distinct, \"", printable(tensor.name),
                         "\" stands there twice; rename one");
    }
    const std::uint64_t bytes =
        gguf_tensor_bytes<ShapeError>(origin, tensor.name, tensor.ggml_type, tensor.shape);
    header.put_tensor(tensor, offset);
    offset += round_up(bytes, alignment);
  }
  out.write(header.bytes().data(), static_cast<std::streamsize>(header.bytes().size()));
  if (!tensors.empty()) put_padding(out, header.bytes().size(), alignment);
  for (std::size_t i = 0; i < tensors.size() && out; ++i) {
    write_bytes(out, tensors[i].data, team);
    put_padding(out, tensors[i].data.size(), alignment);
  }
  if (!out) {
    fail<CapacityError>(origin, ": all bytes must be written, the stream refused some; ",
                        "free disk space and write it again");
  }
}

}  // namespace detail

TENON_INLINE void write_gguf(std::ostream& out, const Metadata& metadata,
                             std::span<const TensorInfo> tensors) {
  SerialExecutor alone;
  detail::write_gguf_by(out, metadata, tensors, alone);
}

TENON_INLINE void write_gguf(const std::filesystem::path& path, const Metadata& metadata,
                             std::span<const TensorInfo> tensors, Executor* team) {
  SerialExecutor alone;
  replace_file(path, [&](std::ostream& out) {
    detail::write_gguf_by(out, metadata, tensors, team != nullptr ? *team : alone);
  });
}

}  // namespace tenon::inline TENON_ABI
