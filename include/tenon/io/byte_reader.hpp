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
  std::span<const std::byte> take(std::uint64_t count, Field field) {
    if (count > remaining()) cut_short(count, field);
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  template <class T>
  requires std::is_arithmetic_v<T> T number(Field field) {
    T value;
    std::memcpy(&value, take(sizeof(T), field).data(), sizeof(T));
    return value;
  }
  // A 64-bit length and that many bytes, which may be anything.
  std::string_view text(Field field) {
    const auto bytes = take(number<std::uint64_t>(field), field);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  // The next number, which announces items of at least `least_bytes` each: refused when the rest of
  // the range could not hold as many, so that what is allocated for them is bounded by the range.
  std::uint64_t count(std::uint64_t least_bytes, Field field) {
    const auto items = number<std::uint64_t>(field);
    if (items > remaining() / least_bytes) {
      fail<LoadError>(origin_, ": ", named(field), " must be at most ", remaining() / least_bytes,
                      " for the ", remaining(), " bytes that follow it, it is ", items,
                      "; the file is cut short or damaged, download or convert it again");
    }
    return items;
  }

 private:
  static std::string named(Field field) {
    if (field.of.empty()) return std::string(field.what);
    return message(field.what, " of \"", printable(field.of), "\"");
  }
  [[noreturn]] void cut_short(std::uint64_t count, Field field) const {
    fail<LoadError>(origin_, ": ", named(field), " at byte ", at_, " must have ", count,
                    " bytes, the file has ", remaining(),
                    " left; it is cut short or damaged, download or convert it again");
  }

  std::span<const std::byte> bytes_;
  std::string_view origin_;
  std::size_t at_ = 0;
};

}  // namespace tenon::inline TENON_ABI
