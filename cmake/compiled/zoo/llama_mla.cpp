#include "tenon/zoo/llama_mla.hpp"
#include "tenon/model/registry.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::LlamaMla<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
