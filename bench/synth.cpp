// Writes a model file with random weights of a known shape: for speed and memory, not for text.
//   bench_synth OUT.gguf --shape llama-1b --format q8_0
#include <deque>
#include <iostream>

#include "../examples/command_line.hpp"
#include "tenon/io/gguf_writer.hpp"
#include "tenon/quant/gguf_formats.hpp"

namespace {

using namespace tenon;
using Formats = GgufFormats;

struct Shape {
  std::string_view name;
  Dim width, layers, heads, kv_heads, hidden, vocab;
};
constexpr Shape shapes[] = {
    {"llama-1b", 2048, 16, 32, 8, 8192, 32000}, {"smol-135m", 576, 30, 9, 3, 1536, 49152},
    {"small-50m", 768, 7, 12, 4, 2048, 8192},   {"stories-260k", 64, 5, 8, 4, 172, 512},
    {"deep-64", 1024, 8, 16, 4, 2816, 8192},  // heads of 64 and of 128 for long contexts
    {"deep-128", 2048, 8, 16, 4, 5632, 8192},
};

class Writer {
 public:
  Writer(const Shape& shape, int format) : format_(format), shape_(shape) {
    metadata_.set("general.architecture", "llama");
    metadata_.set("general.name", shape.name);
    put("llama.context_length", 8192);
    put("llama.embedding_length", shape.width);
    put("llama.block_count", shape.layers);
    put("llama.feed_forward_length", shape.hidden);
    put("llama.attention.head_count", shape.heads);
    put("llama.attention.head_count_kv", shape.kv_heads);
    put("llama.vocab_size", shape.vocab);
    metadata_.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    vocabulary();
    tensors();
  }
  void write(const std::string& path) const { write_gguf(path, metadata_, tensors_); }

 private:
  void put(std::string key, Dim value) {
    metadata_.set(std::move(key), static_cast<std::uint32_t>(value));
  }

  // Unknown, start, end, the 256 bytes, then invented words.
  void vocabulary() {
    std::vector<std::string> pieces{"<unk>", "<s>", "</s>"};
    std::vector<std::int64_t> kinds{2, 3, 3};
    std::vector<double> scores(static_cast<std::size_t>(shape_.vocab));
    constexpr char hex[] = "0123456789ABCDEF";
    for (unsigned byte = 0; byte < 256; ++byte) {
      pieces.push_back({'<', '0', 'x', hex[byte >> 4], hex[byte & 15], '>'});
      kinds.push_back(6);
    }
    while (pieces.size() < static_cast<std::size_t>(shape_.vocab)) {
      scores[pieces.size()] = -static_cast<double>(pieces.size());
      pieces.push_back("\u2581w" + std::to_string(pieces.size()));
      kinds.push_back(1);
    }
    metadata_.set("tokenizer.ggml.model", "llama");
    metadata_.set("tokenizer.ggml.tokens",
                  MetaValue{MetaType::array, MetaType::string, std::move(pieces)});
    metadata_.set("tokenizer.ggml.scores",
                  MetaValue{MetaType::array, MetaType::f32, std::move(scores)});
    metadata_.set("tokenizer.ggml.token_type",
                  MetaValue{MetaType::array, MetaType::i32, std::move(kinds)});
    put("tokenizer.ggml.bos_token_id", 1);
    put("tokenizer.ggml.eos_token_id", 2);
    put("tokenizer.ggml.unknown_token_id", 0);
  }

  void tensors() {
    const Dim head = shape_.width / shape_.heads;
    matrix("token_embd.weight", shape_.vocab, shape_.width);
    vector("output_norm.weight", shape_.width);
    for (Dim i = 0; i < shape_.layers; ++i) {
      const std::string at = "blk." + std::to_string(i) + ".";
      vector(at + "attn_norm.weight", shape_.width);
      matrix(at + "attn_q.weight", shape_.width, shape_.width);
      matrix(at + "attn_k.weight", shape_.kv_heads * head, shape_.width);
      matrix(at + "attn_v.weight", shape_.kv_heads * head, shape_.width);
      matrix(at + "attn_output.weight", shape_.width, shape_.width);
      vector(at + "ffn_norm.weight", shape_.width);
      matrix(at + "ffn_gate.weight", shape_.hidden, shape_.width);
      matrix(at + "ffn_up.weight", shape_.hidden, shape_.width);
      matrix(at + "ffn_down.weight", shape_.width, shape_.hidden);
    }
  }
  void vector(const std::string& name, Dim n) {
    auto& bytes = data_.emplace_back(static_cast<std::size_t>(n) * 4);
    const std::vector<float> ones(static_cast<std::size_t>(n), 1.0f);
    F32::encode(ones.data(), n, bytes.data());
    tensors_.push_back({name, F32::ggml_type, {n}, bytes});
  }
  // Rows that do not fill whole blocks of the format are stored as f16.
  void matrix(const std::string& name, Dim out, Dim in) {
    const int wanted = tag_of_ggml_type<Formats>(format_);
    const bool fits =
        FormatList<Formats>::visit(wanted, [&]<class F>(F) { return in % F::block == 0; });
    const int tag = fits ? wanted : tag_of_ggml_type<Formats>(F16::ggml_type);
    std::vector<float> row(static_cast<std::size_t>(in));
    auto& bytes = data_.emplace_back();
    const float scale = 1.7f / std::sqrt(static_cast<float>(in));
    FormatList<Formats>::visit(tag, [&]<class F>(F) {
      bytes.resize(static_cast<std::size_t>(out) * row_bytes<F>(in));
      for (Dim r = 0; r < out; ++r) {
        for (float& value : row) value = scale * draw();
        F::encode(row.data(), in, bytes.data() + static_cast<std::size_t>(r) * row_bytes<F>(in));
      }
      tensors_.push_back({name, F::ggml_type, {out, in}, bytes});
    });
  }
  float draw() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-31f;
  }

  int format_;
  Shape shape_;
  std::uint64_t state_ = 1;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  std::deque<std::vector<std::byte>> data_;
};

void synthesize(const std::string& out, std::string_view shape, std::string_view format) {
  const int tag = tag_of_name<Formats>(format);
  if (tag < 0) {
    fail<RequestError>("--format must be one of ", FormatList<Formats>::names(), ", it is \"",
                       printable(format), "\"");
  }
  const int type = FormatList<Formats>::visit(tag, []<class F>(F) { return F::ggml_type; });
  std::string names;
  for (const Shape& known : shapes) {
    if (known.name == shape) return Writer(known, type).write(out);
    names += message(names.empty() ? "" : ", ", known.name);
  }
  fail<RequestError>("--shape must be one of ", names, ", it is \"", printable(shape), "\"");
}

}  // namespace

int main(int argc, char** argv) {
  std::string out, shape = "llama-1b", format = "q8_0";
  CLI::App app("Writes a model file with random weights.", "bench_synth");
  app.add_option("OUT", out, "the .gguf file to write")->required();
  app.add_option("--shape", shape,
                 "llama-1b, smol-135m, small-50m, stories-260k, deep-64 or deep-128")
      ->capture_default_str();
  app.add_option("--format", format, "of the matrices: one of " + FormatList<Formats>::names())
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { synthesize(out, shape, format); });
}
