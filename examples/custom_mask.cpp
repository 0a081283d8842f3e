// A mask and a score hook of one's own, in this file alone, in a model made for neither: what a
// text's perplexity becomes when the model sees less of it.
#include <cmath>
#include <cstdio>
#include <tenon/attn/masks.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/tenon.hpp>

#include "command_line.hpp"

using namespace tenon;

namespace {

// [mask]
// A token sees the last `recent` tokens, itself included, and of those before every `stride`th.
struct Dilated {
  static constexpr bool bounded = false;      // old rows are never out of sight: no ring can serve
  static constexpr bool looks_ahead = false;  // nobody sees a later token
  int recent = 16, stride = 3;

  // Which rows the queries may see at all, how they see a range of keys, and one exact answer.
  // Where nothing better is known, `partial` is right; keep() then decides pair by pair.
  Rows reach(Rows queries, int) const { return {0, queries.high}; }
  Coverage classify(Rows queries, Rows keys) const {
    return keys.low >= queries.high ? Coverage::skip : Coverage::partial;
  }
  bool keep(int query, int key) const {
    const int back = query - key;
    return back >= 0 && (back < recent || back % stride == 0);
  }
};

// Distance costs: a logit falls by `slope` for every token between, and less in later heads.
struct Fading {
  float slope = 0.02f;
  float logit(float score, int head, int query, int key) const {
    return std::fma(-slope / static_cast<float>(head + 1), static_cast<float>(query - key), score);
  }
};

template <class M, class Hook = PlainScore>
using Story = Decoder<Kinds<Block<Gqa<GqaSpec{}, M, Rope, Contiguous<F16>, Hook>, SwiGlu, RmsNorm>>,
                      Uniform{}, Q8_0>;
// [mask]

template <class M>
void print(const char* name, const TensorSource& file, std::span<const Token> ids,
           const Tokenizer& t) {
  auto session = M::bind(file).open({.context = 256, .step_tokens = 256});
  const NllSum nll = negative_log_likelihood(session, ids, {.window = 255, .bos = t.bos()});
  std::printf("%-30s perplexity %.6f\n", name, nll.perplexity());
}

constexpr const char* own_story =
    "Once upon a time, there was a little girl named Lily. She had a red ball and a small dog. "
    "One day, they went to the park to play. Lily threw the ball, but it fell into the water. "
    "She was very sad. The dog saw the ball and jumped into the water. It came back with the ball "
    "in its mouth. Lily was happy and gave the dog a big hug. They went home to tell her mom.";

void compare(const std::string& model, const std::string& path) {
  const auto checkpoint = open_checkpoint(model);
  const TensorSource& file = *checkpoint;
  std::string text = own_story;
  if (!path.empty()) {
    const MappedFile given(path);
    text.assign(reinterpret_cast<const char*>(given.bytes().data()), given.bytes().size());
  }
  const auto tokenizer = Tokenizer::from(file);
  const auto ids = tokenizer.encode(text, {.bos = false, .eos = false});
  print<Story<Causal>>("causal", file, ids, tokenizer);
  print<Story<Dilated>>("dilated", file, ids, tokenizer);
  print<Story<Dilated, Fading>>("dilated, distance costs", file, ids, tokenizer);
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, text;
  CLI::App app("Perplexity of a text under masks that a model was not trained with.",
               "custom_mask");
  app.add_option("MODEL", model, "a Llama with Q8_0 weights, examples/models/story.gguf")
      ->required();
  app.add_option("TEXT", text, "a file with the text; without it, a short story is taken");
  return run_program(app, argc, argv, [&] { compare(model, text); });
}
