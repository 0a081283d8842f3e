#include "tenon/zoo/phi3.hpp"
#include "tenon/model/registry.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Phi3<>>(const TensorSource&, Executor&, const BindOptions&);
template AnyModel bind_any<zoo::Phi3Long>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
