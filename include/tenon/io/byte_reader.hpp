#pragma once
// Reading numbers and strings from bytes that nobody has vouched for.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

// What is being read, for messages: Field{"the value type", key}.
struct Field {
  std::string_view what;
  std::string_view of = {};
};

// Walks a byte range from its start. Every read is checked against the end of the range first and
// throws a LoadError naming the origin, the field and the position; numbers are little-endian and
// need no alignment. Nothing is allocated: what it returns points into the range.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view origin)
      : bytes_(bytes), origin_(origin) {}

  std::uint64_t position() const { return at_; }
  std::uint64_t remaining() const { return bytes_.size() - at_; }

  // The next `count` bytes.
  std::span<const std::byte> take(std::uint64_t count, Field field);
  template <class T>
  requires std::is_arithmetic_v<T> T number(Field field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }
  // A 64-bit length and that many bytes, which may be anything.
  std::string_view text(Field field);
  // The next number, which announces items of at least `least_bytes` each: refused when the rest of
  // the range could not hold as many, so that what is allocated for them is bounded by the range.
  std::uint64_t count(std::uint64_t least_bytes, Field field);

 private:
  static std::string named(Field field);
  [[noreturn]] void cut_short(std::uint64_t count, Field field) const;

  std::span<const std::byte> bytes_;
  std::string_view origin_;
  std::size_t at_ = 0;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "byte_reader.inl"
#endif
