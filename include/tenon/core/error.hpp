#pragma once
// The exceptions of the library, and the one way their messages are built.
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

namespace detail {

// One piece of a message: a text or a number. Erasing the types here keeps the many places that
// build messages from costing a function each.
class Piece {
 public:
  Piece(std::string_view text) : text_(text) {}
  Piece(const std::string& text) : text_(text) {}
  Piece(const char* text) : text_(text) {}
  Piece(char c) : text_(digits_, 1) { digits_[0] = c; }
  template <class T>
  requires std::is_arithmetic_v<T> Piece(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      print(static_cast<double>(number));
    } else if constexpr (std::is_signed_v<T>) {
      print(static_cast<long long>(number));
    } else {
      print(static_cast<unsigned long long>(number));
    }
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;
  std::string_view text() const { return text_; }

 private:
  [[gnu::cold]] void print(long long n);
  [[gnu::cold]] void print(unsigned long long n);
  [[gnu::cold]] void print(double x);
  void end(const char* at) { text_ = {digits_, static_cast<std::size_t>(at - digits_)}; }

  char digits_[24];
  std::string_view text_;
};

[[gnu::cold]] std::string join(std::initializer_list<Piece> pieces);

}  // namespace detail

// Joins texts and numbers into one string, in any locale alike: message("layer ", 3, " has ...").
template <class... Parts>
std::string message(const Parts&... parts) {
  return detail::join({detail::Piece(parts)...});
}

// Throws E with a message of the pieces. A message names the thing, what it must be, what it is,
// and what to do: fail<LoadError>(path, ": version must be 2 or 3, the file has ", v, "; ...").
template <class E, class... Parts>
[[noreturn, gnu::cold]] void fail(const Parts&... parts) {
  throw E(detail::join({detail::Piece(parts)...}));
}

// Text from a file as it may appear in a message: control and non-ASCII bytes as \xNN, cut at 80.
std::string printable(std::string_view text);

// The message with the file or folder `origin` in front, unless it begins with that or with the
// path of something inside.
std::string with_origin(std::string_view origin, std::string_view what);

// Calls read(), which reads what came from the file or folder `origin`. Its LoadErrors and
// ShapeErrors get that name in front: whoever looks at keys and tensors does not know where these
// come from.
template <class Read>
decltype(auto) naming_origin(std::string_view origin, Read&& read) {
  try {
    return std::forward<Read>(read)();
  } catch (const LoadError& error) {
    throw LoadError(with_origin(origin, error.what()));
  } catch (const ShapeError& error) {
    throw ShapeError(with_origin(origin, error.what()));
  }
}

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "error.inl"
#endif
