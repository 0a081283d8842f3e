#pragma once
// The distinct layer types of a model. Code is instantiated once per kind, never per layer.
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../quant/dense.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
template <class List, class... T>
struct Unique {
  using type = List;
};
template <class... U, class T, class... Rest>
struct Unique<std::tuple<U...>, T, Rest...>
    : Unique<
          std::conditional_t<(std::is_same_v<T, U> || ...), std::tuple<U...>, std::tuple<U..., T>>,
          Rest...> {};

template <class T, class List>
inline constexpr int index_in = -1;
template <class T, class... U>
inline constexpr int index_in<T, std::tuple<U...>> = [] {
  int at = -1, i = 0;
  ((std::is_same_v<T, U> && at < 0 ? static_cast<void>(at = i++) : static_cast<void>(++i)), ...);
  return at;
}();

template <class Mixer>
inline constexpr bool takes_trees = requires {
  requires Mixer::MaskType::trees;
};
// The cache moves rows, and the mixer turns their keys.
template <class Mixer>
inline constexpr bool shifts = requires {
  requires Mixer::Store::shifts;
  &Mixer::template turn_keys<F32>;
};
template <class Mixer>
inline constexpr bool is_bounded = requires {
  requires Mixer::MaskType::bounded;
};

template <class List>
struct Owned;
template <class... T>
struct Owned<std::tuple<T...>> {
  using type = std::tuple<std::unique_ptr<T>...>;
};
}  // namespace detail

template <class... B>
struct Kinds {
  static constexpr int most = 8;
  static_assert(sizeof...(B) >= 1 && sizeof...(B) <= most,
                "tenon: Kinds takes 1 to 8 block types; differences in numbers belong in metadata");
  static constexpr int size = static_cast<int>(sizeof...(B));
  template <int I>
  using At = std::tuple_element_t<static_cast<std::size_t>(I), std::tuple<B...>>;

  // The distinct cache types, each of which is one store for all layers that use it.
  using Stores = typename detail::Unique<std::tuple<>, typename B::Mixer::Store...>::type;
  using OwnedStores = typename detail::Owned<Stores>::type;
  static constexpr bool forks = (B::Mixer::Store::forks && ...);
  static constexpr bool shifts = (detail::shifts<typename B::Mixer> && ...);
  static constexpr bool trees = (detail::takes_trees<typename B::Mixer> && ...);
  static constexpr int stores = static_cast<int>(std::tuple_size_v<Stores>);
  template <int I>
  static constexpr int store_of = detail::index_in<typename At<I>::Mixer::Store, Stores>;

  // For each kind, the index of its store and whether its mask is bounded.
  static constexpr int store_of_kind[] = {detail::index_in<typename B::Mixer::Store, Stores>...};
  static constexpr bool bounded[] = {detail::is_bounded<typename B::Mixer>...};

  // One list of layer weights per kind.
  template <class Formats>
  using Weights = std::tuple<std::vector<typename B::template Weights<Formats>>...>;

  // Calls fn(std::integral_constant<int, kind>{}).
  template <class Fn>
  static constexpr void visit(int kind, Fn&& fn) {
    [&]<int... I>(std::integer_sequence<int, I...>) {
      static_cast<void>(
          ((kind == I && (static_cast<void>(fn(std::integral_constant<int, I>{})), true)) || ...));
    }
    (std::make_integer_sequence<int, size>{});
  }
};

}  // namespace tenon::inline TENON_ABI
