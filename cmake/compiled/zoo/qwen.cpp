#include "tenon/model/registry.hpp"
#include "tenon/zoo/qwen2.hpp"
#include "tenon/zoo/qwen3.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Qwen2<>>(const TensorSource&, Executor&, const BindOptions&);
template AnyModel bind_any<zoo::Qwen3<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
