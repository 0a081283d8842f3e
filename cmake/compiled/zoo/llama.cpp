#include "tenon/zoo/llama.hpp"
#include "tenon/model/registry.hpp"
#include "tenon/zoo/mistral.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::Llama<>>(const TensorSource&, Executor&);
template AnyModel bind_any<zoo::Mistral<>>(const TensorSource&, Executor&);
}  // namespace tenon::inline TENON_ABI
