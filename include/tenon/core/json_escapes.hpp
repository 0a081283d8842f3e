#pragma once
// The escapes of JSON strings (RFC 8259, section 7), for all that read or write them.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

inline constexpr std::string_view hex_digits = "0123456789abcdef";

// What a backslash and what follows it stand for.
struct JsonEscape {
  std::uint32_t code = 0;     // the character
  std::size_t size = 0;       // bytes behind the backslash, up to the fault if there is one
  std::string_view expected;  // what had to stand there instead; empty: it is an escape
};
// `text` starts behind the backslash. Two \u escapes that are halves of one character are read
// together; a half alone is a fault.
JsonEscape json_escape(std::string_view text);

// `text` as it stands in a JSON string, without the quotes: quotes, backslashes and control
// characters escaped, with `ascii` all that is not printable ASCII. Bytes that are not UTF-8 stay.
std::string json_escaped(std::string_view text, bool ascii = false);

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "json_escapes.inl"
#endif
