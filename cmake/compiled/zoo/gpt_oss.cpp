#include "tenon/zoo/gpt_oss.hpp"
#include "tenon/model/registry.hpp"

namespace tenon::inline TENON_ABI {
template AnyModel bind_any<zoo::GptOss<>>(const TensorSource&, Executor&, const BindOptions&);
}  // namespace tenon::inline TENON_ABI
