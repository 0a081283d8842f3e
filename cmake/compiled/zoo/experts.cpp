#include "tenon/model/registry.hpp"
#include "tenon/zoo/mixtral.hpp"
#include "tenon/zoo/qwen3moe.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Mixtral<>>(const TensorSource&, Executor&, const BindOptions&);
template AnyModel bind_any<zoo::Qwen3Moe<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
