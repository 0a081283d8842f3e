#pragma once
// Opening a Hugging Face folder: its files, and which tensor becomes which.
#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "../quant/dense.hpp"
#include "../quant/fp8.hpp"
#include "gguf_format.hpp"
#include "hugging_face_families.inl"
#include "hugging_face_files.inl"
#include "tensor_makers.hpp"

namespace tenon::inline TENON_ABI::detail {

class FolderReader {
 public:
  explicit FolderReader(const std::filesystem::path& folder) : files_(folder) {
    made_.origin_ = files_.origin();
  }

  HuggingFaceFolder read() {
    JsonConfig config(files_.json_file("config.json"), files_.name_of("config.json"));
    // Models that see images hold the one that writes text in a part of their configuration.
    if (config.text_or("model_type", "") == "gemma3") {
      JsonValue text = config.object("text_config").json();
      for (const char* key : {"tie_word_embeddings", "quantization_config"}) {
        if (text.find(key) == nullptr && config.has(key)) text[key] = *config.json().find(key);
      }
      text["model_type"] = "gemma3_text";
      files_.look_inside({"language_model.", "model.language_model."});
      others_ = {"vision_tower.", "multi_modal_projector.", "model.vision_tower.",
                 "model.multi_modal_projector."};
      set_family(JsonConfig(std::move(text), config.origin() + ": text_config"));
    } else {
      set_family(JsonConfig(config.json(), config.origin()));
    }
    check_quantization(config);
    made_.metadata_ = std::move(family_.metadata);
    add_texts(config);
    files_.open();
    place();
    check_left();
    made_.index_ = TensorIndex(made_.tensors_, made_.origin_);
    made_.files_ = files_.release();
    return std::move(made_);
  }

 private:
  void set_family(JsonConfig config) {
    family_ = read_family(config, made_.ignored_keys_);
    const JsonValue* classes = config.json().find("architectures");
    if (classes != nullptr && classes->list() != nullptr && !classes->list()->empty()) {
      const JsonValue& first = classes->list()->front();
      if (first.text() == nullptr || (!first.text()->ends_with("ForCausalLM") &&
                                      *first.text() != "Gemma3ForConditionalGeneration")) {
        config.wrong("architectures", "a ...ForCausalLM", first);
      }
    }
  }
  static void check_quantization(JsonConfig& config) {
    if (!config.has("quantization_config")) return;
    JsonConfig how = config.object("quantization_config");
    how.must_be("quant_method", {"fp8", "mxfp4"});
    how.must_be("fmt", {"e4m3", "e5m2"});
  }

  void add_texts(JsonConfig& config) {
    Metadata& to = made_.metadata_;
    to.set("tenon.huggingface.config", files_.text_file("config.json"));
    if (files_.has_file("tokenizer.json"))
      to.set("tokenizer.huggingface.json", files_.text_file("tokenizer.json"));
    if (files_.has_file("tokenizer.model")) {
      to.set("tokenizer.sentencepiece.model", files_.text_file("tokenizer.model"));
    }
    if (files_.has_file("tokenizer_config.json")) {
      std::string text = files_.text_file("tokenizer_config.json");
      add_template(JsonValue::parse(text, files_.name_of("tokenizer_config.json")));
      to.set("tokenizer.huggingface.config", std::move(text));
    }
    if (files_.has_file("chat_template.jinja")) {
      to.set("tokenizer.chat_template", files_.text_file("chat_template.jinja"));
    }
    std::vector<std::int64_t> ends;
    std::vector<std::int64_t> begins = config.ids("bos_token_id");
    if (files_.has_file("generation_config.json")) {
      to.set("tenon.huggingface.generation_config", files_.text_file("generation_config.json"));
      JsonConfig generation(files_.json_file("generation_config.json"),
                            files_.name_of("generation_config.json"));
      ends = generation.ids("eos_token_id");
      if (begins.empty()) begins = generation.ids("bos_token_id");
    }
    if (ends.empty()) ends = config.ids("eos_token_id");
    if (!begins.empty()) {
      to.set("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(begins[0]));
    }
    if (ends.empty()) return;
    to.set("tokenizer.ggml.eos_token_id", static_cast<std::uint32_t>(ends[0]));
    to.set("tokenizer.ggml.eos_token_ids", MetaValue{MetaType::array, MetaType::i32, ends});
  }
  // A template, or a list of named ones of which "default" is the usual one.
  void add_template(const JsonValue& json) {
    constexpr const char* key = "tokenizer.chat_template";
    const JsonValue* at = json.find("chat_template");
    if (at == nullptr) return;
    if (at->text() != nullptr) made_.metadata_.set(key, *at->text());
    if (at->list() == nullptr) return;
    for (const JsonValue& named : *at->list()) {
      const JsonValue *name = named.find("name"), *text = named.find("template");
      if (name == nullptr || text == nullptr || text->text() == nullptr) continue;
      if (*name == "default") made_.metadata_.set(key, *text->text());
    }
  }

  [[noreturn]] void missing(const std::string& name, std::string_view why) const {
    fail<LoadError>(made_.origin_, ": tensor ", name, " must be there ", why, ", none of the ",
                    files_.tensors().size(), " tensors is it; download the checkpoint again");
  }

  void place() {
    const auto whole = [&](const char* theirs, const char* ours, Change change) {
      const std::string name(theirs);
      FolderTensor* tensor = files_.take(name);
      if (tensor == nullptr) missing(name, "in every checkpoint of this family");
      add(ours, name, *tensor, change);
    };
    whole("model.embed_tokens.weight", "token_embd.weight", Change::none);
    whole("model.norm.weight", "output_norm.weight", family_.rules.norms);
    if (FolderTensor* head = files_.take("lm_head.weight")) {
      if (family_.tied) {
        made_.ignored_tensors_.push_back(head->tensor->name);  // the embedding takes its place
      } else {
        add("output.weight", "lm_head.weight", *head, Change::none);
      }
    } else if (!family_.tied) {
      missing("lm_head.weight", "because tie_word_embeddings of config.json is false or missing");
    }
    for (auto& [name, values] : family_.vectors) {
      const std::vector<float>& kept = made_.vectors_.emplace_back(std::move(values));
      append(
          {name, F32::ggml_type, {static_cast<Dim>(kept.size())}, std::as_bytes(std::span(kept))});
    }
    constexpr Dim most = 4096;
    if (family_.layers > most || family_.experts > most) {
      fail<LoadError>(made_.origin_, ": numbers of layers and experts must be at most ", most,
                      ", they are ", family_.layers, " and ", family_.experts,
                      "; config.json is damaged");
    }
    for (Dim layer = 0; layer < family_.layers; ++layer) {
      for (const TensorRule& rule : family_.rules.layer) place(layer, rule);
      if (family_.rules.architecture == "gpt-oss") place_packed_experts(layer);
    }
  }
  void place(Dim layer, const TensorRule& rule) {
    const std::string ours = message("blk.", layer, ".", rule.ours);
    std::string theirs = message("model.layers.", layer, ".", rule.theirs);
    const std::size_t expert = theirs.find("{e}");
    if (expert != std::string::npos) return place_experts(ours, theirs, expert, rule);
    bool needed = rule.need == Need::required;
    std::string_view why = "in every layer of this family";
    if (rule.need == Need::by_config) {
      const bool output = rule.ours.starts_with("attn_output");
      needed = output ? family_.o_bias : family_.qkv_bias;
      why = "as config.json, or the family's default for attention_bias, says";
      if (!needed) return;  // one that is there all the same is left over
    }
    FolderTensor* tensor = files_.take(theirs);
    if (tensor == nullptr && needed) missing(theirs, why);
    if (tensor != nullptr) add(ours, theirs, *tensor, rule.change);
  }
  void place_experts(const std::string& ours, const std::string& theirs, std::size_t at,
                     const TensorRule& rule) {
    if (family_.experts == 0) return;
    std::vector<MakerInput> parts;
    TensorInfo joined{ours, 0, {}, {}};
    for (Dim e = 0; e < family_.experts; ++e) {
      std::string name = theirs;
      name.replace(at, 3, std::to_string(e));
      FolderTensor* tensor = files_.take(name);
      if (tensor == nullptr) {
        if (rule.need == Need::optional && e == 0) return;
        missing(name, "because config.json says how many experts there are");
      }
      TensorInfo one = changed(ours, name, *tensor, Change::none);
      if (e == 0) {
        joined.ggml_type = one.ggml_type;
        joined.shape = one.shape;
      } else if (joined.ggml_type != one.ggml_type || joined.shape != one.shape) {
        fail<LoadError>(tensor->file->origin(), ": tensor ", printable(name),
                        " must be as expert 0, ", shape_text(joined.shape), " of one type, it is ",
                        shape_text(one.shape), "; the checkpoint is damaged");
      }
      parts.push_back(input(one.data, *tensor));
    }
    joined.shape.insert(joined.shape.begin(), family_.experts);
    const std::size_t bytes = checked_multiply(parts.size(), parts[0].bytes.size());
    joined.data = StoredBytes(make<Joined>(std::move(parts)), bytes);
    append(std::move(joined));
  }

  // The experts of gpt-oss: gate and up take turns in the rows of one tensor.
  void place_packed_experts(Dim layer) {
    const std::string theirs = message("model.layers.", layer, ".mlp.experts.");
    const std::string ours = message("blk.", layer, ".ffn_");
    place_packed(theirs + "gate_up_proj", ours + "gate_exps", 0, 2);
    place_packed(theirs + "gate_up_proj", ours + "up_exps", 1, 2);
    place_packed(theirs + "down_proj", ours + "down_exps", 0, 1);
  }
  // Rows first, first + turns, ... of NAME_blocks [experts, rows, columns / 32, 16] and
  // NAME_scales, and of NAME_bias [experts, rows].
  void place_packed(const std::string& theirs, const std::string& ours, std::size_t first,
                    std::size_t turns) {
    const auto need = [&](const char* end) -> FolderTensor& {
      FolderTensor* tensor = files_.take(theirs + end);
      if (tensor == nullptr) missing(theirs + end, "in every layer of this family");
      return *tensor;
    };
    FolderTensor &blocks = need("_blocks"), &scales = need("_scales"), &bias = need("_bias");
    std::vector<Dim> shape = blocks.tensor->shape;
    const bool fits = shape.size() == 4 && shape[0] == family_.experts &&
                      shape[1] % static_cast<Dim>(turns) == 0 && shape[1] > 0 && shape[2] > 0 &&
                      shape[3] == 16 && blocks.tensor->type->name == "U8" &&
                      scales.tensor->type->name == "U8" &&
                      scales.tensor->shape == std::vector<Dim>{shape[0], shape[1], shape[2]} &&
                      bias.tensor->type->ggml_type == Bf16::ggml_type &&
                      bias.tensor->shape == std::vector<Dim>{shape[0], shape[1]};
    if (!fits) {
      fail<LoadError>(blocks.file->origin(), ": tensors ", theirs,
                      "_blocks, _scales and _bias must be MXFP4 of [experts, rows, blocks, 16] and "
                      "a BF16 bias of ",
                      family_.experts, " experts, the first is ", blocks.tensor->type->name, " ",
                      shape_text(shape), "; the checkpoint is damaged or stored in another way");
    }
    const auto rows = [&](FolderTensor& from, std::size_t unit) {
      return input(StoredBytes(make<Strided>(input(from.tensor->data, from), unit, first, turns),
                               from.tensor->data.size() / turns),
                   from);
    };
    const auto across = static_cast<std::size_t>(shape[2]);
    shape[1] /= static_cast<Dim>(turns);
    TensorInfo packed{ours + ".weight", 39, {shape[0], shape[1], shape[2] * 32}, {}};
    packed.data = StoredBytes(make<Mxfp4Blocks>(rows(blocks, across * 16), rows(scales, across)),
                              blocks.tensor->data.size() / turns / 16 * 17);
    append(std::move(packed));
    MakerInput halves = rows(bias, 2);
    TensorInfo added{ours + ".bias", Bf16::ggml_type, {shape[0], shape[1]}, halves.bytes};
    convert(added, bias, {Bf16::decode, 2, F32::encode, 4}, F32::ggml_type);
    append(std::move(added));
  }

  void append(TensorInfo tensor) {
    gguf_tensor_bytes<LoadError>(made_.origin_, tensor.name, tensor.ggml_type, tensor.shape);
    made_.tensors_.push_back(std::move(tensor));
  }
  void add(std::string_view ours, const std::string& theirs, FolderTensor& tensor, Change change) {
    append(changed(ours, theirs, tensor, change));
  }
  template <class Maker, class... Arguments>
  const ByteMaker& make(Arguments&&... arguments) {
    made_.makers_.push_back(std::make_unique<const Maker>(std::forward<Arguments>(arguments)...));
    return *made_.makers_.back();
  }
  static MakerInput input(StoredBytes bytes, const FolderTensor& tensor) {
    return {bytes,
            [file = tensor.file](std::span<const std::byte> part) { file->done_with(part); }};
  }

  // The tensor as GGUF has it.
  TensorInfo changed(std::string_view ours, const std::string& theirs, FolderTensor& from,
                     Change change) {
    const SafeTensor& stored = *from.tensor;
    TensorInfo made{std::string(ours), stored.type->ggml_type, stored.shape, stored.data};
    const std::string_view type = stored.type->name;
    const bool eight_bit = type == "F8_E4M3" || type == "F8_E5M2";
    const bool plain = type == "F32" || type == "F16" || type == "BF16";
    if ((!eight_bit && !plain) || stored.shape.empty() || (eight_bit && stored.shape.size() > 2)) {
      fail<LoadError>(from.file->origin(), ": tensor ", printable(stored.name),
                      " must be a vector or matrix of F32, F16, BF16 or F8, it is ", type, " ",
                      shape_text(stored.shape),
                      "; weights of GPTQ, AWQ and the like are not read, take a checkpoint without "
                      "them");
    }
    if (eight_bit) {
      Converted::Step step{type == "F8_E4M3" ? Fp8E4M3::decode : Fp8E5M2::decode, 1, Bf16::encode,
                           2};
      add_scales(theirs, stored, step);
      convert(made, from, std::move(step), Bf16::ggml_type);
    } else if (stored.shape.size() == 1 && (type != "F32" || change == Change::plus_one)) {
      Converted::Step step{type == "F32"   ? F32::decode
                           : type == "F16" ? F16::decode
                                           : Bf16::decode,
                           stored.type->bytes, F32::encode, 4};
      step.add = change == Change::plus_one ? 1.0f : 0.0f;
      convert(made, from, std::move(step), F32::ggml_type);
    }
    if (change == Change::query_pairs || change == Change::key_pairs) {
      const Dim heads = change == Change::query_pairs ? family_.heads : family_.kv_heads;
      if (made.shape[0] != heads * family_.head_dim || family_.head_dim % 2 != 0) {
        fail<LoadError>(from.file->origin(), ": tensor ", printable(stored.name), " must have ",
                        heads * family_.head_dim, " rows, an even head_dim for each of ", heads,
                        " heads of config.json, its shape is ", shape_text(made.shape),
                        "; the files do not belong together");
      }
      const std::size_t size = made.data.size();
      const std::size_t row = size / static_cast<std::size_t>(made.shape[0]);
      made.data = StoredBytes(make<ReorderedPairs>(input(made.data, from), family_.head_dim, row,
                                                   PairOrder::interleaved_of_halves),
                              size);
    }
    return made;
  }
  void convert(TensorInfo& made, const FolderTensor& from, Converted::Step step, int ggml_type) {
    const std::size_t size = checked_multiply(made.data.size() / step.from_bytes, step.to_bytes);
    made.data = StoredBytes(make<Converted>(input(made.data, from), std::move(step)), size);
    made.ggml_type = ggml_type;
  }
  // Scales of a block, "X.weight_scale_inv" [ceil(out / 128), ceil(in / 128)], or of all or of each
  // row, "X.weight_scale".
  void add_scales(const std::string& name, const SafeTensor& stored, Converted::Step& step) {
    FolderTensor* scales = files_.take(name + "_scale_inv");
    if (scales == nullptr) scales = files_.take(name + "_scale");
    files_.take(name.substr(0, name.rfind('.') + 1) +
                "input_scale");  // of activations, which stay floats
    if (scales == nullptr) return;
    const SafeTensor& s = *scales->tensor;
    step.columns = stored.shape.back();
    const Dim rows = stored.shape.size() > 1 ? stored.shape[0] : 1;
    const Dim down = s.shape.empty() ? 1 : s.shape[0], across = s.shape.size() < 2 ? 1 : s.shape[1];
    const auto block = [](Dim n, Dim parts) {  // of as many values as a power of two, or all
      Dim size = 1;
      while (size < n && ceil_div(n, size) > parts) size *= 2;
      return ceil_div(n, size) == parts ? size : (parts == 1 ? n : 0);
    };
    step.block_rows = block(rows, down);
    step.block_columns = block(step.columns, across);
    const bool fits = s.shape.size() <= 2 && step.block_rows > 0 && step.block_columns > 0;
    const bool floats = s.type->name == "F32" || s.type->name == "BF16" || s.type->name == "F16";
    if (!fits || !floats) {
      fail<LoadError>(scales->file->origin(), ": tensor ", printable(s.name),
                      " must hold float scales of blocks of ", shape_text(stored.shape), ", it is ",
                      s.type->name, " ", shape_text(s.shape), "; the checkpoint is damaged");
    }
    step.scales.resize(s.data.size() / s.type->bytes);
    const auto decode = s.type->name == "F32"    ? F32::decode
                        : s.type->name == "BF16" ? Bf16::decode
                                                 : F16::decode;
    decode(s.data.data(), static_cast<Dim>(step.scales.size()), step.scales.data());
  }

  // Every tensor must have been used; some are known to change nothing.
  void check_left() {
    std::vector<std::string> left;
    for (const auto& [name, tensor] : files_.tensors()) {
      if (!tensor.used) left.push_back(name);
    }
    std::sort(left.begin(), left.end());
    for (std::string& name : left) {
      if (!harmless(name)) {
        const FolderTensor& tensor = files_.tensors().at(name);
        fail<LoadError>(tensor.file->origin(), ": tensor ", printable(name), " ",
                        shape_text(tensor.tensor->shape),
                        " must have a place in a model of architecture ",
                        family_.rules.architecture,
                        " with this config.json, it has none, so the "
                        "result would be wrong without it; check that the files belong together");
      }
      made_.ignored_tensors_.push_back(std::move(name));
    }
  }
  bool harmless(std::string_view name) const {
    if (name.ends_with("rotary_emb.inv_freq") || name.ends_with(".masked_bias")) return true;
    for (const std::string& other : others_) {
      if (name.starts_with(other)) return true;
    }
    constexpr std::string_view layers = "model.layers.";
    if (!name.starts_with(layers)) return false;
    Dim layer = 0;
    std::from_chars(name.data() + layers.size(), name.data() + name.size(), layer);
    return layer >= family_.layers && layer < family_.layers + family_.extra_layers;
  }

  FolderFiles files_;
  HuggingFaceFolder made_;
  Family family_;
  std::vector<std::string> others_;  // prefixes of what is not that model
};

}  // namespace tenon::inline TENON_ABI::detail
