#pragma once
// A closed list of formats, one of which is chosen per tensor or store at run time.
#include <algorithm>
#include <array>
#include <string>

#include "../core/error.hpp"
#include "format.hpp"

namespace tenon::inline TENON_ABI {

// AnyOf<Q8_0, F16> may hold either; a tag (index into the list) says which.
template <class... F>
struct AnyOf {
  static_assert(sizeof...(F) >= 1, "tenon: AnyOf needs at least one format");
  static_assert((explain_format<F>() && ...));
};

// The formats of a list; a bare format is a list of one.
template <class F>
struct FormatList {
  static_assert(explain_format<F>());
  static constexpr int size = 1;
  // Calls fn(F{}) for the format with this tag; 0 <= tag < size.
  template <class Fn>
  static constexpr decltype(auto) visit(int, Fn&& fn) {
    return fn(F{});
  }
  static std::string names() { return std::string(F::name); }
};
template <class First, class... Rest>
struct FormatList<AnyOf<First, Rest...>> {
  static constexpr int size = 1 + static_cast<int>(sizeof...(Rest));
  template <class Fn>
  static constexpr decltype(auto) visit(int tag, Fn&& fn) {
    if constexpr (sizeof...(Rest) == 0) {
      return fn(First{});
    } else {
      if (tag == 0) return fn(First{});
      return FormatList<AnyOf<Rest...>>::visit(tag - 1, fn);
    }
  }
  static std::string names() {
    std::string all(First::name);
    ((all += ", ", all += Rest::name), ...);
    return all;
  }
};

// The tag of the format whose ggml type id is `type`, or -1 when the list does not hold it.
template <class Formats>
int tag_of_ggml_type(int type) {
  for (int tag = 0; tag < FormatList<Formats>::size; ++tag) {
    if (FormatList<Formats>::visit(tag, [&]<class F>(F) {
          if constexpr (requires { F::ggml_type; }) {
            return F::ggml_type == type;
          } else {
            return false;
          }
        }))
      return tag;
  }
  return -1;
}

// The tag of the format of that name in any case of letters (Q4_K, q4_k), or -1.
template <class Formats>
constexpr int tag_of_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto same = [&](char a, char b) { return lower(a) == lower(b); };
  for (int tag = 0; tag < FormatList<Formats>::size; ++tag) {
    if (FormatList<Formats>::visit(tag, [&]<class F>(F) {
          return std::equal(F::name.begin(), F::name.end(), name.begin(), name.end(), same);
        }))
      return tag;
  }
  return -1;
}

}  // namespace tenon::inline TENON_ABI
