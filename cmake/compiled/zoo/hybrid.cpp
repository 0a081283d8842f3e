#include "tenon/zoo/hybrid.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/llada.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Hybrid<>>(const TensorSource&, Executor&, const BindOptions&);
template AnyModel bind_any<zoo::Llada<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
