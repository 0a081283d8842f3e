#pragma once
// Every family of the zoo, for programs that open whatever they are given. One that links
// tenon::zoo does not compile them.
#include "../model/registry.hpp"
#include "deepseek2.hpp"
#include "gemma2.hpp"
#include "gemma3.hpp"
#include "gemma4.hpp"
#include "gpt_oss.hpp"
#include "hybrid.hpp"
#include "llada.hpp"
#include "llama.hpp"
#include "llama_mla.hpp"
#include "mistral.hpp"
#include "mixtral.hpp"
#include "phi3.hpp"
#include "qwen2.hpp"
#include "qwen3.hpp"
#include "qwen3moe.hpp"

namespace tenon::inline TENON_ABI {

namespace zoo {
// Where an architecture has several types, the first that the checkpoint asks for is used.
using All =
    Registry<Entry<"llama", Mixtral<>, Mistral<>, Llama<>>, Entry<"qwen2", Qwen2<>>,
             Entry<"qwen3", Qwen3<>>, Entry<"qwen3moe", Qwen3Moe<>>, Entry<"gemma2", Gemma2<>>,
             Entry<"gemma3", Gemma3<>>, Entry<"gemma4", Gemma4<>>, Entry<"deepseek2", DeepSeek2<>>,
             Entry<"gpt-oss", GptOss<>>, Entry<"phi3", Phi3Long, Phi3<>>, Entry<"llada", Llada<>>,
             Entry<"hybrid", Hybrid<>>, Entry<"llama-mla", LlamaMla<>>>;
}  // namespace zoo

#if defined(TENON_ZOO)
extern template AnyModel bind_any<zoo::Mixtral<>>(const TensorSource&, Executor&,
                                                  const BindOptions&);
extern template AnyModel bind_any<zoo::Mistral<>>(const TensorSource&, Executor&,
                                                  const BindOptions&);
extern template AnyModel bind_any<zoo::Llama<>>(const TensorSource&, Executor&, const BindOptions&);
extern template AnyModel bind_any<zoo::Qwen2<>>(const TensorSource&, Executor&, const BindOptions&);
extern template AnyModel bind_any<zoo::Qwen3<>>(const TensorSource&, Executor&, const BindOptions&);
extern template AnyModel bind_any<zoo::Qwen3Moe<>>(const TensorSource&, Executor&,
                                                   const BindOptions&);
extern template AnyModel bind_any<zoo::Gemma2<>>(const TensorSource&, Executor&,
                                                 const BindOptions&);
extern template AnyModel bind_any<zoo::Gemma3<>>(const TensorSource&, Executor&,
                                                 const BindOptions&);
extern template AnyModel bind_any<zoo::Gemma4<>>(const TensorSource&, Executor&,
                                                 const BindOptions&);
extern template AnyModel bind_any<zoo::DeepSeek2<>>(const TensorSource&, Executor&,
                                                    const BindOptions&);
extern template AnyModel bind_any<zoo::GptOss<>>(const TensorSource&, Executor&,
                                                 const BindOptions&);
extern template AnyModel bind_any<zoo::Phi3Long>(const TensorSource&, Executor&,
                                                 const BindOptions&);
extern template AnyModel bind_any<zoo::Phi3<>>(const TensorSource&, Executor&, const BindOptions&);
extern template AnyModel bind_any<zoo::Llada<>>(const TensorSource&, Executor&, const BindOptions&);
extern template AnyModel bind_any<zoo::Hybrid<>>(const TensorSource&, Executor&,
                                                 const BindOptions&);
extern template AnyModel bind_any<zoo::LlamaMla<>>(const TensorSource&, Executor&,
                                                   const BindOptions&);
#endif

}  // namespace tenon::inline TENON_ABI
