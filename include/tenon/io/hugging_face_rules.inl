#pragma once
// Which tensor of a Hugging Face checkpoint is which of a GGUF file, and how they differ.
#include <string>
#include <string_view>
#include <vector>

namespace tenon::inline TENON_ABI::detail {

enum class Change {
  none,
  query_pairs,  // rows: pairs that turn are halves there, neighbours here
  key_pairs,    // the same with as many heads as there are keys
  plus_one,     // the gain is 1 + the weight
};
// by_config: a bias; whether it is there is what the configuration says.
enum class Need { required, optional, by_config };

// A tensor of every layer; {e} stands for the number of an expert, whose tensors are one here.
struct TensorRule {
  std::string_view theirs;  // after "model.layers.3."
  std::string_view ours;    // after "blk.3."
  Change change = Change::none;
  Need need = Need::required;
};

struct ModelRules {
  std::string_view architecture;  // in GGUF
  std::vector<TensorRule> layer;
  Change norms = Change::none;  // of the last norm
};

inline void add_attention(std::vector<TensorRule>& rules, bool pairs) {
  const Change q = pairs ? Change::query_pairs : Change::none;
  const Change k = pairs ? Change::key_pairs : Change::none;
  rules.insert(rules.end(),
               {{"self_attn.q_proj.weight", "attn_q.weight", q},
                {"self_attn.q_proj.bias", "attn_q.bias", q, Need::by_config},
                {"self_attn.k_proj.weight", "attn_k.weight", k},
                {"self_attn.k_proj.bias", "attn_k.bias", k, Need::by_config},
                {"self_attn.v_proj.weight", "attn_v.weight"},
                {"self_attn.v_proj.bias", "attn_v.bias", Change::none, Need::by_config},
                {"self_attn.o_proj.weight", "attn_output.weight"},
                {"self_attn.o_proj.bias", "attn_output.bias", Change::none, Need::by_config}});
}
inline void add_mlp(std::vector<TensorRule>& rules, Need need = Need::required) {
  rules.insert(rules.end(), {{"mlp.gate_proj.weight", "ffn_gate.weight", Change::none, need},
                             {"mlp.up_proj.weight", "ffn_up.weight", Change::none, need},
                             {"mlp.down_proj.weight", "ffn_down.weight", Change::none, need}});
}
inline void add_experts(std::vector<TensorRule>& rules, Need need = Need::required) {
  rules.insert(rules.end(),
               {{"mlp.gate.weight", "ffn_gate_inp.weight", Change::none, need},
                {"mlp.experts.{e}.gate_proj.weight", "ffn_gate_exps.weight", Change::none, need},
                {"mlp.experts.{e}.up_proj.weight", "ffn_up_exps.weight", Change::none, need},
                {"mlp.experts.{e}.down_proj.weight", "ffn_down_exps.weight", Change::none, need}});
}
inline void add_qk_norms(std::vector<TensorRule>& rules, Change change = Change::none) {
  rules.insert(rules.end(), {{"self_attn.q_norm.weight", "attn_q_norm.weight", change},
                             {"self_attn.k_norm.weight", "attn_k_norm.weight", change}});
}

// The rules of a family by its model_type; no architecture when there are none.
inline ModelRules model_rules(std::string_view type) {
  ModelRules model;
  auto& rules = model.layer;
  const auto norms = [&] {
    rules.push_back({"input_layernorm.weight", "attn_norm.weight"});
    rules.push_back({"post_attention_layernorm.weight", "ffn_norm.weight"});
  };
  if (type == "llama" || type == "mistral" || type == "mixtral") {
    model.architecture = "llama";
    norms();
    add_attention(rules, true);
    if (type == "mixtral") {
      rules.insert(rules.end(),
                   {{"block_sparse_moe.gate.weight", "ffn_gate_inp.weight"},
                    {"block_sparse_moe.experts.{e}.w1.weight", "ffn_gate_exps.weight"},
                    {"block_sparse_moe.experts.{e}.w3.weight", "ffn_up_exps.weight"},
                    {"block_sparse_moe.experts.{e}.w2.weight", "ffn_down_exps.weight"}});
    } else {
      add_mlp(rules);
    }
  } else if (type == "qwen2" || type == "qwen3" || type == "qwen3_moe") {
    model.architecture = type == "qwen2" ? "qwen2" : type == "qwen3" ? "qwen3" : "qwen3moe";
    norms();
    add_attention(rules, false);
    if (type != "qwen2") add_qk_norms(rules);
    if (type == "qwen3_moe") {
      add_experts(rules);
    } else {
      add_mlp(rules);
    }
  } else if (type == "gemma2" || type == "gemma3_text") {
    model.architecture = type == "gemma2" ? "gemma2" : "gemma3";
    model.norms = Change::plus_one;
    rules = {{"input_layernorm.weight", "attn_norm.weight", Change::plus_one},
             {"post_attention_layernorm.weight", "post_attention_norm.weight", Change::plus_one},
             {"pre_feedforward_layernorm.weight", "ffn_norm.weight", Change::plus_one},
             {"post_feedforward_layernorm.weight", "post_ffw_norm.weight", Change::plus_one}};
    add_attention(rules, false);
    if (type != "gemma2") add_qk_norms(rules, Change::plus_one);
    add_mlp(rules);
  } else if (type == "phi3") {
    model.architecture = "phi3";
    norms();
    rules.insert(rules.end(), {{"self_attn.qkv_proj.weight", "attn_qkv.weight"},
                               {"self_attn.o_proj.weight", "attn_output.weight"},
                               {"mlp.gate_up_proj.weight", "ffn_up.weight"},
                               {"mlp.down_proj.weight", "ffn_down.weight"}});
  } else if (type == "gpt_oss") {
    model.architecture = "gpt-oss";
    rules = {{"input_layernorm.weight", "attn_norm.weight"},
             {"post_attention_layernorm.weight", "post_attention_norm.weight"},
             {"self_attn.sinks", "attn_sinks.weight"},
             {"mlp.router.weight", "ffn_gate_inp.weight"},
             {"mlp.router.bias", "ffn_gate_inp.bias"}};
    add_attention(rules, false);  // its experts are stored in a way of their own
  } else if (type == "deepseek_v2" || type == "deepseek_v3") {
    model.architecture = "deepseek2";
    norms();
    constexpr Need some = Need::optional;  // queries are compressed or not, layers dense or not
    rules.insert(
        rules.end(),
        {{"self_attn.q_proj.weight", "attn_q.weight", Change::none, some},
         {"self_attn.q_a_proj.weight", "attn_q_a.weight", Change::none, some},
         {"self_attn.q_a_layernorm.weight", "attn_q_a_norm.weight", Change::none, some},
         {"self_attn.q_b_proj.weight", "attn_q_b.weight", Change::none, some},
         {"self_attn.kv_a_proj_with_mqa.weight", "attn_kv_a_mqa.weight"},
         {"self_attn.kv_a_layernorm.weight", "attn_kv_a_norm.weight"},
         {"self_attn.kv_b_proj.weight", "attn_kv_b.weight"},
         {"self_attn.o_proj.weight", "attn_output.weight"},
         {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias", Change::none, some},
         {"mlp.shared_experts.gate_proj.weight", "ffn_gate_shexp.weight", Change::none, some},
         {"mlp.shared_experts.up_proj.weight", "ffn_up_shexp.weight", Change::none, some},
         {"mlp.shared_experts.down_proj.weight", "ffn_down_shexp.weight", Change::none, some}});
    add_mlp(rules, some);
    add_experts(rules, some);
  }
  return model;
}
inline constexpr std::string_view model_types =
    "llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gemma2, gemma3, gemma3_text, phi3, "
    "deepseek_v2, deepseek_v3, gpt_oss";

}  // namespace tenon::inline TENON_ABI::detail
