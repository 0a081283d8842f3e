#include "tenon/kernels/every_format.hpp"

namespace tenon::inline TENON_ABI {
template const LinearLeaf& linear_leaf<Q8_0>(Isa);
template const LinearLeaf& linear_leaf<Q4_0>(Isa);
template const LinearLeaf& linear_leaf<Q4_1>(Isa);
template const LinearLeaf& linear_leaf<Q5_0>(Isa);
template const LinearLeaf& linear_leaf<Q5_1>(Isa);
template const LinearLeaf& linear_leaf<IQ4_NL>(Isa);
template const LinearLeaf& linear_leaf<Mxfp4>(Isa);
template const LinearLeaf& linear_leaf<Nvfp4>(Isa);
}  // namespace tenon::inline TENON_ABI
