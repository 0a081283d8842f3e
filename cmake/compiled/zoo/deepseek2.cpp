#include "tenon/zoo/deepseek2.hpp"
#include "tenon/model/registry.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::DeepSeek2<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
