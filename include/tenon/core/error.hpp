#pragma once
// The exceptions of the library, and the one way their messages are built.
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include "abi.hpp"

namespace tenon::inline TENON_ABI {

// Base of everything tenon throws. Errors leave the object they came from as it was before the
// call.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// A file is not what it claims to be, or is damaged.
class LoadError : public Error {
  using Error::Error;
};
// A tensor or a size disagrees with the type it is bound to.
class ShapeError : public Error {
  using Error::Error;
};
// Text or token ids that the tokenizer cannot turn into the other.
class TokenizerError : public Error {
  using Error::Error;
};
// A caller's request (batch, options, token ids) is outside what the model or session accepts.
class RequestError : public Error {
  using Error::Error;
};
// The request is well formed but there is no room for it.
class CapacityError : public Error {
  using Error::Error;
};
// The caller's stop token was set before the work was done.
class Cancelled : public Error {
  using Error::Error;
};

// Joins streamable pieces into one string: message("layer ", 3, " has ...").
template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return std::move(out).str();
}

// Throws E with a message of the pieces. A message names the thing, what it must be, what it is,
// and what to do: fail<LoadError>(path, ": version must be 2 or 3, the file has ", v, "; ...").
template <class E, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw E(message(parts...));
}

// Text from a file as it may appear in a message: control and non-ASCII bytes as \xNN, cut at 80.
inline std::string printable(std::string_view text) {
  constexpr char hex[] = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, 80)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += {'\\', 'x', hex[byte >> 4], hex[byte & 15]};
    }
  }
  if (text.size() > 80) out += "...";
  return out;
}

}  // namespace tenon::inline TENON_ABI
