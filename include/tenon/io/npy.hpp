#pragma once
// NumPy's .npy files of float32 vectors and matrices, row-major, format 1.0.
// Source: numpy.lib.format in the NumPy manual.
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <span>
#include <string_view>
#include <vector>

#include "../core/types.hpp"
#include "../tensor/view.hpp"

namespace tenon::inline TENON_ABI {

// A vector [n] or a matrix [rows, columns], row-major.
struct NpyArray {
  std::vector<Dim> shape;
  std::vector<float> values;
};

// Write a matrix [rows, columns] or a vector [n], row-major. CapacityError when the stream refuses
// bytes; a file is replaced whole or left as it was, and RequestError says that it cannot be.
void write_npy(std::ostream& out, MatView<const float> matrix);
void write_npy(std::ostream& out, std::span<const float> vector);
void write_npy(const std::filesystem::path& path, MatView<const float> matrix);
void write_npy(const std::filesystem::path& path, std::span<const float> vector);

// Reads the bytes of a whole .npy file; LoadError, naming the origin, for any other type, order,
// rank or version, and when the values are not exactly those of the shape.
NpyArray npy_from_bytes(std::span<const std::byte> bytes, std::string_view origin = "npy bytes");
NpyArray read_npy(const std::filesystem::path& path);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "npy.inl"
#endif
