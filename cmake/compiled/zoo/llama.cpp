#include "tenon/zoo/llama.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/mistral.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Llama<>>(const TensorSource&, Executor&, const BindOptions&);
template AnyModel bind_any<zoo::Mistral<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
