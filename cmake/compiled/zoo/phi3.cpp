#include "tenon/zoo/phi3.hpp"
#include "tenon/model/registry.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Phi3<>>(const TensorSource&, Executor&);
template AnyModel bind_any<zoo::Phi3Long>(const TensorSource&, Executor&);
}  // namespace tenon::inline TENON_ABI
