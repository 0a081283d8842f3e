#include "tenon/kernels/packed_leaf.hpp"
#include "tenon/quant/iq3_s.hpp"
#include "tenon/quant/q8_sums.hpp"

namespace tenon::inline TENON_ABI {
template const PackedLeaf& packed_leaf<F32>();
template const PackedLeaf& packed_leaf<F16>();
template const PackedLeaf& packed_leaf<Bf16>();
template const PackedLeaf& packed_leaf<Q8_0>();
template const PackedLeaf& packed_leaf<Q4_0>();
template const PackedLeaf& packed_leaf<Q4_1>();
template const PackedLeaf& packed_leaf<Q5_0>();
template const PackedLeaf& packed_leaf<Q5_1>();
template const PackedLeaf& packed_leaf<Q2_K>();
template const PackedLeaf& packed_leaf<Q3_K>();
template const PackedLeaf& packed_leaf<Q4_K>();
template const PackedLeaf& packed_leaf<Q5_K>();
template const PackedLeaf& packed_leaf<Q6_K>();
template const PackedLeaf& packed_leaf<IQ4_NL>();
template const PackedLeaf& packed_leaf<Mxfp4>();
template const PackedLeaf& packed_leaf<IQ4_XS>();
template const PackedLeaf& packed_leaf<Nvfp4>();
template const PackedLeaf& packed_leaf<IQ3_S>();
template const PackedLeaf& packed_leaf<Q8_1>();
template const PackedLeaf& packed_leaf<Q8_K>();
}  // namespace tenon::inline TENON_ABI
