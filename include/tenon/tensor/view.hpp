#pragma once
// Non-owning views of row-major data. A view's extents are static, dynamic (`dyn`) or mixed.
#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
template <std::size_t N>
struct RunTimeDims {
  Dim dims[N];
};
template <>
struct RunTimeDims<0> {};  // an empty std::array would still cost eight bytes in every view
}  // namespace detail

// The shape of a view: Extents<dyn, 64> is "any number of rows of 64".
template <Dim... D>
class Extents {
 public:
  static constexpr std::size_t rank = sizeof...(D);
  static constexpr std::size_t dynamic = ((D == dyn ? 1 : 0) + ... + 0);

  constexpr Extents() = default;
  // One value per axis; a static axis must be given its own value.
  template <std::convertible_to<Dim>... I>
  requires(sizeof...(I) == rank && rank > 0) constexpr explicit Extents(I... sizes) {
    if constexpr (dynamic > 0) {
      const Dim all[] = {static_cast<Dim>(sizes)...};
      for (std::size_t axis = 0, k = 0; axis < rank; ++axis) {
        if (fixed[axis] == dyn) run_time_.dims[k++] = all[axis];
      }
    }
  }
  constexpr Dim operator()(std::size_t axis) const {
    if constexpr (dynamic > 0) {
      if (fixed[axis] != dyn) return fixed[axis];
      std::size_t k = 0;
      for (std::size_t i = 0; i < axis; ++i) k += fixed[i] == dyn ? 1u : 0u;
      return run_time_.dims[k];
    } else {
      return fixed[axis];
    }
  }

 private:
  static constexpr std::array<Dim, rank> fixed{D...};
  [[no_unique_address]] detail::RunTimeDims<dynamic> run_time_{};
};

template <class T, class E>
struct View {
  T* data = nullptr;
  [[no_unique_address]] E extents{};

  constexpr View() = default;
  constexpr View(T* pointer, E shape) : data(pointer), extents(shape) {}
  constexpr Dim extent(std::size_t axis) const { return extents(axis); }
  constexpr Dim size() const {
    Dim n = 1;
    for (std::size_t axis = 0; axis < E::rank; ++axis) n *= extents(axis);
    return n;
  }
  template <std::convertible_to<Dim>... I>
  requires(sizeof...(I) == E::rank) constexpr T& operator()(I... indices) const {
    Dim at = 0;
    std::size_t axis = 0;
    ((at = at * extents(axis++) + static_cast<Dim>(indices)), ...);
    return data[at];
  }
  // Start of slice i of the first axis.
  constexpr T* row(Dim i) const {
    for (std::size_t axis = 1; axis < E::rank; ++axis) i *= extents(axis);
    return data + i;
  }
  constexpr operator View<const T, E>() const requires(!std::is_const_v<T>) {
    return {data, extents};
  }
};

template <class T>
using MatView = View<T, Extents<dyn, dyn>>;

template <class T>
constexpr MatView<T> matrix(T* data, Dim rows, Dim columns) {
  return {data, Extents<dyn, dyn>(rows, columns)};
}

}  // namespace tenon::inline TENON_ABI
