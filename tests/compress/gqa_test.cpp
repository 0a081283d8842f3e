// Fewer key/value heads: what must not change does not, and what does is measured.
#include <random>
#include <sstream>

#include "compress/stories.hpp"
#include "io/errors.hpp"
#include "model/synthetic.hpp"
#include "tenon/compress/to_gqa.hpp"
#include "tenon/decode/score.hpp"
#include "tenon/model/decoder.hpp"
#include "tenon/nn/mlp.hpp"

using namespace tenon;
using stories::logits_of;
using stories::some_ids;

namespace {

template <class Mixer>
using Plain = Decoder<Kinds<Block<Mixer, SwiGlu, RmsNorm>>, Uniform{}, AnyOf<F32, F16>>;
using Attention = Gqa<GqaSpec{}, Causal, Rope, Contiguous<F32>>;
using Model = Plain<Attention>;
using Heard = Plain<Recorded<Attention>>;

double worst_error(const ConversionReport& report) {
  double worst = 0;
  for (const LayerError& e : report.layers) worst = (std::max)({worst, e.keys, e.values});
  return worst;
}
double mean_error(const ConversionReport& report) {
  double sum = 0;
  for (const LayerError& e : report.layers) sum += e.keys + e.values;
  return sum / static_cast<double>(report.layers.size());
}

}  // namespace

TEST_CASE("as many heads as there are: the same tensors and bits") {
  const synthetic::Llama source({.heads = 4, .kv_heads = 4});
  const Conversion made = to_gqa(source, 4);
  for (const TensorInfo& tensor : source.tensors()) {
    CHECK(made.source.find(tensor.name)->data.data() == tensor.data.data());
  }
  CHECK(made.report.layers.empty());
  CHECK(made.report.before == made.report.after);
  const auto ids = some_ids(70, 300);
  CHECK(reference::same_bits(logits_of(Model::bind(source), ids),
                             logits_of(Model::bind(made.source), ids)));
}

TEST_CASE("heads equal within groups: the same outputs") {
  // 4 heads of which neighbours are equal, from 2; biases too.
  synthetic::Llama two({.heads = 4, .kv_heads = 2});
  for (const char* layer : {"blk.0.", "blk.1."}) {
    two.vector(std::string(layer) + "attn_k.bias", 32);
    two.vector(std::string(layer) + "attn_v.bias", 32);
  }
  EditedSource four(two);
  four.set("attention.head_count_kv", std::uint32_t{4});
  for (int layer = 0; layer < 2; ++layer) {
    for (const char* name : {"attn_k", "attn_v"}) {
      const auto p = detail::read_projection(two, layer, name, 32, 64);
      detail::write_projection(four, layer, name, detail::repeat_heads(p, 2, 4));
    }
  }
  for (const HeadPooling pooling : {HeadPooling::mean, HeadPooling::first}) {
    const Conversion made = to_gqa(four, 2, pooling);
    CHECK(worst_error(made.report) == 0);
    CHECK(made.report.layers.size() == 2);
    const auto ids = some_ids(70, 300);
    const auto was = logits_of(Model::bind(four), ids);
    CHECK(reference::largest_difference(was, logits_of(Model::bind(made.source), ids)) <= 1e-6);
    // Pooling undoes the repetition.
    for (const char* name : {"blk.1.attn_k.weight", "blk.0.attn_v.bias"}) {
      const auto a = made.source.find(name)->data, b = two.find(name)->data;
      CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
  }
}

TEST_CASE("the mean of a group, by hand") {
  synthetic::Llama source({.width = 16, .layers = 1, .heads = 2, .kv_heads = 2, .head_dim = 8});
  const auto p = detail::read_projection(source, 0, "attn_v", 16, 16);
  const Conversion made = to_gqa(source, 1);
  const auto pooled = detail::read_projection(made.source, 0, "attn_v", 8, 16);
  double difference = 0, norm = 0;
  for (Dim i = 0; i < 8; ++i) {
    for (Dim k = 0; k < 16; ++k) {
      const double a = static_cast<double>(p.row(i)[k]), b = static_cast<double>(p.row(i + 8)[k]);
      CHECK(pooled.row(i)[k] == static_cast<float>((a + b) / 2));
      difference += (a - b) * (a - b) / 2;
      norm += a * a + b * b;
    }
  }
  CHECK(made.report.layers[0].values == Approx(std::sqrt(difference / norm)).epsilon(1e-6));
  CHECK(made.source.metadata().integer("llama.attention.head_count_kv") == 1);
  CHECK(made.report.before == CacheCost{2 * 2 * 8 * 2, 0});
  CHECK(made.report.after == CacheCost{2 * 8 * 2, 0});
}

TEST_CASE("story-mha with fewer heads: errors, divergence and bytes") {
  const auto path = shared_file("models/trained/story-mha.gguf");
  const auto eval = shared_file("data/stories/eval.txt");
  const auto train = shared_file("data/stories/train_sample.txt");
  if (path.empty() || eval.empty() || train.empty()) return;
  const Gguf file = Gguf::open(path.string());
  const auto tokenizer = Tokenizer::from(file.metadata());
  const auto ids = stories::tokens(tokenizer, eval, 3000);
  auto calibration = stories::tokens(tokenizer, train, 1600);
  calibration.resize(300);

  const auto model = Model::bind(file);
  auto before = stories::open(model);
  const auto heard = Heard::bind(file);
  auto listening = stories::open(heard);
  CHECK(reference::same_bits(reference::logits(before, calibration, 100),
                             reference::logits(listening, calibration, 100)));
  const MixerInputs text = record_inputs(listening, heard.layers(), heard.width(), calibration);
  CHECK(text.tokens() == 300);

  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  double last_error = 2, last_kl = 100;
  for (const Dim kv_heads : {1, 2, 3, 6}) {
    INFO(kv_heads << " key/value heads");
    const Conversion mean = to_gqa(file, kv_heads, HeadPooling::mean, &text);
    const Conversion first = to_gqa(file, kv_heads, HeadPooling::first, &text);
    CHECK(mean.report.before.per_token == 2304);
    CHECK(mean.report.after.per_token == 384 * kv_heads);
    const auto converted = Model::bind(mean.source);
    // F32 rows: twice the bytes of the report.
    const Limits limits{.seqs = 1, .context = 128};
    CHECK(converted.cache_bytes(limits) ==
          static_cast<std::size_t>(2 * 128 * mean.report.after.per_token));
    auto after = stories::open(converted);
    const auto change = divergence(before, after, ids, {.window = 255, .bos = Token{1}});
    if (kv_heads == 6) {
      CHECK(change.kl == 0);
      CHECK(mean.report.layers.empty());
      continue;
    }
    CHECK(mean.report.on_text);
    CHECK(mean_error(mean.report) < last_error);
    CHECK(change.kl < last_kl);
    last_error = mean_error(mean.report);
    last_kl = change.kl;
    for (std::size_t i = 0; i < mean.report.layers.size(); ++i) {
      const LayerError &a = mean.report.layers[i], &b = first.report.layers[i];
      CHECK(a.keys < b.keys);
      CHECK(a.values < b.values);
    }
    // Without more training the paper's choice is not the better one here: heads are nearly
    // orthogonal, so their mean is short. Both beat random heads of the first ones' size.
    const auto change_of = [&](const TensorSource& source) {
      auto session = stories::open(Model::bind(source));
      return divergence(before, session, ids, {.window = 255, .bos = Token{1}}).kl;
    };
    EditedSource drawn(first.source);
    for (const LayerError& e : first.report.layers) {
      for (const char* name : {"attn_k", "attn_v"}) {
        auto p = detail::read_projection(first.source, e.layer, name, 32 * kv_heads, 192);
        double had = 0, has = 0;
        for (float& w : p.weight) {
          had += static_cast<double>(w) * static_cast<double>(w);
          w = normal(random);
          has += static_cast<double>(w) * static_cast<double>(w);
        }
        for (float& w : p.weight) w *= static_cast<float>(std::sqrt(had / has));
        detail::write_projection(drawn, e.layer, name, p);
      }
    }
    CHECK(change_of(first.source) < change.kl);
    CHECK(change.kl < change_of(drawn));
  }
}

TEST_CASE("the divergence of two models is that of their predictions") {
  const synthetic::Llama source({.heads = 4, .kv_heads = 4});
  const auto model = Model::bind(source);
  const Conversion made = to_gqa(source, 1);
  const auto converted = Model::bind(made.source);
  auto before = stories::open(model), after = stories::open(converted);
  const auto ids = some_ids(100, 300);
  const auto change = divergence(before, after, ids, {.window = 30, .bos = Token{1}});
  const NllOptions options{.window = 30, .bos = Token{1}};
  CHECK(change.tokens == 100);
  CHECK(change.nll_before ==
        Approx(negative_log_likelihood(before, ids, options).mean()).epsilon(1e-12));
  CHECK(change.nll_after ==
        Approx(negative_log_likelihood(after, ids, options).mean()).epsilon(1e-12));
  CHECK(change.kl > 0);
  auto again = stories::open(model);
  const auto same = divergence(before, again, ids, {.window = 30});
  CHECK(same.kl == 0);
  CHECK(same.tokens == 100 - 4);  // the first of each window is not predicted

  // Two tokens in one window, by the definition.
  const auto pair = divergence(before, after, std::vector<Token>{5, 9}, {.window = 2});
  const auto p = logits_of(model, {5}), q = logits_of(converted, {5});
  double kl = 0;
  for (Token i = 0; i < 300; ++i) {
    const double log_p = log_probability({p.row(0), 300}, i);
    kl += std::exp(log_p) * (log_p - log_probability({q.row(0), 300}, i));
  }
  CHECK(pair.tokens == 1);
  CHECK(pair.kl == Approx(kl).epsilon(1e-9));
  CHECK(test::missing(test::error_of<RequestError>(
                          [&] { divergence(before, after, std::vector<Token>{3}, {}); }),
                      {"at least 2 ids", "has 1"}) == "");
  CHECK(test::missing(test::error_of<RequestError>([&] {
                        divergence(before, after, std::vector<Token>{3, 300}, {});
                      }),
                      {"299", "300"}) == "");
}

TEST_CASE("the receipt as a table") {
  ConversionReport report{"to_gqa: 1 key/value heads",
                          true,
                          {{0, 0.5, 0.25}, {11, 1e-7, 0}},
                          {256, 0},
                          {64, 1024},
                          std::nullopt};
  report.text = TextDivergence{100, 0.125, std::log(2.0), std::log(3.0)};
  std::ostringstream out;
  print(out, report);
  CHECK(out.str() ==
        "to_gqa: 1 key/value heads\n"
        "  cache before: 256 bytes per token (16-bit)\n"
        "  cache after: 64 bytes per token and 1024 bytes per sequence (16-bit)\n"
        "  relative error of outputs on the text\n"
        "  layer      keys    values\n"
        "      0  5.00e-01  2.50e-01\n"
        "     11  1.00e-07  0.00e+00\n"
        "  on 100 tokens: KL(before || after) 1.250e-01 nats/token, perplexity 2.0000 -> 3.0000\n");
  out << 0.5;
  CHECK(out.str().ends_with("0.5"));  // the stream formats as before
}

TEST_CASE("what to_gqa refuses") {
  const synthetic::Llama source({.heads = 4, .kv_heads = 4});
  for (const Dim heads : {Dim{3}, Dim{0}, Dim{-1}, Dim{8}, Dim{1} << 40}) {
    CHECK(test::missing(test::error_of<RequestError>([&] { to_gqa(source, heads); }),
                        {"must divide the 4", std::to_string(heads)}) == "");
  }
  const auto refused = [](auto&& edit, std::initializer_list<std::string_view> parts) {
    synthetic::Llama damaged({.heads = 4, .kv_heads = 4});
    edit(damaged);
    CHECK(test::missing(test::error_of<Error>([&] { to_gqa(damaged, 2); }), parts) == "");
  };
  refused([](auto& s) { s.vector("blk.1.attn_k_norm.weight", 16); }, {"attn_k_norm", "layer 1"});
  refused([](auto& s) { s.edit("blk.1.attn_k.weight").name = "blk.1.attn_qkv.weight"; },
          {"blk.1.attn_k.weight", "must be there"});
  refused(
      [](auto& s) {
        s.edit("blk.0.attn_v.weight").shape = {32, 128};
      },
      {"blk.0.attn_v.weight", "[64, 64]", "[32, 128]"});
  refused([](auto& s) { s.edit("blk.0.attn_v.weight").ggml_type = 16; },
          {"blk.0.attn_v.weight", "ggml type 16"});
  refused([](auto& s) { s.put("llama.attention.head_count_kv", 3); }, {"multiple"});
  refused(
      [](auto& s) {
        s.put("llama.attention.key_length", 2147483647);
        s.put("llama.attention.value_length", 2147483647);
        s.put("llama.attention.head_count", 2147483647);
        s.put("llama.attention.head_count_kv", 2147483646 + 1);
      },
      {"must be at most 1073741824"});
  refused(
      [](auto& s) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        std::memcpy(s.bytes("blk.1.attn_v.weight") + 400, &nan, 4);
      },
      {"blk.1.attn_v.weight", "finite", "nan"});
  const MixerInputs nothing(2, 64), other(3, 64);
  CHECK(test::missing(
            test::error_of<RequestError>([&] { to_gqa(source, 2, HeadPooling::mean, &nothing); }),
            {"0 tokens"}) == "");
  CHECK(test::missing(
            test::error_of<RequestError>([&] { to_gqa(source, 2, HeadPooling::mean, &other); }),
            {"3 layers"}) == "");
}
