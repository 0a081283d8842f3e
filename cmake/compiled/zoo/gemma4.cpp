#include "tenon/zoo/gemma4.hpp"
#include "tenon/model/registry.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Gemma4<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
