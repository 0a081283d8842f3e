#pragma once
// Which leaves of linear layers tenon::compiled holds. Only TENON_COMPILED programs see this.
#include <concepts>

#include "../quant/blocks.hpp"
#include "../quant/dense.hpp"
#include "isa.hpp"

namespace tenon::inline TENON_ABI {

struct LinearLeaf;
template <class F>
const LinearLeaf& linear_leaf(Isa isa);

// The formats that cmake/compiled/linear_*.cpp instantiate.
template <class F>
concept CompiledLeaf = std::same_as<F, F32> || std::same_as<F, F16> || std::same_as<F, Bf16> ||
    std::same_as<F, Q8_0> || std::same_as<F, Q4_0> || std::same_as<F, Q4_1>;

// True when the program can have F's leaves: from the library, or from linear_leaves.hpp, where
// EveryLinearLeaf is complete.
struct EveryLinearLeaf;
template <class F, class Every = EveryLinearLeaf>
constexpr bool explain_leaf() {
  constexpr bool at_hand = CompiledLeaf<F> || requires {
    sizeof(Every);
  };
  static_assert(at_hand,
                "tenon: tenon::compiled holds no kernels for this number format; include "
                "<tenon/kernels/linear_leaves.hpp>, which has them for every format");
  return at_hand;
}

extern template const LinearLeaf& linear_leaf<F32>(Isa);
extern template const LinearLeaf& linear_leaf<F16>(Isa);
extern template const LinearLeaf& linear_leaf<Bf16>(Isa);
extern template const LinearLeaf& linear_leaf<Q8_0>(Isa);
extern template const LinearLeaf& linear_leaf<Q4_0>(Isa);
extern template const LinearLeaf& linear_leaf<Q4_1>(Isa);

}  // namespace tenon::inline TENON_ABI
