#include "tenon/kernels/every_format.hpp"

namespace tenon::inline TENON_ABI {
template const LinearLeaf& linear_leaf<F32>(Isa);
template const LinearLeaf& linear_leaf<F16>(Isa);
template const LinearLeaf& linear_leaf<Bf16>(Isa);
}  // namespace tenon::inline TENON_ABI
