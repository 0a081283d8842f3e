#pragma once
// Which format each tensor of a model gets when it is quantized. The mixtures are those of
// llama.cpp's llama-quantize: more bits for the values, the outputs and some layers' down matrices.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tenon/core/error.hpp>
#include <tenon/io/ggml_types.hpp>
#include <tenon/io/gguf_file_types.hpp>
#include <tenon/io/tensor_source.hpp>
#include <tenon/quant/gguf_formats.hpp>
#include <utility>
#include <vector>

namespace quantize {

using Formats = tenon::GgufFormats;

inline std::string lower(std::string_view text) {
  std::string all(text);
  for (char& c : all) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return all;
}
// `text` matches a pattern in which * stands for any letters and ? for one.
inline bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

inline std::string all_names() {
  std::string all;
  for (const auto& type : tenon::gguf_file_types) (all += all.empty() ? "" : ", ") += type.name;
  return all;
}

// The tag of a format that files can be written in.
inline int tag_of(std::string_view format) {
  if (tenon::tag_of_name<tenon::StoredFormats>(format) < 0) {
    tenon::fail<tenon::RequestError>("the format of a tensor must be one of ",
                                     tenon::FormatList<tenon::StoredFormats>::names(), ", it is \"",
                                     tenon::printable(format), "\"; choose one of these");
  }
  return tenon::tag_of_name<Formats>(format);
}
inline std::string_view name_of(int tag) {
  return tenon::FormatList<Formats>::visit(tag,
                                           []<class F>(F) { return std::string_view(F::name); });
}
inline tenon::Dim block_of(int tag) {
  return tenon::FormatList<Formats>::visit(tag, []<class F>(F) { return tenon::Dim{F::block}; });
}

class Recipe {
 public:
  // `pure`: every matrix gets the format that most would have. `important`: an importance matrix is
  // there. `overrides`: PATTERN=FORMAT, the last match wins.
  Recipe(const tenon::TensorSource& source, std::string_view name, bool pure, bool important,
         const std::vector<std::string>& overrides)
      : pure_(pure), important_(important) {
    const std::string wanted = lower(name);
    constexpr auto& types = tenon::gguf_file_types;
    const auto* at = std::find_if(std::begin(types), std::end(types),
                                  [&](const auto& type) { return type.name == wanted; });
    if (at == std::end(types)) {
      tenon::fail<tenon::RequestError>("FORMAT must be one of ", all_names(), ", it is \"",
                                       tenon::printable(name), "\"; choose one of these");
    }
    base_ = tag_of(at->format);
    file_type_ = at->number;
    mixture_ = wanted == "q5_k" || wanted == "q4_k" || wanted == "q3_k" ? wanted + "_m" : wanted;
    for (const std::string& text : overrides) {
      const std::size_t equals = text.rfind('=');
      if (equals == text.npos || equals == 0) {
        tenon::fail<tenon::RequestError>("--tensor must be PATTERN=FORMAT, it is \"",
                                         tenon::printable(text),
                                         "\"; write, say, --tensor 'blk.*.attn_v.weight=q6_K'");
      }
      overrides_.emplace_back(text.substr(0, equals), tag_of(text.substr(equals + 1)));
      const std::string& pattern = overrides_.back().first;
      if (std::none_of(source.tensors().begin(), source.tensors().end(),
                       [&](const auto& tensor) { return matches(pattern, tensor.name); })) {
        tenon::fail<tenon::RequestError>("--tensor: \"", tenon::printable(pattern),
                                         "\" must match the name of a tensor, it matches none; "
                                         "inspect lists the names");
      }
    }
    read_sizes(source);
  }

  std::uint32_t file_type() const { return file_type_; }

  // The tag of the format that a tensor is to have, whatever its rows; -1: it stays as it is.
  int wanted(const tenon::TensorInfo& tensor) const {
    if (tensor.shape.size() < 2) return -1;
    for (std::size_t i = overrides_.size(); i-- > 0;) {
      if (matches(overrides_[i].first, tensor.name)) return overrides_[i].second;
    }
    if (stays(tensor.name)) return -1;
    if (pure_ || block_of(base_) == 1) return base_;
    return mixed(tensor);
  }
  // What takes its place for rows that are not whole blocks of it: more bits, in blocks of 32, and
  // in the end halves.
  static int fallback(int tag, tenon::Dim columns) {
    if (columns % block_of(tag) == 0) return tag;
    constexpr std::pair<std::string_view, std::string_view> others[] = {
        {"iq3_s", "iq4_nl"}, {"iq4_xs", "iq4_nl"}, {"q2_K", "q4_0"}, {"q3_K", "q4_0"},
        {"nvfp4", "mxfp4"},  {"q4_K", "q5_0"},     {"q5_K", "q5_1"}, {"q6_K", "q8_0"}};
    for (const auto& [of, other] : others) {
      if (name_of(tag) == of && columns % 32 == 0) return tag_of(other);
    }
    return tag_of("f16");
  }

 private:
  // Matrices that are small and matter, and tables that are no matrices.
  static bool stays(std::string_view name) {
    constexpr std::string_view parts[] = {"_norm.weight",
                                          "ffn_gate_inp.weight",
                                          "ffn_gate_tid2eid",
                                          "altup",
                                          "laurel",
                                          "per_layer_model_proj",
                                          "position_embd",
                                          "token_types",
                                          "ssm_conv1d",
                                          "shortconv.conv",
                                          "attn_rel_b.weight",
                                          "time_mix_first.weight",
                                          "time_mix_w0",
                                          "time_mix_w1",
                                          "time_mix_w2",
                                          "time_mix_v0",
                                          "time_mix_v1",
                                          "time_mix_v2",
                                          "time_mix_a0",
                                          "time_mix_a1",
                                          "time_mix_a2",
                                          "time_mix_g1",
                                          "time_mix_g2",
                                          "time_mix_decay_w1",
                                          "time_mix_decay_w2",
                                          "time_mix_lerp_fused",
                                          "indexer.k_proj",
                                          "indexer.q_proj"};
    if (!name.ends_with("weight")) return true;
    return std::any_of(std::begin(parts), std::end(parts),
                       [&](std::string_view part) { return name.find(part) != name.npos; });
  }
  static int layer_of(std::string_view name) {
    int layer = 0;
    if (!name.starts_with("blk.")) return -1;
    for (const char c : name.substr(4)) {
      if (c < '0' || c > '9' || layer > 100000) break;
      layer = 10 * layer + (c - '0');
    }
    return layer;
  }
  static bool has(std::string_view name, std::string_view part) {
    return name.find(part) != name.npos;
  }
  static bool holds_values(std::string_view name) {
    return has(name, "attn_v.weight") || has(name, "attn_qkv.weight") ||
           has(name, "attn_kv_b.weight");
  }
  // Counts and sizes that the mixtures look at; what a file does not say is 0.
  void read_sizes(const tenon::TensorSource& source) {
    const tenon::Metadata& metadata = source.metadata();
    const std::string arch = metadata.text_or("general.architecture", "");
    const auto number = [&](std::string_view key) {
      const std::string whole = arch + "." + std::string(key);
      const tenon::MetaValue* value = metadata.find(whole);
      const auto* n = value == nullptr ? nullptr : std::get_if<std::uint64_t>(&value->data);
      return n == nullptr ? 0 : static_cast<int>((std::min)(*n, std::uint64_t{1000000}));
    };
    layers_ = number("block_count");
    experts_ = number("expert_count");
    const int heads = number("attention.head_count"), kv = number("attention.head_count_kv");
    shared_heads_ = kv > 0 ? heads / kv : 1;
    is_70b_ = arch == "llama" && layers_ == 80 && shared_heads_ > 1;
    tied_ = source.find("output.weight") == nullptr;
    std::map<int, std::string> values;
    for (const tenon::TensorInfo& tensor : source.tensors()) {
      if (holds_values(tensor.name)) values.emplace(layer_of(tensor.name), tensor.name);
    }
    for (const auto& [layer, name] : values) value_rank_.emplace(name, value_rank_.size());
  }
  // Layers at both ends, and every third between.
  static bool more_bits(int i, int n) {
    return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
  }
  bool is(std::string_view mixture) const { return mixture_ == mixture; }

  int mixed(const tenon::TensorInfo& tensor) const {
    const std::string_view name = tensor.name;
    const int layer = layer_of(name);
    const bool embeds = name == "token_embd.weight" || name == "per_layer_token_embd.weight";
    if (name == "output.weight" || (tied_ && embeds)) {
      const bool fits = tensor.shape.back() % block_of(base_) == 0;
      return tag_of(!fits || is("q8_0") || is("mxfp4") ? "q8_0" : "q6_K");
    }
    if (holds_values(name)) return of_values(tensor.name);
    if (has(name, "attn_k.weight")) return experts_ == 8 ? tag_of("q8_0") : base_;
    if (has(name, "ffn_down")) return of_down(layer);
    if (has(name, "attn_output.weight")) {
      if (experts_ == 8) {
        const bool raised = is("q2_k") || is("q3_k_s") || is("q3_k_m") || is("q4_k_s") ||
                            is("q4_k_m") || is("iq4_nl") || is("iq4_xs") || is("iq3_s");
        return raised ? tag_of("q5_K") : base_;
      }
      if (is("q2_k")) return tag_of("q3_K");
      if (is("q3_k_m")) return tag_of("q4_K");
      if (is("q3_k_l")) return tag_of("q5_K");
    }
    return base_;
  }
  int of_values(const std::string& name) const {
    const auto found = value_rank_.find(name);
    const int rank = found == value_rank_.end() ? 0 : static_cast<int>(found->second);
    const auto all = static_cast<int>(value_rank_.size());
    int tag = base_;
    if (is("q2_k")) tag = tag_of(shared_heads_ >= 4 ? "q4_K" : "q3_K");
    if (is("iq3_s") && shared_heads_ >= 4) tag = tag_of("q4_K");
    if (is("q3_k_m")) tag = tag_of(rank < 2 ? "q5_K" : "q4_K");
    if (is("q3_k_l")) tag = tag_of("q5_K");
    if ((is("iq4_nl") || is("iq4_xs")) && shared_heads_ >= 4) tag = tag_of("q5_K");
    if ((is("q4_k_m") || is("q5_k_m")) && more_bits(rank, all)) tag = tag_of("q6_K");
    if (is("q4_k_s") && rank < 4) tag = tag_of("q5_K");
    if (is_70b_ && (tag == tag_of("q3_K") || tag == tag_of("q4_K"))) tag = tag_of("q5_K");
    return experts_ == 8 ? tag_of("q8_0") : tag;
  }
  int of_down(int layer) const {
    if (is("q2_k")) return tag_of("q3_K");
    if (is("q3_k_m")) return tag_of(layer < layers_ / 16 ? "q5_K" : "q4_K");
    if (is("q3_k_l")) return tag_of("q5_K");
    if ((is("q4_k_m") || is("q5_k_m")) && more_bits(layer, layers_)) return tag_of("q6_K");
    const bool early = layer < layers_ / 8;
    if ((is("iq4_nl") || is("iq4_xs")) && early && !important_) return tag_of("q5_K");
    if (is("q4_k_s") && early) return tag_of("q5_K");
    if (is("q4_0") && early && important_) return tag_of("q4_1");
    if (is("q5_0") && early && important_) return tag_of("q5_1");
    return base_;
  }

  bool pure_, important_;
  int base_ = 0;
  std::uint32_t file_type_ = 0;
  std::string mixture_;
  std::vector<std::pair<std::string, int>> overrides_;
  int layers_ = 0, experts_ = 0, shared_heads_ = 1;
  bool is_70b_ = false, tied_ = false;
  std::map<std::string, std::size_t> value_rank_;  // of those tensors, by layer
};

}  // namespace quantize
