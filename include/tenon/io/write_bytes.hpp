#pragma once
// Writing the bytes of a tensor to a stream, part by part where they have to be made.
#include <algorithm>
#include <ostream>
#include <vector>

#include "../core/stored_bytes.hpp"

namespace tenon::inline TENON_ABI {

inline void write_bytes(std::ostream& out, const StoredBytes& bytes) {
  constexpr std::size_t part = std::size_t{4} << 20;
  std::vector<std::byte> scratch(bytes.made() ? (std::min)(part, bytes.size()) : 0);
  for (std::size_t at = 0; at < bytes.size() && out;) {
    const std::size_t some = bytes.made() ? (std::min)(part, bytes.size() - at) : bytes.size();
    const auto piece = bytes.made() ? bytes.read(at, std::span(scratch).first(some))
                                    : std::span<const std::byte>(bytes);
    out.write(reinterpret_cast<const char*>(piece.data()), static_cast<std::streamsize>(some));
    bytes.done(at, some);
    at += some;
  }
}

}  // namespace tenon::inline TENON_ABI
