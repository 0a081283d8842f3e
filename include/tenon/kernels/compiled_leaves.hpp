#pragma once
// Which leaves of linear layers the library of tenon::compiled holds.
#include <concepts>

#include "../quant/blocks.hpp"
#include "../quant/dense.hpp"
#include "../quant/five_bits.hpp"
#include "../quant/iq4_nl.hpp"
#include "../quant/iq4_xs.hpp"
#include "../quant/k_quants.hpp"
#include "../quant/mxfp4.hpp"
#include "../quant/nvfp4.hpp"
#include "isa.hpp"

namespace tenon::inline TENON_ABI {

struct LinearLeaf;
template <class F>
const LinearLeaf& linear_leaf(Isa isa);

// The formats that cmake/compiled/linear_*.cpp instantiate.
template <class F>
concept CompiledLeaf = std::same_as<F, F32> || std::same_as<F, F16> || std::same_as<F, Bf16> ||
    std::same_as<F, Q8_0> || std::same_as<F, Q4_0> || std::same_as<F, Q4_1> ||
    std::same_as<F, Mxfp4> || std::same_as<F, Q5_0> || std::same_as<F, Q5_1> ||
    std::same_as<F, Q2_K> || std::same_as<F, Q3_K> || std::same_as<F, Q4_K> ||
    std::same_as<F, Q5_K> || std::same_as<F, Q6_K> || std::same_as<F, IQ4_NL> ||
    std::same_as<F, IQ4_XS> || std::same_as<F, Nvfp4>;

// One sentence where a program cannot have F's leaves: they are neither in the library nor are
// those of every format included, which is where EveryLinearLeaf is complete.
struct EveryLinearLeaf;
template <class F, class Every = EveryLinearLeaf>
constexpr bool explain_leaf() {
  constexpr bool at_hand = CompiledLeaf<F> || requires {
    sizeof(Every);
  };
  static_assert(at_hand,
                "tenon: tenon::compiled holds no kernels for this number format; include "
                "<tenon/kernels/every_format.hpp>, which has them for every format");
  return at_hand;
}

#if defined(TENON_COMPILED)
extern template const LinearLeaf& linear_leaf<F32>(Isa);
extern template const LinearLeaf& linear_leaf<F16>(Isa);
extern template const LinearLeaf& linear_leaf<Bf16>(Isa);
extern template const LinearLeaf& linear_leaf<Q8_0>(Isa);
extern template const LinearLeaf& linear_leaf<Q4_0>(Isa);
extern template const LinearLeaf& linear_leaf<Q4_1>(Isa);
extern template const LinearLeaf& linear_leaf<Mxfp4>(Isa);
extern template const LinearLeaf& linear_leaf<Q5_0>(Isa);
extern template const LinearLeaf& linear_leaf<Q5_1>(Isa);
extern template const LinearLeaf& linear_leaf<Q2_K>(Isa);
extern template const LinearLeaf& linear_leaf<Q3_K>(Isa);
extern template const LinearLeaf& linear_leaf<Q4_K>(Isa);
extern template const LinearLeaf& linear_leaf<Q5_K>(Isa);
extern template const LinearLeaf& linear_leaf<Q6_K>(Isa);
extern template const LinearLeaf& linear_leaf<IQ4_NL>(Isa);
extern template const LinearLeaf& linear_leaf<IQ4_XS>(Isa);
extern template const LinearLeaf& linear_leaf<Nvfp4>(Isa);
#endif

}  // namespace tenon::inline TENON_ABI
