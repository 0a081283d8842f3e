#pragma once
// What the configurations of Hugging Face checkpoints say, family by family, in the keys of GGUF.
// Source: the configuration classes of the transformers library; where a key is missing, its
// default there.
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../core/metadata.hpp"
#include "hugging_face_rope.inl"

namespace tenon::inline TENON_ABI::detail {

// Every layer must be of this type where the file lists them.
inline void check_layer_types(JsonConfig& c, const std::vector<std::string_view>& period) {
  if (!c.has("layer_types")) return;
  const JsonValue& types = *c.json().find("layer_types");
  if (types.list() == nullptr) c.wrong("layer_types", "a list", types);
  for (std::size_t i = 0; i < types.list()->size(); ++i) {
    const std::string_view wanted = period[i % period.size()];
    const JsonValue& type = (*types.list())[i];
    if (type == wanted) continue;
    c.wrong("layer_types", message("\"", wanted, "\" for layer ", i, " in this family"), type);
  }
}

// What all families share, with their defaults.
struct Defaults {
  double epsilon = 1e-6;
  bool tied = false, rope = true;
  Dim head_dim = 0;  // 0: hidden_size / num_attention_heads
  double rope_base = 10000;
};
inline void read_common(JsonConfig& c, Family& f, const Defaults& d) {
  f.metadata.set("general.architecture", f.rules.architecture);
  const Dim width = c.size("hidden_size"), context = c.size("max_position_embeddings");
  f.layers = c.size("num_hidden_layers");
  f.heads = c.size("num_attention_heads");
  f.kv_heads = c.size_or("num_key_value_heads", f.heads);
  f.head_dim = c.size_or("head_dim", d.head_dim == 0 ? width / f.heads : d.head_dim);
  if (f.heads % f.kv_heads != 0 || f.head_dim == 0) {
    c.wrong("num_attention_heads",
            message("a multiple of num_key_value_heads = ", f.kv_heads,
                    " and at most hidden_size = ", width),
            f.heads);
  }
  f.tied = c.flag_or("tie_word_embeddings", d.tied);
  f.set("vocab_size", c.size("vocab_size"));
  f.set("context_length", context);
  f.set("embedding_length", width);
  f.set("block_count", f.layers);
  f.set("feed_forward_length", c.size("intermediate_size"));
  f.set("attention.head_count", f.heads);
  const double epsilon = c.number_or("rms_norm_eps", d.epsilon);
  if (!(epsilon >= 0 && epsilon < 1)) c.damaged("rms_norm_eps", "a number in [0, 1)", epsilon);
  f.set("attention.layer_norm_rms_epsilon", epsilon);
  if (!d.rope) return;
  f.set("attention.head_count_kv", f.kv_heads);
  f.set("attention.key_length", f.head_dim);
  f.set("attention.value_length", f.head_dim);
  f.set("rope.dimension_count", f.head_dim);
  read_rope(c, f, {.base = d.rope_base, .context = context, .turned = f.head_dim});
  c.must_be("partial_rotary_factor", {1.0});
}

inline void read_llama(JsonConfig& c, Family& f, std::string_view type) {
  Defaults d;
  if (type != "llama") d.epsilon = type == "mixtral" ? 1e-5 : 1e-6;
  if (type == "mixtral") d.rope_base = 1e6;
  read_common(c, f, d);
  c.must_be("hidden_act", {"silu", "swish"});
  if (type == "llama") {
    f.qkv_bias = f.o_bias = c.flag_or("attention_bias", false);
    c.must_be("mlp_bias", {false});
  } else {
    // A Mistral without the key has a window; null means none.
    const Dim usual = type == "mistral" && c.json().find("sliding_window") == nullptr ? 4096 : 0;
    const Dim window = c.size_or("sliding_window", usual);
    if (window > 0) f.set("attention.sliding_window", window);
  }
  if (type == "mixtral") {
    f.experts = c.size_or("num_local_experts", 8);
    f.set("expert_count", f.experts);
    f.set("expert_used_count", c.size_or("num_experts_per_tok", 2));
  }
}

inline void read_qwen(JsonConfig& c, Family& f, std::string_view type) {
  read_common(c, f, {.head_dim = type == "qwen2" ? 0 : 128});
  c.must_be("hidden_act", {"silu", "swish"});
  // The window and the layers it begins at count only with this flag.
  c.must_be("use_sliding_window", {false});
  c.accept({"sliding_window", "max_window_layers"});
  check_layer_types(c, {"full_attention"});
  if (type == "qwen2") {
    f.qkv_bias = c.flag_or("attention_bias", true);
  } else {
    f.qkv_bias = f.o_bias = c.flag_or("attention_bias", false);
  }
  if (type != "qwen3_moe") return;
  f.experts = c.size_or("num_experts", 128);
  f.set("expert_count", f.experts);
  f.set("expert_used_count", c.size_or("num_experts_per_tok", 8));
  f.set("expert_feed_forward_length", c.size_or("moe_intermediate_size", 768));
  f.set("expert_weights_norm", c.flag_or("norm_topk_prob", false));
  c.must_be("decoder_sparse_step", {1});
  c.must_be("mlp_only_layers", {JsonValue::List()});
}

inline void read_gemma(JsonConfig& c, Family& f, std::string_view type) {
  const bool third = type != "gemma2";
  read_common(c, f, {.tied = true, .head_dim = 256, .rope_base = third ? 1e6 : 1e4});
  c.must_be("hidden_act", {"gelu_pytorch_tanh"});
  c.must_be("hidden_activation", {"gelu_pytorch_tanh"});
  f.qkv_bias = f.o_bias = c.flag_or("attention_bias", false);
  f.set("attention.sliding_window", c.size_or("sliding_window", 4096));
  // The scale follows from sizes, as gemma_scale.hpp knows it.
  const double scalar = c.number_or("query_pre_attn_scalar", 256);
  const bool of_27b = f.layers == (third ? 62 : 46);
  const Dim wanted = of_27b ? c.size("hidden_size") / f.heads : f.head_dim;
  if (scalar != static_cast<double>(wanted)) {
    c.wrong("query_pre_attn_scalar", message(wanted), scalar);
  }
  if (third) {
    f.set("rope.freq_base_swa", c.positive_or("rope_local_base_freq", 1e4));
    c.must_be("sliding_window_pattern", {6});
    c.must_be("_sliding_window_pattern", {6});
    c.must_be("use_bidirectional_attention", {false});
    const std::string_view local = "sliding_attention";
    check_layer_types(c, {local, local, local, local, local, "full_attention"});
    for (const char* cap : {"attn_logit_softcapping", "final_logit_softcapping"}) {
      if (c.has(cap)) c.wrong(cap, "null", *c.json().find(cap));
    }
  } else {
    check_layer_types(c, {"sliding_attention", "full_attention"});
    f.set("attn_logit_softcapping", c.positive_or("attn_logit_softcapping", 50));
    f.set("final_logit_softcapping", c.positive_or("final_logit_softcapping", 30));
  }
}

inline void read_phi3(JsonConfig& c, Family& f) {
  read_common(c, f, {.epsilon = 1e-5, .rope = false});
  c.must_be("hidden_act", {"silu", "swish"});
  c.must_be("attention_bias", {false});
  const double part = c.number_or("partial_rotary_factor", 1);
  if (!(part > 0 && part <= 1)) c.wrong("partial_rotary_factor", "in (0, 1]", part);
  const Dim turned = static_cast<Dim>(static_cast<double>(f.head_dim) * part);
  f.set("attention.head_count_kv", f.kv_heads);
  f.set("rope.dimension_count", turned);
  if (const Dim window = c.size_or("sliding_window", 0)) f.set("attention.sliding_window", window);
  const Dim context = c.size("max_position_embeddings");
  read_rope(c, f,
            {.context = context,
             .original = c.size_or("original_max_position_embeddings", 4096),
             .turned = turned,
             .longrope = true});
}

inline void read_deepseek(JsonConfig& c, Family& f, std::string_view type) {
  const bool third = type == "deepseek_v3";
  read_common(c, f, {.rope = false, .head_dim = 1});
  c.must_be("hidden_act", {"silu", "swish"});
  c.must_be("attention_bias", {false});
  c.must_be("rope_interleave", {true});
  const Dim rope = c.size("qk_rope_head_dim"), value = c.size("v_head_dim");
  f.set("attention.head_count_kv", f.heads);
  if (const Dim rank = c.size_or("q_lora_rank", 0)) f.set("attention.q_lora_rank", rank);
  f.set("attention.kv_lora_rank", c.size("kv_lora_rank"));
  f.set("attention.key_length", c.size("qk_nope_head_dim") + rope);
  f.set("attention.value_length", value);
  f.set("rope.dimension_count", rope);
  read_rope(c, f, {.context = c.size("max_position_embeddings"), .turned = rope, .logits = true});
  c.must_be("moe_layer_freq", {1});
  c.accept({"qk_head_dim"});
  f.extra_layers = c.count_or("num_nextn_predict_layers", 0);
  const Dim dense = c.count_or("first_k_dense_replace", third ? 3 : 0);
  f.experts = c.size_or("n_routed_experts", 0);
  f.set("leading_dense_block_count", f.experts == 0 ? f.layers : dense);
  if (f.experts == 0) {
    return c.accept({"n_shared_experts", "moe_intermediate_size", "num_experts_per_tok", "n_group",
                     "topk_group", "topk_method", "scoring_func", "norm_topk_prob",
                     "routed_scaling_factor"});
  }
  f.set("expert_count", f.experts);
  f.set("expert_used_count", c.size("num_experts_per_tok"));
  f.set("expert_shared_count", c.count_or("n_shared_experts", 0));
  f.set("expert_feed_forward_length", c.size("moe_intermediate_size"));
  f.set("expert_weights_scale", c.positive_or("routed_scaling_factor", third ? 2.5 : 1.0));
  f.set("expert_weights_norm", c.flag_or("norm_topk_prob", third));
  const std::string scoring = c.text_or("scoring_func", third ? "sigmoid" : "softmax");
  if (scoring != "sigmoid" && scoring != "softmax") {
    c.wrong("scoring_func", "\"sigmoid\" or \"softmax\"", scoring);
  }
  f.set("expert_gating_func", Dim{scoring == "sigmoid" ? 2 : 1});
  // "greedy" has no groups; the zoo takes a group's best expert with softmax, two with sigmoid.
  const std::string method = c.text_or("topk_method", third ? "noaux_tc" : "greedy");
  const std::string grouped = scoring == "sigmoid" ? "noaux_tc" : "group_limited_greedy";
  if (method != "greedy" && method != grouped) {
    c.wrong("topk_method", message("\"greedy\" or \"", grouped, "\""), method);
  }
  const Dim groups = c.size_or("n_group", third ? 8 : 1),
            used = c.size_or("topk_group", third ? 4 : 1);
  if (method == "greedy" || groups == 1) return;
  f.set("expert_group_count", groups);
  f.set("expert_group_used_count", used);
}

inline void read_gpt_oss(JsonConfig& c, Family& f) {
  read_common(c, f, {.epsilon = 1e-5, .head_dim = 64, .rope_base = 150000});
  c.must_be("hidden_act", {"silu"});
  c.must_be("swiglu_limit", {7.0});
  f.qkv_bias = f.o_bias = c.flag_or("attention_bias", true);
  f.set("attention.sliding_window", c.size_or("sliding_window", 128));
  check_layer_types(c, {"sliding_attention", "full_attention"});
  f.experts = c.size_or("num_local_experts", 128);
  f.set("expert_count", f.experts);
  f.set("expert_used_count", c.size_or("num_experts_per_tok", 4));
  f.set("expert_feed_forward_length", c.size("intermediate_size"));
  c.accept({"experts_per_token", "initial_context_length"});  // what the two above are called too
}

// LoadError names a key that is missing, not understood, or that asks for what no family does. The
// keys that change nothing are appended to `ignored`.
inline Family read_family(JsonConfig& c, std::vector<std::string>& ignored) {
  std::string type = c.text_or("model_type", "");
  Family f;
  f.rules = model_rules(type);
  if (f.rules.architecture.empty()) {
    c.wrong("model_type", message("one of ", model_types), type);
  }
  c.accept({"architectures", "quantization_config", "bos_token_id", "eos_token_id"});
  if (f.rules.architecture == "llama") {
    read_llama(c, f, type);
  } else if (type.starts_with("qwen")) {
    read_qwen(c, f, type);
  } else if (type.starts_with("gemma")) {
    read_gemma(c, f, type);
  } else if (type == "phi3") {
    read_phi3(c, f);
  } else if (type == "gpt_oss") {
    read_gpt_oss(c, f);
  } else {
    read_deepseek(c, f, type);
  }
  for (std::string& key : c.refuse_unread({"torch_dtype",
                                           "dtype",
                                           "transformers_version",
                                           "use_cache",
                                           "pad_token_id",
                                           "attention_dropout",
                                           "hidden_dropout",
                                           "resid_pdrop",
                                           "embd_pdrop",
                                           "attn_pdrop",
                                           "initializer_range",
                                           "pretraining_tp",
                                           "output_router_logits",
                                           "router_aux_loss_coef",
                                           "router_jitter_noise",
                                           "aux_loss_alpha",
                                           "seq_aux",
                                           "ep_size",
                                           "auto_map",
                                           "cache_implementation",
                                           "attn_implementation",
                                           "max_window_layers",
                                           "id2label",
                                           "label2id",
                                           "problem_type",
                                           "torchscript",
                                           "unsloth_version",
                                           "unsloth_fixed",
                                           "bos_token",
                                           "eos_token"})) {
    ignored.push_back(std::move(key));
  }
  return f;
}

}  // namespace tenon::inline TENON_ABI::detail
