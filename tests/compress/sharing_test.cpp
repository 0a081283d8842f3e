// Layers that share keys and values, and windows with sinks.
#include "compress/stories.hpp"
#include "io/errors.hpp"
#include "model/synthetic.hpp"
#include "tenon/compress/to_cla.hpp"
#include "tenon/compress/to_window.hpp"
#include "tenon/zoo/hybrid.hpp"
#include "tenon/zoo/llama.hpp"
#include "tenon/zoo/mistral.hpp"

using namespace tenon;
using stories::logits_of;
using stories::some_ids;

namespace {

using Formats = AnyOf<F32, F16>;
using Model = zoo::Llama<Contiguous<F32>, Formats>;
using Shared = zoo::Hybrid<Ring<F32>, Contiguous<F32>, Formats>;
using Windowed = zoo::Mistral<Ring<F32>, Formats>;

void zero(synthetic::Llama& source, std::string_view name) {
  std::memset(source.bytes(name), 0, source.find(name)->data.size());
}
void copy(synthetic::Llama& source, std::string_view from, std::string_view to) {
  std::memcpy(source.bytes(to), source.bytes(from), source.find(from)->data.size());
}
std::size_t cached(const auto& model, int context) {
  return model.cache_bytes({.seqs = 1, .context = context, .step_tokens = 1});
}

}  // namespace

TEST_CASE("every layer its own: the same bits") {
  const synthetic::Llama source({.layers = 3});
  const Conversion made = to_cla(source, 1);
  const auto ids = some_ids(100, 300);
  CHECK(made.report.layers.empty());
  CHECK(made.report.before == made.report.after);
  CHECK(reference::same_bits(logits_of(Model::bind(source), ids),
                             logits_of(Shared::bind(made.source), ids)));
}

TEST_CASE("equal projections of equal inputs: the same bits") {
  // The first of each pair adds nothing to the stream, so the second sees what it saw.
  synthetic::Llama source({.layers = 4});
  for (const char* name : {"blk.0.", "blk.2."}) {
    const std::string first = name, second = first == "blk.0." ? "blk.1." : "blk.3.";
    zero(source, first + "attn_output.weight");
    zero(source, first + "ffn_down.weight");
    for (const char* same : {"attn_norm.weight", "attn_k.weight", "attn_v.weight"}) {
      copy(source, first + same, second + same);
    }
  }
  const auto ids = some_ids(100, 300);
  const auto was = logits_of(Model::bind(source), ids);
  for (const LayerPooling pooling : {LayerPooling::owner, LayerPooling::mean}) {
    const Conversion made = to_cla(source, 2, pooling);
    for (const LayerError& e : made.report.layers) {
      CHECK(e.keys == 0);
      CHECK(e.values == 0);
    }
    CHECK(made.source.find("blk.1.attn_k.weight") == nullptr);
    CHECK(made.source.find("blk.3.attn_v.weight") == nullptr);
    const auto model = Shared::bind(made.source);
    CHECK(reference::same_bits(was, logits_of(model, ids)));
    CHECK(2 * made.report.after.per_token == made.report.before.per_token);
    // F32 rows: twice the bytes of the report.
    CHECK(cached(model, 64) == static_cast<std::size_t>(2 * 64 * made.report.after.per_token));
  }
}

TEST_CASE("runs of layers: owners, bytes, and the mean by hand") {
  const synthetic::Llama source({.layers = 5});
  for (const int factor : {2, 3, 5}) {
    const Conversion made = to_cla(source, factor, LayerPooling::mean);
    const Dim owners = (5 + factor - 1) / factor;
    CHECK(made.report.before.per_token == 5 * 2 * 2 * 16 * 2);
    CHECK(made.report.after.per_token == owners * 2 * 2 * 16 * 2);
    const auto list = made.source.metadata().integers("hybrid.attention.kv_source");
    for (int i = 0; i < 5; ++i) CHECK(list[static_cast<std::size_t>(i)] == i / factor * factor);
    Shared::bind(made.source);
  }
  const Conversion made = to_cla(source, 2, LayerPooling::mean);
  const auto a = detail::read_projection(source, 2, "attn_k", 32, 64);
  const auto b = detail::read_projection(source, 3, "attn_k", 32, 64);
  const auto mean = detail::read_projection(made.source, 2, "attn_k", 32, 64);
  for (std::size_t i = 0; i < a.weight.size(); ++i) {
    const double x = static_cast<double>(a.weight[i]), y = static_cast<double>(b.weight[i]);
    CHECK(mean.weight[i] == static_cast<float>((x + y) / 2));
  }
  // A run of one is its own.
  CHECK(made.report.layers[4].keys == 0);
  CHECK(made.report.layers[3].keys > 0.5);
}

TEST_CASE("layers of a windowed model keep their window when they share") {
  synthetic::Llama source({.layers = 2});
  source.put("llama.attention.sliding_window", 16);
  const auto ids = some_ids(70, 300);
  const Conversion made = to_cla(source, 1);
  CHECK(made.report.after == CacheCost{0, 2 * 2 * 2 * 16 * 2 * 16});
  CHECK(reference::same_bits(logits_of(Windowed::bind(source), ids),
                             logits_of(Shared::bind(made.source), ids)));
}

TEST_CASE("a window that nothing exceeds: the same bits") {
  const synthetic::Llama source({});
  const auto ids = some_ids(100, 300);
  const auto was = logits_of(Model::bind(source), ids);
  for (const int sinks : {0, 4}) {
    const Conversion made = to_window(source, 100, sinks);
    CHECK(reference::same_bits(was, logits_of(Windowed::bind(made.source), ids)));
    CHECK(made.report.after == CacheCost{0, 2 * 2 * 2 * 16 * 2 * (100 + sinks)});
    // Sinks and window together hold everything before the last token.
    const Conversion close = to_window(source, 99 - sinks, sinks);
    const auto is = logits_of(Windowed::bind(close.source), ids);
    const auto last = static_cast<std::size_t>(99 * was.columns);
    CHECK(std::equal(was.values.begin(),
                     was.values.begin() + static_cast<std::ptrdiff_t>((99 - sinks) * was.columns),
                     is.values.begin()));
    CHECK(!std::equal(was.values.begin() + static_cast<std::ptrdiff_t>(last), was.values.end(),
                      is.values.begin() + static_cast<std::ptrdiff_t>(last)));
  }
  // The last conversion counts.
  const Conversion twice = to_window(to_window(source, 8, 4).source, 12, 0);
  CHECK(!twice.source.metadata().contains("llama.attention.sink_count"));
  CHECK(twice.report.before.fixed == 2 * 2 * 2 * 16 * 2 * 12);
}

TEST_CASE("trained models that share or forget: divergence") {
  const auto eval = shared_file("data/stories/eval.txt");
  for (const std::string name : {"story-mha", "story-gqa"}) {
    const auto path = shared_file("models/trained/" + name + ".gguf");
    if (path.empty() || eval.empty()) return;
    INFO(name);
    const Gguf file = Gguf::open(path.string());
    const auto ids = stories::tokens(Tokenizer::from(file.metadata()), eval, 3000);
    const auto model = Model::bind(file);
    auto before = stories::open(model);
    const auto change = [&](const auto& converted, int window) {
      auto after = stories::open(converted);
      return divergence(before, after, ids, {.window = window, .bos = Token{1}});
    };
    // The owner's projections serve the others better than a mean of all.
    const auto owner = change(Shared::bind(to_cla(file, 2).source), 255);
    const auto mean = change(Shared::bind(to_cla(file, 2, LayerPooling::mean).source), 255);
    CHECK(owner.kl < mean.kl);
    CHECK(owner.nll_after < mean.nll_after);

    // Sinks help at every window, but losing them is no catastrophe as it is for large models:
    // these small ones have not learned to rest their attention on the first tokens.
    double wider = 0;
    for (const int window : {16, 64}) {
      const auto without = change(Windowed::bind(to_window(file, window, 0).source), 500);
      const auto with = change(Windowed::bind(to_window(file, window, 4).source), 500);
      CHECK(with.kl < without.kl);
      CHECK(without.perplexity_after() < 1.5 * without.perplexity_before());
      if (window == 16) CHECK(with.perplexity_after() < without.perplexity_after());
      if (window == 64) {
        CHECK(with.perplexity_after() < 1.05 * with.perplexity_before());
        CHECK(without.kl < wider);
      }
      wider = with.kl;
    }
  }
}

TEST_CASE("what to_cla and to_window refuse") {
  const synthetic::Llama source({});
  for (const int factor : {0, -1, 3}) {
    CHECK(test::missing(test::error_of<RequestError>([&] { to_cla(source, factor); }),
                        {"1 to 2", std::to_string(factor)}) == "");
  }
  CHECK(test::error_of<RequestError>([&] { to_window(source, 0, 4); }) != "");
  CHECK(test::error_of<RequestError>([&] { to_window(source, 16, -1); }) != "");
  CHECK(test::error_of<RequestError>([&] { to_window(source, INT32_MAX, 0); }) != "");
  EditedSource qwen(source);
  qwen.set_architecture("qwen3");
  EditedSource experts(source);
  experts.set("expert_count", std::uint32_t{4});
  for (const EditedSource* other : {&qwen, &experts}) {
    const char* said = other == &qwen ? "qwen3" : "with experts";
    CHECK(test::missing(test::error_of<LoadError>([&] { to_cla(*other, 2); }), {"llama", said}) ==
          "");
    CHECK(test::missing(test::error_of<LoadError>([&] { to_window(*other, 8, 0); }),
                        {"llama", said}) == "");
  }
  // Sizes whose product leaves the address space.
  EditedSource huge(source);
  for (const char* key : {"attention.head_count", "attention.head_count_kv", "attention.key_length",
                          "attention.value_length"}) {
    huge.set(key, std::uint32_t{2147483647});
  }
  CHECK(test::error_of<Error>([&] { to_window(huge, 1 << 30, 4); }) != "");
  CHECK(test::error_of<Error>([&] { to_cla(huge, 2); }) != "");
}
