#pragma once
// The config.json of a checkpoint with GGUF's keys: the one that it came with, or one that says the
// same.
#include <string>
#include <string_view>

#include "../core/json_value.hpp"
#include "hugging_face_families.inl"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI::detail {

class MadeConfig {
 public:
  explicit MadeConfig(const TensorSource& source)
      : source_(source),
        metadata_(source.metadata()),
        architecture_(metadata_.text("general.architecture")) {}

  JsonValue make() {
    const std::string type = model_type();
    config_["architectures"] = JsonValue::List{class_of(type)};
    config_["model_type"] = type;
    copy("hidden_size", "embedding_length");
    copy("num_hidden_layers", "block_count");
    copy("intermediate_size", "feed_forward_length");
    copy("num_attention_heads", "attention.head_count");
    copy("rms_norm_eps", "attention.layer_norm_rms_epsilon");
    config_["max_position_embeddings"] = whole("context_length", 2048);
    config_["vocab_size"] = vocabulary();
    config_["tie_word_embeddings"] = source_.find("output.weight") == nullptr;
    const Dim heads = whole("attention.head_count", 1);
    const Dim head = whole("attention.key_length", whole("embedding_length", 0) / heads);
    config_["num_key_value_heads"] = whole("attention.head_count_kv", heads);
    config_["head_dim"] = head;
    config_["rope_theta"] = number("rope.freq_base", 10000);
    const bool gemma = type.starts_with("gemma");
    config_[gemma ? "hidden_activation" : "hidden_act"] = gemma ? "gelu_pytorch_tanh" : "silu";
    if (type != "phi3") add_scaling();
    if (type != "qwen2" && type != "phi3" && type != "mistral" && type != "mixtral") {
      config_["attention_bias"] = source_.find("blk.0.attn_q.bias") != nullptr;
    }
    if (has("attention.sliding_window")) copy("sliding_window", "attention.sliding_window");
    if (type == "mixtral" || type == "qwen3_moe") add_experts(type);
    if (gemma) add_gemma(type, head);
    if (type == "phi3") add_phi3(head);
    config_["torch_dtype"] = "float32";
    const auto token = [&](const char* theirs, const char* ours) {
      if (metadata_.contains(ours)) config_[theirs] = metadata_.integer(ours);
    };
    token("bos_token_id", "tokenizer.ggml.bos_token_id");
    token("eos_token_id", "tokenizer.ggml.eos_token_id");
    return std::move(config_);
  }

 private:
  std::string key(std::string_view name) const { return message(architecture_, ".", name); }
  bool has(std::string_view name) const { return metadata_.contains(key(name)); }
  double number(std::string_view name, double otherwise) const {
    return has(name) ? metadata_.number(key(name)) : otherwise;
  }
  Dim whole(std::string_view name, Dim otherwise) const {
    const Dim value = has(name) ? metadata_.integer(key(name)) : otherwise;
    if (value >= 0 && value <= INT32_MAX && (value > 0 || name != "attention.head_count")) {
      return value;
    }
    fail<RequestError>(source_.origin(), ": metadata key \"", key(name),
                       "\" must be a size, it is ", value, "; the file is damaged");
  }
  void copy(const char* theirs, std::string_view ours) {
    const MetaValue* value = metadata_.find(key(ours));
    if (value == nullptr || value->type == MetaType::array) {
      fail<RequestError>(source_.origin(), ": metadata key \"", key(ours),
                         "\" must be one number to be written as ", theirs, " of config.json, ",
                         value == nullptr ? "it is missing" : "it is one for each layer",
                         "; keep the model as GGUF");
    }
    if (is_float(value->type)) {
      config_[theirs] = metadata_.number(key(ours));
    } else {
      config_[theirs] = metadata_.integer(key(ours));
    }
  }
  Dim vocabulary() const {
    if (has("vocab_size")) return whole("vocab_size", 0);
    const TensorInfo* embedding = source_.find("token_embd.weight");
    return embedding == nullptr || embedding->shape.empty() ? 0 : embedding->shape[0];
  }
  std::string model_type() const {
    if (architecture_ == "llama") {
      if (number("expert_count", 0) > 0) return "mixtral";
      return number("attention.sliding_window", 0) > 0 ? "mistral" : "llama";
    }
    if (architecture_ == "qwen3moe") return "qwen3_moe";
    if (architecture_ == "gemma3") return "gemma3_text";
    for (const char* same : {"qwen2", "qwen3", "gemma2", "phi3"}) {
      if (architecture_ == same) return same;
    }
    fail<RequestError>(source_.origin(),
                       ": the architecture must be llama, qwen2, qwen3, qwen3moe, "
                       "gemma2, gemma3 or phi3 for a config.json to be made, it is \"",
                       printable(architecture_), "\"; keep the model as GGUF");
  }
  static const char* class_of(std::string_view type) {
    if (type == "mistral") return "MistralForCausalLM";
    if (type == "mixtral") return "MixtralForCausalLM";
    if (type == "qwen2") return "Qwen2ForCausalLM";
    if (type == "qwen3") return "Qwen3ForCausalLM";
    if (type == "qwen3_moe") return "Qwen3MoeForCausalLM";
    if (type == "gemma2") return "Gemma2ForCausalLM";
    if (type == "gemma3_text") return "Gemma3ForCausalLM";
    return type == "phi3" ? "Phi3ForCausalLM" : "LlamaForCausalLM";
  }
  void add_scaling() {
    const std::string type = metadata_.text_or(key("rope.scaling.type"), "none");
    if (type == "none" && source_.find("rope_freqs.weight") != nullptr) add_llama3();
    if (type == "none") return;
    auto& scaling = config_["rope_scaling"];
    scaling["rope_type"] = type;
    const double factor = number("rope.scaling.factor", 1);
    scaling["factor"] = factor;
    if (type != "yarn") return;
    scaling["original_max_position_embeddings"] =
        whole("rope.scaling.original_context_length", whole("context_length", 2048));
    scaling["beta_fast"] = number("rope.scaling.yarn_beta_fast", 32);
    scaling["beta_slow"] = number("rope.scaling.yarn_beta_slow", 1);
    if (has("rope.scaling.attn_factor")) {
      scaling["attention_factor"] = number("rope.scaling.attn_factor", 1) *
                                    (factor <= 1 ? 1 : std::fma(0.1, std::log(factor), 1.0));
    }
  }
  // A file keeps the divisors that Llama 3's scaling makes, not the numbers it makes them of.
  void add_llama3() {
    const TensorInfo& tensor = *source_.find("rope_freqs.weight");
    std::vector<float> divisors(tensor.ggml_type == 0 ? tensor.data.size() / 4 : 0);
    for (std::size_t i = 0; i < divisors.size(); ++i) {
      std::memcpy(&divisors[i], tensor.data.data() + 4 * i, 4);
    }
    const auto by = llama3_scaling_of(divisors, number("rope.freq_base", 10000));
    if (!by) {
      fail<RequestError>(source_.origin(),
                         ": tensor rope_freqs.weight must hold the divisors that rope_scaling of "
                         "type llama3 makes with low_freq_factor 1, high_freq_factor 4 and an "
                         "original context of a power of two, it holds others, which config.json "
                         "has no key for; keep the model as GGUF");
    }
    auto& scaling = config_["rope_scaling"];
    scaling["rope_type"] = "llama3";
    scaling["factor"] = by->factor;
    scaling["low_freq_factor"] = by->low;
    scaling["high_freq_factor"] = by->high;
    scaling["original_max_position_embeddings"] = static_cast<std::int64_t>(by->original);
  }
  void add_experts(const std::string& type) {
    const bool mixtral = type == "mixtral";
    copy(mixtral ? "num_local_experts" : "num_experts", "expert_count");
    copy("num_experts_per_tok", "expert_used_count");
    if (mixtral) return;
    copy("moe_intermediate_size", "expert_feed_forward_length");
    const std::string norm = key("expert_weights_norm");
    config_["norm_topk_prob"] = !metadata_.contains(norm) || metadata_.flag(norm);
    config_["decoder_sparse_step"] = 1;
    config_["mlp_only_layers"] = JsonValue::List();
  }
  void add_gemma(const std::string& type, Dim head) {
    const bool third = type != "gemma2";
    const bool of_27b = whole("block_count", 0) == (third ? 62 : 46);
    config_["query_pre_attn_scalar"] =
        of_27b ? whole("embedding_length", 0) / whole("attention.head_count", 1) : head;
    if (third) {
      config_["rope_local_base_freq"] = number("rope.freq_base_swa", 1e4);
      config_["sliding_window_pattern"] = 6;
    } else {
      config_["attn_logit_softcapping"] = number("attn_logit_softcapping", 0);
      config_["final_logit_softcapping"] = number("final_logit_softcapping", 0);
    }
  }
  void add_phi3(Dim head) {
    const Dim turned = whole("rope.dimension_count", head);
    config_["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(head);
    if (has("rope.scaling.original_context_length")) {
      copy("original_max_position_embeddings", "rope.scaling.original_context_length");
    }
    if (source_.find("rope_factors_long.weight") == nullptr) return;
    auto& scaling = config_["rope_scaling"];
    scaling["type"] = "longrope";
    for (const char* length : {"long", "short"}) {
      const TensorInfo* tensor = source_.find(message("rope_factors_", length, ".weight"));
      JsonValue::List factors;
      const bool floats = tensor != nullptr && tensor->ggml_type == 0;
      for (std::size_t i = 0; floats && i + 4 <= tensor->data.size(); i += 4) {
        float factor;
        std::memcpy(&factor, tensor->data.data() + i, 4);
        factors.push_back(factor);
      }
      scaling[message(length, "_factor")] = std::move(factors);
    }
    if (has("rope.scaling.attn_factor")) {
      scaling["attention_factor"] = number("rope.scaling.attn_factor", 1);
    }
  }

  const TensorSource& source_;
  const Metadata& metadata_;
  std::string architecture_;
  JsonValue config_;
};

// Whether a configuration says of the model what the source does.
inline bool says_the_same(const JsonValue& config, const TensorSource& source) {
  JsonConfig reading(config, "config.json");
  std::vector<std::string> ignored;
  const Family family = read_family(reading, ignored);
  for (const Metadata::Entry& entry : family.metadata.entries()) {
    const MetaValue* value = source.metadata().find(entry.key);
    if (value == nullptr || value->data != entry.value.data) return false;
  }
  return true;
}

inline JsonValue made_config(const TensorSource& source) {
  constexpr const char* key = "tenon.huggingface.config";
  if (source.metadata().contains(key)) {
    try {
      JsonValue config = JsonValue::parse(source.metadata().text(key), key);
      const JsonValue *type = config.find("model_type"), *part = config.find("text_config");
      if (type != nullptr && *type == "gemma3" && part != nullptr && part->object() != nullptr) {
        config = JsonValue(*part);
        config["model_type"] = "gemma3_text";
        config["architectures"] = JsonValue::List{"Gemma3ForCausalLM"};
      }
      if (config.object() != nullptr) config.object()->erase("quantization_config");  // bf16 here
      if (says_the_same(config, source)) return config;
    } catch (const LoadError&) {  // it is of no use then
    }
  }
  return MadeConfig(source).make();
}

}  // namespace tenon::inline TENON_ABI::detail
