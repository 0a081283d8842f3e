#include "tenon/kernels/every_format.hpp"

namespace tenon::inline TENON_ABI {
template const LinearLeaf& linear_leaf<Q2_K>(Isa);
template const LinearLeaf& linear_leaf<Q3_K>(Isa);
template const LinearLeaf& linear_leaf<Q4_K>(Isa);
template const LinearLeaf& linear_leaf<Q5_K>(Isa);
template const LinearLeaf& linear_leaf<Q6_K>(Isa);
template const LinearLeaf& linear_leaf<IQ4_XS>(Isa);
}  // namespace tenon::inline TENON_ABI
