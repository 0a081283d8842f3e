#pragma once
// A checkpoint with GGUF's names as the files of a Hugging Face folder.
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "../quant/gguf_formats.hpp"
#include "ggml_types.hpp"
#include "hugging_face_made_config.inl"
#include "hugging_face_writer.hpp"
#include "replace_file.hpp"
#include "safetensors.hpp"
#include "tensor_makers.hpp"

namespace tenon::inline TENON_ABI::detail {

class FolderWriter {
 public:
  FolderWriter(const TensorSource& source, const HuggingFaceOptions& options)
      : source_(source), options_(options), config_(made_config(source)) {
    std::vector<std::string> ignored;
    JsonConfig reading(config_, message(source.origin(), ": as config.json"));
    family_ = read_family(reading, ignored);
    check_keys();
    for (const TensorInfo& tensor : source.tensors()) add(tensor);
  }

  // Whether one of the files may have that name, besides those that numbers tell apart.
  static bool writes(std::string_view name) {
    for (const std::string_view file :
         {"config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json",
          "tokenizer_config.json", "tokenizer.model", "generation_config.json",
          "chat_template.jinja"}) {
      if (name == file) return true;
    }
    return false;
  }

  void write(const std::filesystem::path& folder) {
    check_writable_folder(folder);
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error || !std::filesystem::is_directory(folder)) {
      fail<RequestError>(folder.string(),
                         ": must be a folder that can be made, the system says: ", error.message(),
                         "; name another");
    }
    write_tensors(folder);
    write_text(folder, "tokenizer.json", "tokenizer.huggingface.json");
    write_text(folder, "tokenizer_config.json", "tokenizer.huggingface.config");
    write_text(folder, "tokenizer.model", "tokenizer.sentencepiece.model");
    write_text(folder, "generation_config.json", "tenon.huggingface.generation_config");
    if (!source_.metadata().contains("tokenizer.huggingface.config")) {
      write_text(folder, "chat_template.jinja", "tokenizer.chat_template");
    }
    write_whole(folder / "config.json", config_.dump(2) + "\n");  // last: it makes it a checkpoint
  }

 private:
  static void write_whole(const std::filesystem::path& path, std::string_view text) {
    replace_file(path, [&](std::ostream& out) {
      out.write(text.data(), static_cast<std::streamsize>(text.size()));
    });
  }
  void write_text(const std::filesystem::path& folder, const char* name, const char* key) const {
    if (source_.metadata().contains(key)) write_whole(folder / name, source_.metadata().text(key));
  }

  // The made configuration, read again, must say of the model what the source says.
  void check_keys() const {
    const std::string prefix = message(family_.rules.architecture, ".");
    for (const Metadata::Entry& entry : source_.metadata().entries()) {
      if (!entry.key.starts_with(prefix)) continue;
      const std::string_view key = std::string_view(entry.key).substr(prefix.size());
      const MetaValue* said = family_.metadata.find(entry.key);
      if (said != nullptr && same(*said, entry.value)) continue;
      if (said == nullptr && (unused(entry.value) || key == "rope.scaling.finetuned")) continue;
      fail<RequestError>(source_.origin(), ": metadata key \"", printable(entry.key),
                         "\" must be something that config.json can say of a ", family_type(),
                         ", it is not; keep the model as GGUF");
    }
  }
  const std::string& family_type() const { return *config_.find("model_type")->text(); }
  static bool unused(const MetaValue& value) {
    return std::visit(
        [](const auto& data) {
          if constexpr (std::is_arithmetic_v<std::decay_t<decltype(data)>>) {
            return data == 0;
          } else {
            return data.empty();
          }
        },
        value.data);
  }
  static bool same(const MetaValue& a, const MetaValue& b) {
    const auto number = [](const MetaValue& value) {
      return std::visit(
          [](const auto& data) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(data)>>) {
              return std::optional<double>(static_cast<double>(data));
            } else {
              return std::optional<double>();
            }
          },
          value.data);
    };
    const auto x = number(a), y = number(b);
    return x || y ? x == y : a.data == b.data;
  }

  void add(const TensorInfo& tensor) {
    if (tensor.name == "token_embd.weight") {
      return put("model.embed_tokens.weight", tensor, Change::none);
    }
    if (tensor.name == "output_norm.weight") {
      return put("model.norm.weight", tensor, family_.rules.norms);
    }
    if (tensor.name == "output.weight") return put("lm_head.weight", tensor, Change::none);
    for (const auto& made : family_.vectors) {
      if (made.first == tensor.name) return check_made(tensor, made.second);
    }
    constexpr std::string_view block = "blk.";
    if (std::string_view(tensor.name).starts_with(block)) {
      const std::size_t dot = tensor.name.find('.', block.size());
      const std::string layer = tensor.name.substr(block.size(), dot - block.size());
      const std::string_view rest =
          dot == std::string::npos ? "" : std::string_view(tensor.name).substr(dot + 1);
      for (const TensorRule& rule : family_.rules.layer) {
        if (rule.ours != rest) continue;
        const std::string theirs = message("model.layers.", layer, ".", rule.theirs);
        const std::size_t expert = theirs.find("{e}");
        if (expert == std::string::npos) return put(theirs, tensor, rule.change);
        return put_experts(theirs, expert, tensor);
      }
    }
    fail<RequestError>(source_.origin(), ": tensor ", printable(tensor.name),
                       " must have a name in Hugging Face checkpoints of a ", family_type(),
                       ", it has none; keep the model as GGUF");
  }
  // A tensor that config.json gives the numbers of.
  void check_made(const TensorInfo& tensor, const std::vector<float>& values) const {
    const auto bytes = std::as_bytes(std::span(values));
    if (tensor.ggml_type == F32::ggml_type && tensor.data.size() == bytes.size() &&
        std::equal(bytes.begin(), bytes.end(), tensor.data.begin())) {
      return;
    }
    fail<RequestError>(source_.origin(), ": tensor ", tensor.name,
                       " must hold the numbers that config.json makes, it holds others; keep the "
                       "model as GGUF");
  }
  template <class Maker, class... Arguments>
  const ByteMaker& make(Arguments&&... arguments) {
    makers_.push_back(std::make_unique<const Maker>(std::forward<Arguments>(arguments)...));
    return *makers_.back();
  }
  MakerInput input(StoredBytes bytes) const {
    return {bytes,
            [&source = source_](std::span<const std::byte> part) { source.done_with(part); }};
  }
  void put_experts(const std::string& theirs, std::size_t at, const TensorInfo& tensor) {
    if (tensor.shape.size() != 3 || tensor.shape[0] != family_.experts) {
      fail<RequestError>(source_.origin(), ": tensor ", printable(tensor.name),
                         " must have the shape [experts, out, in] with ", family_.experts,
                         " experts, it has ", shape_text(tensor.shape), "; the file is damaged");
    }
    const std::size_t each = tensor.data.size() / static_cast<std::size_t>(tensor.shape[0]);
    for (Dim e = 0; e < tensor.shape[0]; ++e) {
      std::string name = theirs;
      name.replace(at, 3, std::to_string(e));
      TensorInfo one = tensor;
      one.shape.erase(one.shape.begin());
      one.data = tensor.data.subspan(static_cast<std::size_t>(e) * each, each);
      put(std::move(name), one, Change::none);
    }
  }
  void put(std::string name, const TensorInfo& tensor, Change change) {
    SafeTensor to{std::move(name), safe_type_of_ggml(tensor.ggml_type), tensor.shape, tensor.data};
    const bool plain = to.type != nullptr && (to.type->name == "F32" || to.type->name == "F16" ||
                                              to.type->name == "BF16");
    if (change == Change::plus_one) {
      if (!plain || to.type->name != "F32") {
        fail<RequestError>(source_.origin(), ": tensor ", printable(tensor.name),
                           " must be f32 as norms are, it is ",
                           find_ggml_type(tensor.ggml_type)->name,
                           "; convert the checkpoint again");
      }
      const std::size_t bytes = to.data.size();
      Converted::Step step{F32::decode, 4, F32::encode, 4};
      step.add = -1;
      to.data = StoredBytes(make<Converted>(input(to.data), std::move(step)), bytes);
    } else if (!plain) {
      dequantize(tensor, to);
    }
    if (change == Change::query_pairs || change == Change::key_pairs) {
      const Dim heads = change == Change::query_pairs ? family_.heads : family_.kv_heads;
      if (to.shape[0] != heads * family_.head_dim) {
        fail<RequestError>(source_.origin(), ": tensor ", printable(tensor.name), " must have ",
                           heads * family_.head_dim, " rows, its shape is ", shape_text(to.shape),
                           "; the file is damaged");
      }
      const std::size_t bytes = to.data.size();
      const std::size_t row = bytes / static_cast<std::size_t>(to.shape[0]);
      to.data = StoredBytes(make<ReorderedPairs>(input(to.data), family_.head_dim, row,
                                                 PairOrder::halves_of_interleaved),
                            bytes);
    }
    tensors_.push_back(std::move(to));
  }
  void dequantize(const TensorInfo& tensor, SafeTensor& to) {
    const int tag = tag_of_ggml_type<GgufFormats>(tensor.ggml_type);
    if (!options_.dequantize || tag < 0) {
      const GgmlType* type = find_ggml_type(tensor.ggml_type);
      fail<RequestError>(source_.origin(), ": tensor ", printable(tensor.name),
                         " must be f32, f16 or bf16 to be written to safetensors, it is ",
                         type == nullptr ? "of an unknown type" : type->name,
                         tag < 0 ? "; convert the original checkpoint instead"
                                 : "; ask for it to be dequantized, or convert the original");
    }
    to.type = safe_type_of_ggml(F32::ggml_type);
    const std::size_t values = FormatList<GgufFormats>::visit(tag, [&]<class F>(F) {
      return tensor.data.size() / F::block_bytes * static_cast<std::size_t>(F::block);
    });
    const ByteMaker& maker = FormatList<GgufFormats>::visit(
        tag, [&]<class F>(F) -> const ByteMaker& { return make<Decoded<F>>(input(tensor.data)); });
    to.data = StoredBytes(maker, checked_multiply(values, 4));
  }

  void write_tensors(const std::filesystem::path& folder) const {
    const SafeMetadata metadata{{"format", "pt"}};
    std::vector<std::vector<SafeTensor>> files(1);
    std::uint64_t bytes = 0, total = 0;
    for (const SafeTensor& tensor : tensors_) {
      if (bytes > 0 && bytes + tensor.data.size() > options_.file_bytes) {
        files.emplace_back();
        bytes = 0;
      }
      files.back().push_back(tensor);
      bytes += tensor.data.size();
      total += tensor.data.size();
    }
    if (files.size() == 1) {
      return write_safetensors(folder / "model.safetensors", files[0], metadata);
    }
    JsonValue index;
    index["metadata"]["total_size"] = total;
    for (std::size_t i = 0; i < files.size(); ++i) {
      char name[64];
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", i + 1, files.size());
      write_safetensors(folder / name, files[i], metadata);
      for (const SafeTensor& tensor : files[i]) index["weight_map"][tensor.name] = JsonValue(name);
    }
    write_whole(folder / "model.safetensors.index.json", index.dump(2) + "\n");
    std::error_code error;  // readers would prefer one of an earlier checkpoint
    std::filesystem::remove(folder / "model.safetensors", error);
  }

  const TensorSource& source_;
  HuggingFaceOptions options_;
  JsonValue config_;
  Family family_;
  std::vector<SafeTensor> tensors_;
  std::vector<std::unique_ptr<const ByteMaker>> makers_;
};

}  // namespace tenon::inline TENON_ABI::detail
