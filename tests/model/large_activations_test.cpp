// Activations beyond what a half holds: nothing between the caches is stored in fewer than 32 bits.
#include <cmath>

#include "catch.hpp"
#include "laws/compositions.hpp"

using namespace laws;

namespace {

using Dense = Decoder<Kinds<Block<Gqa<GqaSpec{}, Causal, Rope, Plain>, SwiGlu, RmsNorm>>, Uniform{},
                      AnyOf<F32, Q8_0>>;

std::vector<float> logits_of(const random_source::Source& source, std::string_view cache) {
  SerialExecutor serial;
  const auto model = Dense::bind(source, serial);
  auto session =
      model.open({.context = 32, .step_tokens = 16}, {.cache = cache, .executor = &serial});
  const SeqId seq = session.open();
  std::vector<Token> tokens;
  for (int i = 0; i < 12; ++i) tokens.push_back(i * 5 % 64);
  std::vector<int> want(12);
  for (int i = 0; i < 12; ++i) want[static_cast<std::size_t>(i)] = i;
  const int count = 12;
  std::vector<float> logits(12 * 64);
  session.forward({.seqs = {&seq, 1},
                   .counts = {&count, 1},
                   .tokens = tokens,
                   .positions = {},
                   .parents = {},
                   .want = want},
                  matrix(logits.data(), 12, 64));
  return logits;
}
// Row `r` of one matrix [., in] times `factor`, column `r` of the other [., out] divided by it.
void scale(random_source::Source& source, const std::string& up, const std::string& down,
           std::size_t r, float factor) {
  std::vector<float>& rows = source.values(up);
  std::vector<float>& columns = source.values(down);
  const auto in = static_cast<std::size_t>(source.find(up)->shape[1]);
  const auto width = static_cast<std::size_t>(source.find(down)->shape[1]);
  for (std::size_t k = 0; k < in; ++k) rows[r * in + k] *= factor;
  for (std::size_t o = 0; o < columns.size() / width; ++o) columns[o * width + r] /= factor;
}

}  // namespace

TEST_CASE("large activations: a channel of 10^5 changes no bit") {
  const auto keys = sizes({});
  const auto plain = random_source::Source::of<Dense>(keys);
  // A power of two, so that every rounding stays the same: what differs is an overflow.
  constexpr float factor = 0x1p20f;
  SECTION("between the feed-forward matrices") {
    auto source = random_source::Source::of<Dense>(keys);
    scale(source, "blk.0.ffn_up.weight", "blk.0.ffn_down.weight", 7, factor);
    scale(source, "blk.1.ffn_up.weight", "blk.1.ffn_down.weight", 40, factor);
    for (const std::string_view cache : {"f32", "f16", "q8_0"}) {
      const auto want = logits_of(plain, cache);
      CHECK(logits_of(source, cache) == want);
      for (const float v : want) REQUIRE(std::isfinite(v));
    }
  }
  SECTION("in cached values, where the cache has the range") {
    auto source = random_source::Source::of<Dense>(keys);
    scale(source, "blk.0.attn_v.weight", "blk.0.attn_output.weight", 3, factor);
    for (const std::string_view cache : {"f32", "bf16"}) {
      CHECK(logits_of(source, cache) == logits_of(plain, cache));
    }
  }
}
