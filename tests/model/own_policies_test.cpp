// What a user may add without touching the library: a number format, a mask, a score hook, an
// activation, in a model bound from a checkpoint.
#include <cmath>
#include <cstring>

#include "catch.hpp"
#include "golden/reference.hpp"
#include "model/synthetic.hpp"
#include "tenon/kernels/every_format.hpp"  // for programs that link tenon::compiled
#include "tenon/zoo/llama.hpp"

using namespace tenon;

namespace {

// Floats with their bytes reversed, under the GGUF number of a type the library does not know.
struct Reversed {
  static constexpr std::string_view name = "reversed";
  static constexpr int ggml_type = 28;
  static constexpr Dim block = 1;
  static constexpr std::size_t block_bytes = 4;
  static void encode(const float* x, Dim n, std::byte* to) {
    for (Dim i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < 4; ++k)
        to[4 * i + 3 - static_cast<Dim>(k)] = reinterpret_cast<const std::byte*>(x + i)[k];
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (Dim i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < 4; ++k)
        reinterpret_cast<std::byte*>(x + i)[k] = from[4 * i + 3 - static_cast<Dim>(k)];
    }
  }
};

// Causal, written the slow way.
struct Pairwise {
  static constexpr bool bounded = false, looks_ahead = false;
  Rows reach(Rows queries, int) const { return {0, queries.high}; }
  Coverage classify(Rows, Rows) const { return Coverage::partial; }
  bool keep(int query, int key) const { return key <= query; }
};
struct Unchanged {
  float logit(float score, int, int, int) const { return score; }
};
struct Relu {
  static float f(float x) { return x > 0 ? x : 0; }
};

template <class Mask, class Hook, class Activation, class Cache, class Formats>
using Own =
    Decoder<Kinds<Block<Gqa<GqaSpec{}, Mask, Rope, Cache, Hook>, GatedMlp<Activation>, RmsNorm>>,
            Uniform{}, Formats>;

template <class M>
reference::Logits run(const synthetic::Llama& source) {
  SerialExecutor serial;
  const auto model = M::bind(source, serial);
  auto session = model.open({.seqs = 1, .context = 80, .step_tokens = 32}, {.executor = &serial});
  std::vector<Token> tokens;
  for (int i = 0; i < 75; ++i) tokens.push_back(i * 13 % 300);
  return reference::logits(session, tokens, 32);
}

}  // namespace

TEST_CASE("a user's mask, hook, format and cache element give the bits of the library's", "[own]") {
  const synthetic::Llama source({});
  const auto expected = run<zoo::Llama<Contiguous<F32>, F32>>(source);
  CHECK(reference::same_bits(run<Own<Pairwise, Unchanged, Silu, Contiguous<F32>, F32>>(source),
                             expected));
  CHECK(reference::same_bits(run<Own<Causal, PlainScore, Silu, Contiguous<Reversed>, F32>>(source),
                             expected));

  synthetic::Llama reversed({});
  for (TensorInfo& tensor : reversed.edit_tensors()) {
    if (tensor.shape.size() != 2) continue;
    std::byte* bytes = reversed.bytes(tensor.name);
    for (std::size_t i = 0; i < tensor.data.size(); i += 4) std::reverse(bytes + i, bytes + i + 4);
    tensor.ggml_type = Reversed::ggml_type;
  }
  CHECK(reference::same_bits(
      run<Own<Causal, PlainScore, Silu, Contiguous<F32>, AnyOf<F16, Reversed>>>(reversed),
      expected));
}

TEST_CASE("a user's activation is used", "[own]") {
  const synthetic::Llama source({});
  const auto silu = run<Own<Causal, PlainScore, Silu, Contiguous<F32>, F32>>(source);
  const auto relu = run<Own<Causal, PlainScore, Relu, Contiguous<F32>, F32>>(source);
  CHECK_FALSE(reference::same_bits(silu, relu));
}
