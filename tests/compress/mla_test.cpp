// Grouped-query attention as latent attention.
#include "compress/stories.hpp"
#include "io/errors.hpp"
#include "model/synthetic.hpp"
#include "tenon/compress/to_mla.hpp"
#include "tenon/zoo/llama.hpp"
#include "tenon/zoo/llama_mla.hpp"

using namespace tenon;
using stories::logits_of;
using stories::some_ids;

namespace {

using Formats = AnyOf<F32, F16>;
using Model = zoo::Llama<Contiguous<F32>, Formats>;
using Latents = zoo::LlamaMla<Contiguous<F32>, Formats>;
inline constexpr MlaSpec expanding{.expand = Expand::prefill, .latent_norm = false};
using Expanding =
    Decoder<Kinds<Block<Mla<expanding, Causal, RepeatedRope, Contiguous<F32>>, SwiGlu, RmsNorm>>,
            Uniform{}, Formats>;

// The largest difference, relative to the largest logit.
double relative(const reference::Logits& was, const reference::Logits& is) {
  float largest = 0;
  for (const float x : was.values) largest = (std::max)(largest, std::fabs(x));
  return reference::largest_difference(was, is) / static_cast<double>(largest);
}
double total(const ConversionReport& report) {
  double sum = 0;
  for (const LayerError& e : report.layers) sum += e.keys + e.values;
  return sum;
}

}  // namespace

TEST_CASE("a repeated rotation turns every part as the head turned") {
  const RepeatedRope rope{{.rope_dim = 8}, 4, 8, 12};
  const RotaryFrequencies all = rope.frequencies(12, {});
  const auto head = Rope{.rope_dim = 8}.frequencies(8, {}).radians;
  CHECK(all.radians == std::vector<double>{head[0], head[1], head[0], head[1], head[0], head[1]});
  CHECK(head[1] == Approx(std::pow(10000.0, -0.25)));
  for (const Dim part : {3, 0, 10, 8}) {
    const RepeatedRope wrong{{.rope_dim = 8}, part, 8, 12};
    CHECK(test::missing(test::error_of<ShapeError>([&] { wrong.frequencies(12, {}); }),
                        {"part_dimension_count", "12", std::to_string(part)}) == "");
  }
}

TEST_CASE("full rank is exact to rounding") {
  const auto ids = some_ids(150, 300);
  synthetic::Sizes sizes;
  for (const Dim kv_heads : {4, 2, 1}) {
    for (const Dim turned : {16, 6}) {  // of head_dim 16; the others join the latent
      INFO(kv_heads << " key/value heads, " << turned << " values turn");
      sizes.kv_heads = kv_heads;
      synthetic::Llama source(sizes);
      source.put("llama.rope.dimension_count", turned);
      if (kv_heads == 2) {
        for (const char* name : {"attn_k.bias", "attn_v.bias"}) {
          source.vector(std::string("blk.1.") + name, 32);
        }
        source.vector("blk.0.attn_q.bias", 64);
        source.vector("rope_freqs.weight", turned / 2);
      }
      const Dim joint = kv_heads * (16 - turned + 16);
      const Conversion made = to_mla(source, joint);
      for (const LayerError& e : made.report.layers) {
        CHECK(e.keys < 1e-6);
        CHECK(e.values < 1e-6);
      }
      CHECK(made.report.before == made.report.after);
      const auto model = Latents::bind(made.source);
      const auto was = logits_of(Model::bind(source), ids), is = logits_of(model, ids);
      CHECK(relative(was, is) < 1e-5);
      // F32 rows: twice the bytes of the report.
      CHECK(model.cache_bytes({.seqs = 1, .context = 64}) ==
            static_cast<std::size_t>(2 * 64 * made.report.after.per_token));
      if (turned == 16) {  // no key to expand: absorbed, whatever the count of tokens
        CHECK(reference::same_bits(is, logits_of(Expanding::bind(made.source), ids)));
      } else {
        CHECK(relative(was, logits_of(Expanding::bind(made.source), ids)) < 1e-5);
      }
    }
  }
}

TEST_CASE("values of low rank need no more") {
  // Values that are 6 combinations.
  synthetic::Llama source({});
  for (const char* name : {"blk.0.attn_v.weight", "blk.1.attn_v.weight"}) {
    auto* w = reinterpret_cast<float*>(source.bytes(name));
    for (Dim i = 6; i < 32; ++i) {
      for (Dim k = 0; k < 64; ++k) w[i * 64 + k] = w[i % 6 * 64 + k] * (i % 2 == 0 ? 0.5f : -1.5f);
    }
  }
  const auto ids = some_ids(100, 300);
  const Conversion six = to_mla(source, 6), five = to_mla(source, 5);
  for (const LayerError& e : six.report.layers) CHECK(e.values < 1e-6);
  for (const LayerError& e : five.report.layers) CHECK(e.values > 0.01);
  CHECK(six.report.after.per_token == 2 * (6 + 32) * 2);
  CHECK(relative(logits_of(Model::bind(source), ids), logits_of(Latents::bind(six.source), ids)) <
        1e-5);
}

TEST_CASE("trained models: less rank, more error") {
  const auto eval = shared_file("data/stories/eval.txt");
  for (const std::string name : {"story-mha", "story-gqa"}) {
    const auto path = shared_file("models/trained/" + name + ".gguf");
    if (path.empty() || eval.empty()) return;
    INFO(name);
    const Gguf file = Gguf::open(path.string());
    const auto ids = stories::tokens(Tokenizer::from(file.metadata()), eval, 1500);
    const auto model = Model::bind(file);
    auto before = stories::open(model);
    const Dim kv_heads = name == "story-mha" ? 6 : 2, full = kv_heads * 32;
    const Dim layers = name == "story-mha" ? 3 : 4;
    double kl = 0, error = 0;
    for (const Dim quarters : {4, 3, 2, 1}) {
      const Conversion made = to_mla(file, full * quarters / 4);
      auto after = stories::open(Latents::bind(made.source));
      const auto change = divergence(before, after, ids, {.window = 255, .bos = Token{1}});
      CHECK(made.report.after.per_token == layers * (full * quarters / 4 + full) * 2);
      if (quarters == 4) {
        CHECK(std::fabs(change.kl) < 1e-10);  // quadratic in differences of 1e-6
        CHECK(total(made.report) < 1e-5);
        CHECK(change.perplexity_after() == Approx(change.perplexity_before()).epsilon(1e-5));
      } else {
        CHECK(change.kl > kl);
        CHECK(total(made.report) > error);
        for (const LayerError& e : made.report.layers) CHECK(e.keys == 0);  // they all turn
      }
      kl = change.kl;
      error = total(made.report);
    }
    // The slowest quarter of the pairs hardly turns within a window, so that its keys may join the
    // latent; half of the pairs may not for nothing.
    const auto with_part = [&](Dim part) {
      const Conversion made = to_mla(file, kv_heads * (64 - part), part);
      CHECK(total(made.report) < 1e-5);  // what each vector gives; not how it turns
      auto after = stories::open(Latents::bind(made.source));
      return divergence(before, after, ids, {.window = 255, .bos = Token{1}}).kl;
    };
    const double quarter = with_part(24), half = with_part(16);
    CHECK(quarter < 1e-4);
    CHECK(half > 100 * quarter);
  }
}

TEST_CASE("directions of a text are better on that text than those of the weights") {
  const synthetic::Llama source({});
  // Vectors with a few strong directions.
  MixerInputs text(2, 64);
  std::vector<float> rows;
  for (int t = 0; t < 200; ++t) {
    for (int i = 0; i < 64; ++i) {
      rows.push_back(static_cast<float>(std::sin(0.1 * t * (1 + i % 3)) + 0.01 * std::cos(t * i)));
    }
  }
  for (int layer = 0; layer < 2; ++layer)
    text.add(layer, matrix<const float>(rows.data(), 200, 64));
  const Conversion plain = to_mla(source, 8), fitted = to_mla(source, 8, dyn, &text);
  CHECK(fitted.report.on_text);
  // Each is measured on what it was made for: also tell both on the text. The values that a layer
  // gives there are U U^T W_V x.
  for (int layer = 0; layer < 2; ++layer) {
    const auto v = detail::read_projection(source, layer, "attn_v", 32, 64);
    const auto error = [&](const Conversion& c) {
      const auto rows_of = detail::read_projection(c.source, layer, "attn_kv_a_mqa", 8 + 32, 64);
      const TensorInfo& up = *c.source.find(detail::in_layer(layer, "attn_v_b.weight"));
      REQUIRE(up.shape == std::vector<Dim>{4, 16, 8});
      const auto* values = reinterpret_cast<const float*>(up.data.data());
      auto made = detail::zeros(32, 64, false);
      for (Dim i = 0; i < 32; ++i) {
        for (Dim c8 = 0; c8 < 8; ++c8) {  // query heads 0 and 2 read key/value heads 0 and 1
          const float u = values[((i / 16 * 2) * 16 + i % 16) * 8 + c8];
          for (Dim k = 0; k < 64; ++k) made.row(i)[k] += u * rows_of.row(c8)[k];
        }
      }
      return detail::relative_error(made, v, &text, layer);
    };
    CHECK(error(fitted) < 0.1 * error(plain));
    CHECK(error(fitted) ==
          Approx(fitted.report.layers[static_cast<std::size_t>(layer)].values).epsilon(1e-3));
  }
}

TEST_CASE("what to_mla refuses") {
  const synthetic::Llama source({});
  for (const Dim rank : {Dim{0}, Dim{-4}, Dim{33}, Dim{1} << 40}) {
    CHECK(test::missing(test::error_of<RequestError>([&] { to_mla(source, rank); }),
                        {"1 to 32", std::to_string(rank)}) == "");
  }
  for (const Dim part : {0, 3, 18, -2}) {
    CHECK(test::missing(test::error_of<RequestError>([&] { to_mla(source, 8, part); }),
                        {"2 to 16", std::to_string(part)}) == "");
  }
  EditedSource other(source), window(source), heads(source), damaged(source);
  other.set_architecture("deepseek2");
  CHECK(test::missing(test::error_of<LoadError>([&] { to_mla(other, 8); }), {"deepseek2"}) == "");
  window.set("attention.sliding_window", std::uint32_t{16});
  CHECK(test::missing(test::error_of<LoadError>([&] { to_mla(window, 8); }), {"window of 16"}) ==
        "");
  heads.set("attention.head_count", std::uint32_t{512});
  heads.set("attention.head_count_kv", std::uint32_t{512});
  CHECK(test::missing(test::error_of<LoadError>([&] { to_mla(heads, 8); }), {"256", "512"}) == "");
  std::vector<float> w(32 * 64, 1);
  w[7] = -HUGE_VALF;
  damaged.replace("blk.1.attn_k.weight", {32, 64}, w);
  CHECK(test::missing(test::error_of<LoadError>([&] { to_mla(damaged, 8); }),
                      {"blk.1.attn_k.weight", "finite"}) == "");
  std::fill(w.begin(), w.end(), 0.0f);
  damaged.replace("blk.1.attn_k.weight", {32, 64}, w);
  damaged.replace("blk.1.attn_v.weight", {32, 64}, w);
  CHECK(to_mla(damaged, 8).report.layers[1].values == 0);
  Latents::bind(to_mla(damaged, 8).source);
}
