#include "tenon/model/registry.hpp"
#include "tenon/zoo/gemma2.hpp"
#include "tenon/zoo/gemma3.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Gemma2<>>(const TensorSource&, Executor&, const BindOptions&);
template AnyModel bind_any<zoo::Gemma3<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
