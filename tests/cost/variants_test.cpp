// Intensities as exact quotients, what each attention variant, mixture and cache costs, and the
// places where lectures and books print something else than is true.
#include "catch.hpp"
#include "cost/published.hpp"
#include "tenon/cost/serving.hpp"
#include "tenon/quant/fp8.hpp"
#include "tenon/quant/k_quants.hpp"

using namespace tenon;
using namespace tenon::cost;
using namespace tenon::cost::elements;
using namespace published;

namespace {

constexpr Hardware h100 = H100::hardware;

// Intensities in bf16: matrix product B D F / (B D + D F + B F), gated feed-forward
// 3 B T D F / (2 B T (D + F) + 3 D F), attention S T / (S + T), grouped T S G / (T G + S).
constexpr bool quotients(Dim b, Dim t, Dim s, Dim d, Dim f, Dim k, Dim g, Dim h) {
  return matmul(b, d, f).intensity() == Ratio(b * d * f, b * d + d * f + b * f) &&
         gated_mlp(b * t, d, f).intensity() ==
             Ratio(3 * b * t * d * f, 2 * b * t * (d + f) + 3 * d * f) &&
         gated_mlp(b * t, d, f, true).intensity() ==
             Ratio(6 * b * t * d * f, 4 * b * t * d + 6 * d * f) &&
         attention(b, t, s, k, k, h).intensity() == Ratio(s * t, s + t) &&
         attention(b, s, s, k, k, h).intensity() == Ratio(s, 2) &&
         attention(b, 1, s, k, k, h).intensity() == Ratio(s, s + 1) &&
         attention(b, t, s, k * g, k, h).intensity() == Ratio(t * s * g, t * g + s) &&
         attention(b, 1, s, k * g, k, h).intensity() == Ratio(s * g, s + g) &&
         attention(b, t, t, k * g, k, h).intensity() == Ratio(t * g, g + 1) &&
         attention(b, t, s, k * g, k, h, false, int8).intensity() ==
             Ratio(2 * t * s * g, 2 * t * g + s);
}
static_assert(quotients(1, 1, 1, 1, 1, 1, 1, 1));
static_assert(quotients(3, 5, 7, 64, 172, 2, 4, 8));
static_assert(quotients(256, 16, 8192, 5120, 13824, 8, 5, 128));
static_assert(matmul(1, 8192, 8192).intensity().value() < 1);
// Itemised: bytes of the feed-forward are 4 B T D + 4 B T F + 6 D F, its FLOPs 6 B T D F.
static_assert(gated_mlp(6, 64, 172).bytes == 4 * 6 * 64 + 4 * 6 * 172 + 6 * 64 * 172 &&
              gated_mlp(6, 64, 172).flops == 6 * 6 * 64 * 172);
// A causal mask takes T (S - T) + T (T + 1) / 2 of the T S pairs.
static_assert(query_key_pairs(4, 10) == 4 * 6 + 4 * 5 / 2 && query_key_pairs(1, 10) == 10);
static_assert(attention(2, 4, 10, 8, 2, 16, true).flops == 4 * 2 * 8 * 16 * 34);
// Windows: row i sees min(i, W).
constexpr bool windows(Dim s, Dim t, Dim w) {
  Dim pairs = 0;
  for (Dim row = s - t + 1; row <= s; ++row) pairs += row < w ? row : w;
  return query_key_pairs(t, s, w) == pairs;
}
static_assert(windows(20, 20, 8) && windows(20, 1, 8) && windows(20, 15, 8) && windows(5, 3, 8));

// Latent attention: DeepSeek-V2 has 128 heads, C 512, R 64, Dn = Dv = 128, 60 layers.
static_assert(absorbed_attention(4096, 128, 512, 64).intensity() == Ratio(2 * 128 * 1088, 576 * 2));
static_assert(printed(absorbed_attention(1, 128, 512, 64).intensity().value(), 241.78, 1e-2));
static_assert(printed(absorbed_attention(1, 128, 512, 64, int8).intensity().value(), 483.6, 1e-1));
static_assert(mla_crossover(512, 128, 128) == Ratio(131072, 768) &&
              printed(mla_crossover(512, 128, 128).value(), 170.67, 1e-2));
constexpr MixerNumbers v2 = latent_numbers(5120, 128, 512, 64, 128, 128, 1536);
static_assert(v2.pair_flops == 128 * 2176 && v2.expanded_pair_flops == 128 * 640 &&
              v2.expand_flops == 128 * 262144);
// T* is where both forms take the same: the pairs of T tokens against the expansion of a row.
static_assert(Ratio(v2.expand_flops, v2.pair_flops - v2.expanded_pair_flops) ==
              mla_crossover(512, 128, 128));
// C = 4 H and R = H / 2 hold what 2.25 heads of grouped queries hold, C + R = 2 x 2.25 H.
static_assert(Ratio(512 + 64, 2 * 128) == Ratio(9, 4));
// Weights of one layer multiplied together would be N D C values where W_UK has 8.4 M and W_O 84 M.
static_assert(Dim{128} * 5120 * 512 == 335544320 && v2.expanded_matrices == 2 * 8388608);
static_assert(v2.values.matrices - v2.expanded_matrices - 5120 * (512 + 64) - 5120 * 1536 -
                  1536 * 128 * (128 + 64) ==
              83886080);

constexpr ModelSizes latent(Dim layers, Element cache, Dim expand_above = 0) {
  ModelSizes m;
  m.width = 5120;
  m.vocab = 102400;
  LayerSizes layer;
  layer.mixer = latent_numbers(5120, 128, 512, 64, 128, 128, 1536, true, expand_above);
  layer.cache.row_bytes = cache.bytes_of(512 + 64);
  m.add(layer, layers);
  return m;
}
static_assert(cache_bytes_per_token(latent(60, bf16)) == 69120 &&
              cache_bytes_per_token(latent(61, bf16)) == 70272);
static_assert(printed(intensities(latent(60, bf16), {8, 1, 4096}).attention, 241.78, 1e-2));
// Steps of up to T* tokens are absorbed; larger ones expand, which is less work from there on.
constexpr Dim attention_flops(Dim tokens, Dim expand_above) {
  return flops(latent(1, bf16, expand_above), {1, tokens, 4096, 0, false}).attention;
}
static_assert(attention_flops(170, 170) == attention_flops(170, 0));
static_assert(attention_flops(171, 170) < attention_flops(171, 0) &&
              attention_flops(170, 169) > attention_flops(170, 0));

// Layers that share: of 20 layers ceil(20 / f) hold rows, all 20 read them (arXiv 2405.12981).
constexpr DenseSizes shared(Dim f) {
  return {.width = 2048,
          .hidden = 5504,
          .heads = 16,
          .kv_heads = 1,
          .head_dim = 128,
          .layers = 20,
          .vocab = 32000,
          .share = f};
}
static_assert(cache_bytes_per_token(dense(shared(1))) == 10240 &&
              cache_bytes_per_token(dense(shared(2))) == 5120 &&
              cache_bytes_per_token(dense(shared(3))) == 3584 &&
              cache_bytes_per_token(dense(shared(4))) == 2560);
static_assert(cache_traffic(dense(shared(1)), 1, 100) == 100 * 10240 &&
              cache_traffic(dense(shared(4)), 1, 100) == 100 * 10240);
static_assert(flops(dense(shared(4)), {2, 3, 100}).attention ==
              flops(dense(shared(1)), {2, 3, 100}).attention);
static_assert(parameters(dense(shared(1))) - parameters(dense(shared(2))) == 10 * 2 * 2048 * 128);

// Windows keep min(S, W) rows, and sinks besides; a step of T tokens reads W - 1 + T of them.
constexpr ModelSizes windowed(Dim window, Dim sinks) {
  DenseSizes s = mistral_7b;
  s.window = window;
  s.sinks = sinks;
  return dense(s);
}
static_assert(cache_bytes(windowed(4096, 0), 1000) == 1000 * 131072 &&
              cache_bytes(windowed(4096, 0), 100000) == 4096 * 131072 &&
              cache_bytes(windowed(4096, 4), 100000) == 4100 * 131072);
static_assert(cache_traffic(windowed(4096, 0), 1, 100000) == 4096 * 131072 &&
              cache_traffic(windowed(4096, 0), 3, 100000) == 4098 * 131072);
static_assert(flops(windowed(4096, 0), {1, 1, 100000}).attention ==
              flops(dense(mistral_7b), {1, 1, 4096}).attention);
static_assert(flops(windowed(4096, 0), {1, 8, 64}).attention ==
              flops(dense(mistral_7b), {1, 8, 64}).attention);

// Recurrent layers: n_h P_h N_s + (d_conv - 1)(n_h P_h + 2 n_g N_s) values, read and written once a
// step, whatever the context (Mamba-2 of 24 heads of 64, one group, state 128).
constexpr ModelSizes recurrent() {
  ModelSizes m;
  m.width = 768;
  m.vocab = 50280;
  LayerSizes layer;
  layer.mixer = mamba2_numbers(768, 24, 64, 1, 128);
  m.add(layer, 24);
  return m;
}
static_assert(state_bytes(recurrent()) == 24 * 4 * (24 * 64 * 128 + 3 * (24 * 64 + 2 * 128)));
static_assert(cache_bytes(recurrent(), 1) == cache_bytes(recurrent(), 100000) &&
              cache_traffic(recurrent(), 1, 100000) == 2 * state_bytes(recurrent()));
static_assert(flops(recurrent(), {1, 1, 9}).attention == flops(recurrent(), {1, 1, 99}).attention);
// The published mamba2-130m has 24 such layers, one norm each and one in the end, a tied embedding.
constexpr Dim mamba2_130m() {
  ModelSizes m = recurrent();
  m.vocab = 50288;
  m.tied = true;
  m.output_norm.vectors = 768;
  m.groups[0].layer.residual.vectors = 768;
  return parameters(m);
}
static_assert(mamba2_130m() == 128989632);
static_assert(delta_numbers(2048, 16, 128, 32, 128).state_values ==
              32 * 128 * 128 + 3 * (2 * 16 * 128 + 32 * 128));

// Experts: E (1 - (1 - k / E)^B) distinct ones are expected at batch B.
static_assert(expected_experts(16, 2, 1) == 2 && expected_experts(0, 0, 5) == 0 &&
              expected_experts(8, 8, 3) == 8);
static_assert(same(expected_experts(16, 2, 3), 16 * (1 - 0.875 * 0.875 * 0.875)));
static_assert(expected_experts(16, 2, 1000) <= 16 && expected_experts(16, 2, 1000) > 15.999);
constexpr ModelSizes mixture() {
  return shape_named("mixtral-8x7b");
}
static_assert(parameters(mixture()) == 46702792704 && active_parameters(mixture()) == 12879925248);
static_assert(flops(mixture(), {1, 1, 1}).linear - flops(dense(mistral_7b), {1, 1, 1}).linear ==
              2 * 32 * (Dim{3} * 4096 * 14336 + 4096 * 8));
static_assert(same(traffic(mixture(), {1, 1, 1}).linear,
                   traffic(dense(mistral_7b), {1, 1, 1}).linear +
                       2. * 32 * (3. * 4096 * 14336 + 4096 * 8)));

// Blocks: bytes of weights and rows follow the bits per value.
static_assert(element_of<Q4_K>().bits_per_value() == 4.5 && element_of<Q6_K>().bytes == 210);
constexpr ModelSizes blocks() {
  DenseSizes s = llama3_8b;
  s.norms = false;
  s.weights = element_of<Q4_K>();
  s.cache = {32, 34};
  return dense(s);
}
static_assert(weight_bytes(blocks()) == parameters(blocks()) * 9 / 16);
static_assert(cache_bytes_per_token(blocks()) == 131072 / 2 * 34 / 32);
static_assert(traffic(blocks(), {1, 1, 10}).attention == 10. * 131072 / 2 * 34 / 32);

// Rows of two bits with the newest 128 in 16 bits (KIVI, arXiv 2402.02750).
static_assert(residual_cache_bytes(1000, 1024, 128, {32, 12}) == 872 * 384 + 128 * 2048);
static_assert(residual_cache_bytes(100, 1024, 128, {32, 12}) == 100 * 2048);

// Pages: whole ones, and four bytes for each in the table; at most p - 1 rows are wasted.
constexpr ModelSizes paged(Dim page_rows) {
  DenseSizes s = llama3_8b;
  s.page_rows = page_rows;
  return dense(s);
}
static_assert(cache_bytes(paged(16), 100) == 7 * 16 * 131072 + 4 * 7);
static_assert(cache_traffic(paged(16), 1, 100) == 100 * 131072);
static_assert(paged_waste_most(16) == 15 && paged_waste_mean(16) == Ratio(15, 2));

// Speculation (arXiv 2211.17192): tokens of a pass, and the best draft length and its gain.
static_assert(expected_tokens(0.5, 1) == 1.5 && expected_tokens(1, 4) == 5);
static_assert(printed(expected_tokens(0.8, 3), 2.952, 1e-3) &&
              printed(expected_tokens(0.8, 7), 4.1611, 1e-4) &&
              printed(expected_tokens(0.6, 5), 2.3834, 1e-4));
constexpr bool best(double alpha, double c, int gamma, double gain) {
  return best_draft_length(alpha, c) == gamma &&
         printed(speculative_gain(alpha, gamma, c), gain, 1e-3);
}
static_assert(best(.6, .02, 6, 2.170) && best(.6, .05, 4, 1.921) && best(.6, .1, 3, 1.674));
static_assert(best(.7, .02, 8, 2.758) && best(.7, .05, 6, 2.353) && best(.7, .1, 4, 1.981));
static_assert(best(.8, .02, 11, 3.817) && best(.8, .05, 8, 3.092) && best(.8, .1, 6, 2.470));
static_assert(best(.9, .02, 19, 6.365) && best(.9, .05, 13, 4.674) && best(.9, .1, 10, 3.431));
// It pays exactly when alpha > c.
static_assert(best_draft_length(0.3, 0.31) == 0 && best_draft_length(0.32, 0.31) == 1);

}  // namespace

TEST_CASE("verification is nearly free below the critical batch and costs above it", "[cost]") {
  const ModelSizes m = dense(llama3_8b);
  const double alone = step_time(m, {1, 1, 1024}, h100);
  CHECK(step_time(m, {1, 5, 1028}, h100) < alone * 1.001);
  CHECK(speculative_time_per_token(m, 1, 1024, h100, 0.8, 4, 0.05 * alone) < alone / 2.7);
  const double crowded = step_time(m, {512, 1, 64}, h100);
  CHECK(speculative_time_per_token(m, 512, 64, h100, 0.5, 4, 0) > crowded);
}

TEST_CASE("time to the first token and between tokens", "[cost]") {
  const ModelSizes m = dense(llama3_8b);
  // One chunk is one prefill step, and its attention is bound by arithmetic.
  const double whole = time_to_first_token(m, 4096, 4096, h100);
  CHECK(same(whole, step_time(m, {1, 4096, 4096}, h100)));
  // Chunks below the critical batch read the weights again and again; large ones cost the same.
  CHECK(time_to_first_token(m, 4096, 64, h100) > 3 * whole);
  CHECK(time_to_first_token(m, 4096, 2048, h100) < 1.01 * whole);
  CHECK(time_to_first_token(m, 4096, 4096, h100, 0, 1, 4096 - 64) < whole / 10);  // a prefix hit
  // Whose logits are wanted is computed even if all rows are there.
  const double last = step_time(m, {1, 1, 4096}, h100);
  CHECK(same(time_to_first_token(m, 4096, 4096, h100, 0, 1, 4095), last));
  CHECK(same(time_to_first_token(m, 4096, 4096, h100, 0, 1, 4096), last));
  CHECK(same(time_to_first_token(m, 4096, std::numeric_limits<Dim>::max(), h100), whole));
  CHECK(same(time_to_first_token(m, 4096, 4096, h100, 0, 1, 0, 0.5), whole + 0.5));
  CHECK(same(time_per_output_token(m, 64, 1024, h100), step_time(m, {64, 1, 1024}, h100)));
  CHECK(same(iteration_time(m, {64, 1024, 0, 0}, h100), step_time(m, {64, 1, 1024}, h100)));
  // 256 sequences of one token do not expand latents, one prompt of as many does.
  const ModelSizes latents = latent(2, bf16, 170);
  CHECK(same(iteration_time(latents, {256, 1024, 0, 0}, h100),
             step_time(latents, {256, 1, 1024}, h100)));
  CHECK(
      same(iteration_time(latents, {0, 1, 256, 0}, h100), step_time(latents, {1, 256, 256}, h100)));
  CHECK(iteration_time(m, {64, 1024, 128, 0}, h100) > iteration_time(m, {64, 1024, 0, 0}, h100));
}

TEST_CASE("a preempted sequence is computed again or moved, whichever is less", "[cost]") {
  const Preemption of = preemption(dense(llama3_8b), 1000, h100);
  CHECK(of.swap == Approx(2 * 1000 * 131072 / 64e9));
  CHECK(of.recompute == Approx(2 * 7.0e9 * 1000 / 989e12).epsilon(0.02));
  CHECK_FALSE(of.recomputes());
}

// What the sources print and what holds.

TEST_CASE("trap 1: a draft is accepted by a uniform number, with the residual for the rest",
          "[cost][traps]") {
  // u < min(1, t / d) for u uniform in [0, 1), else a draw from max(0, t - d): the law is t's.
  constexpr double t[] = {0.5, 0.3, 0.2}, d[] = {0.2, 0.2, 0.6};
  constexpr double kept = acceptance(t, d);
  static_assert(same(kept, 0.6));  // 1 - total variation
  for (int x = 0; x < 3; ++x) {
    const double accept = (std::min)(1.0, t[x] / d[x]);
    const double residual = (std::max)(0.0, t[x] - d[x]) / (1 - kept);
    CHECK(same(d[x] * accept + (1 - kept) * residual, t[x]));
  }
}

TEST_CASE("trap 2: inference takes two FLOPs for each parameter and token, not six",
          "[cost][traps]") {
  const ModelSizes m = lecture(40);
  const Step step{16, 8, 8, 16 * 8};
  const Parts<Dim> work = flops(m, step);
  // The embedding is looked up, not multiplied.
  CHECK(work.linear + work.unembedding == 2 * 16 * 8 * (parameters(m) - Dim{32000} * 5120));
}

TEST_CASE("trap 3: the largest E4M3 is 448, not 240", "[cost][traps]") {
  const auto value = [](unsigned char code) {
    float x = 0;
    const std::byte byte{code};
    Fp8E4M3::decode(&byte, 1, &x);
    return x;
  };
  CHECK(value(0x7e) == 448);
  CHECK(value(0x77) == 240);
  CHECK(value(0x7f) != value(0x7f));
}

TEST_CASE("trap 4: fewer key/value heads are faster at the same batch", "[cost][traps]") {
  const auto latency = [](Dim kv_heads, Dim batch) {
    return memory_step_time(load_of(lecture(kv_heads), {batch, 1, 1024}), h100) * 1e3;
  };
  CHECK(printed(latency(40, 64), 23.80, 1e-2));
  CHECK(printed(latency(8, 64), 9.97, 1e-2));
  CHECK(latency(8, 64) > latency(8, 1));  // slower only than a batch of one
  CHECK(latency(8, 64) > latency(40, 1));
}

TEST_CASE("trap 5: three bits are 5.33 times smaller than sixteen, 5.1 with their scales",
          "[cost][traps]") {
  // Groups of 128 with a half scale and a zero of three bits: 403 bits; eight of them fill bytes.
  constexpr Element int3{8, 3}, grouped{1024, 403};
  CHECK(same(bf16.bits_per_value() / int3.bits_per_value(), 16.0 / 3));
  CHECK(printed(grouped.bits_per_value(), 3.148, 1e-3));
  CHECK(printed(bf16.bits_per_value() / grouped.bits_per_value(), 5.08, 1e-2));
  CHECK(bf16.bits_per_value() / int4.bits_per_value() == 4);
}

TEST_CASE("trap 6: parameters are a count, bytes follow from the format", "[cost][traps]") {
  CHECK(weight_bytes(lecture(40)) == 2 * parameters(lecture(40)));
  DenseSizes s = llama2_13b;
  s.norms = false;
  s.weights = int8;
  CHECK(weight_bytes(dense(s)) == parameters(dense(s)));
}

TEST_CASE("trap 7: on as many chips as each format needs, all hold 43.2 caches", "[cost][traps]") {
  // 70e9 parameters on 16, 8 and 4 chips of 16e9 bytes, caches of 8192 tokens in the same format.
  struct Case {
    Element element;
    double chips, room;
  };
  for (const Case& c : {Case{bf16, 16, 116e9}, Case{int8, 8, 58e9}, Case{int4, 4, 29e9}}) {
    DenseSizes s = llama3_70b;
    s.cache = c.element;
    const double room = c.chips * 16e9 - 70e9 * c.element.bytes_per_value();
    CHECK(room == c.room);
    CHECK(printed(room / static_cast<double>(cache_bytes(dense(s), 8192)), 43.2, 1e-1));
  }
  // Not 186 on four slices of eight chips, and 19 only with the 45 GB that int4 takes elsewhere.
  CHECK(32 * 16e9 - 2 * 70e9 == 372e9);
  CHECK(4 * 16e9 - 45e9 == 19e9);
}

TEST_CASE("trap 8: decoding is not always bound by memory at one FLOP per byte", "[cost][traps]") {
  CHECK(attention(64, 1, 8192, 40, 40, 128).intensity().value() < 1);
  const double grouped = attention(64, 1, 8192, 64, 8, 128).intensity().value();
  CHECK(grouped > 7.99);  // tends to the 8 queries of a key
  CHECK(grouped < 8);
  const double absorbed = absorbed_attention(8192, 128, 512, 64).intensity().value();
  CHECK(absorbed > TpuV5e::hardware.balance());  // it is bound by arithmetic there
  CHECK(absorbed > 0.8 * h100.balance());
}
