#pragma once
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <string>
#include <system_error>

#include "../core/error.hpp"
#include "../core/memory.hpp"
#include "byte_reader.hpp"
#include "mapped_file.hpp"
#include "npy.hpp"
#include "replace_file.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

inline constexpr std::string_view npy_magic{"\x93NUMPY\x01\x00",
                                            8};  // with the format version, 1.0

inline void write_npy(std::ostream& out, std::span<const Dim> shape, const float* values,
                      Dim count) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  for (const Dim size : shape) header += std::to_string(size) + ", ";
  header.resize(header.size() - (shape.size() == 1 ? 1 : 2));  // a tuple of one keeps its comma
  header += "), }";
  constexpr std::size_t alignment = 64, length_bytes = 2;
  const std::size_t before = npy_magic.size() + length_bytes;
  header.resize(round_up(before + header.size() + 1, alignment) - before, ' ');
  header.back() = '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  out.write(npy_magic.data(), static_cast<std::streamsize>(npy_magic.size()));
  out.write(reinterpret_cast<const char*>(&length), length_bytes);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  out.write(reinterpret_cast<const char*>(values), static_cast<std::streamsize>(count) * 4);
  if (!out) {
    fail<CapacityError>("npy to write: all bytes must be written, the stream refused some; ",
                        "free disk space and write it again");
  }
}

// The header of an .npy file is a Python dictionary; this reads the one form of it that we take.
class NpyHeader {
 public:
  NpyHeader(std::string_view text, std::string_view origin)
      : text_(text), rest_(text), origin_(origin) {}

  std::vector<Dim> shape() {
    expect("{");
    std::vector<Dim> shape;
    bool has_type = false, has_order = false, has_shape = false;
    while (!accept("}")) {
      if (accept("'descr'") && !has_type) {
        expect(":");
        expect("'<f4'");
        has_type = true;
      } else if (accept("'fortran_order'") && !has_order) {
        expect(":");
        expect("False");
        has_order = true;
      } else if (accept("'shape'") && !has_shape) {
        expect(":");
        shape = tuple();
        has_shape = true;
      } else {
        refuse("one each of 'descr', 'fortran_order' and 'shape'");
      }
      if (!accept(",")) {
        expect("}");
        break;
      }
    }
    skip_spaces();
    if (rest_ != "\n") refuse("a newline at its end");
    if (!has_type || !has_order || !has_shape) {
      refuse("one each of 'descr', 'fortran_order' and 'shape'");
    }
    return shape;
  }

 private:
  void skip_spaces() {
    rest_.remove_prefix((std::min)(rest_.find_first_not_of(' '), rest_.size()));
  }
  bool accept(std::string_view token) {
    skip_spaces();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) refuse(token);
  }
  Dim size() {
    skip_spaces();
    Dim size = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
    if (error != std::errc{} || size < 0) refuse("sizes of at least 0 and below 2^63");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return size;
  }
  std::vector<Dim> tuple() {
    expect("(");
    std::vector<Dim> sizes{size()};
    expect(",");
    if (accept(")")) return sizes;
    sizes.push_back(size());
    accept(",");
    expect(")");
    return sizes;
  }
  [[noreturn]] void refuse(std::string_view what) const {
    fail<LoadError>(origin_,
                    ": the .npy header must describe a row-major float32 vector or matrix; at ",
                    "character ", text_.size() - rest_.size(), " it must have ", what,
                    ", it has \"", printable(rest_), "\"; save it again as such an array");
  }

  std::string_view text_, rest_, origin_;
};

}  // namespace detail

TENON_INLINE void write_npy(std::ostream& out, MatView<const float> matrix) {
  const Dim shape[] = {matrix.extent(0), matrix.extent(1)};
  detail::write_npy(out, shape, matrix.data, matrix.size());
}

TENON_INLINE void write_npy(std::ostream& out, std::span<const float> vector) {
  const Dim shape[] = {static_cast<Dim>(vector.size())};
  detail::write_npy(out, shape, vector.data(), shape[0]);
}

TENON_INLINE void write_npy(const std::filesystem::path& path, MatView<const float> matrix) {
  replace_file(path, [&](std::ostream& out) { write_npy(out, matrix); });
}

TENON_INLINE void write_npy(const std::filesystem::path& path, std::span<const float> vector) {
  replace_file(path, [&](std::ostream& out) { write_npy(out, vector); });
}

TENON_INLINE NpyArray npy_from_bytes(std::span<const std::byte> bytes, std::string_view origin) {
  ByteReader reader(bytes, origin);
  const auto text_of = [&](std::uint64_t count, Field field) {
    const auto taken = reader.take(count, field);
    return std::string_view{reinterpret_cast<const char*>(taken.data()), taken.size()};
  };
  if (const auto magic = text_of(detail::npy_magic.size(), {"the magic bytes"});
      magic != detail::npy_magic) {
    fail<LoadError>(origin,
                    ": must begin with the magic bytes of .npy format 1.0, it begins with \"",
                    printable(magic), "\"; save it again with numpy.save");
  }
  const auto length = reader.number<std::uint16_t>({"the header length"});
  NpyArray array;
  array.shape = detail::NpyHeader(text_of(length, {"the header"}), origin).shape();
  const std::uint64_t rows = static_cast<std::uint64_t>(array.shape.front());
  const std::uint64_t columns =
      array.shape.size() > 1 ? static_cast<std::uint64_t>(array.shape[1]) : 1;
  const std::uint64_t held = reader.remaining() / sizeof(float);
  // Dividing keeps the product of two sizes below 2^63 from overflowing.
  const bool fits = reader.remaining() % sizeof(float) == 0 &&
                    (columns == 0 ? held == 0 : held % columns == 0 && held / columns == rows);
  if (!fits) {
    fail<LoadError>(origin, ": the values must be float32 of shape ", shape_text(array.shape),
                    ", there are ", reader.remaining(),
                    " bytes of them; the file is damaged, save it again");
  }
  const auto values = reader.take(reader.remaining(), {"the values"});
  array.values.resize(static_cast<std::size_t>(held));
  if (held > 0) std::memcpy(array.values.data(), values.data(), values.size());
  return array;
}

TENON_INLINE NpyArray read_npy(const std::filesystem::path& path) {
  return npy_from_bytes(MappedFile(path).bytes(), path.string());
}

}  // namespace tenon::inline TENON_ABI
