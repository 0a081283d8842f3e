#pragma once
#include "byte_reader.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::span<const std::byte> ByteReader::take(std::uint64_t count, Field field) {
  if (count > remaining()) cut_short(count, field);
  const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
  at_ += static_cast<std::size_t>(count);
  return taken;
}

TENON_INLINE std::string_view ByteReader::text(Field field) {
  const auto bytes = take(number<std::uint64_t>(field), field);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TENON_INLINE std::uint64_t ByteReader::count(std::uint64_t least_bytes, Field field) {
  const auto items = number<std::uint64_t>(field);
  if (items > remaining() / least_bytes) {
    fail<LoadError>(origin_, ": ", named(field), " must be at most ", remaining() / least_bytes,
                    " for the ", remaining(), " bytes that follow it, it is ", items,
                    "; the file is cut short or damaged, download or convert it again");
  }
  return items;
}

TENON_INLINE std::string ByteReader::named(Field field) {
  if (field.of.empty()) return std::string(field.what);
  return message(field.what, " of \"", printable(field.of), "\"");
}

TENON_INLINE void ByteReader::cut_short(std::uint64_t count, Field field) const {
  fail<LoadError>(origin_, ": ", named(field), " at byte ", at_, " must have ", count,
                  " bytes, the file has ", remaining(),
                  " left; it is cut short or damaged, download or convert it again");
}

}  // namespace tenon::inline TENON_ABI
