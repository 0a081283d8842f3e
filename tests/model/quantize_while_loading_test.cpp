// Quantizing while a model is bound: the bytes that encoding row by row gives, and the model of a
// file that was quantized before.
#include <cstring>
#include <mutex>

#include "catch.hpp"
#include "golden/reference.hpp"
#include "io/errors.hpp"
#include "io/files.hpp"
#include "model/synthetic.hpp"
#include "tenon/core/thread_team.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/io/gguf_writer.hpp"
#include "tenon/io/quantized_source.hpp"
#include "tenon/quant/k_quants.hpp"
#include "tenon/quant/named_formats.hpp"
#include "tenon/zoo/llama.hpp"

using namespace tenon;

namespace {

using M = zoo::Llama<Contiguous<F32>, synthetic::Formats>;

template <class F>
void check_encoded(int from) {
  const synthetic::Llama source({.width = 256, .layers = 1, .hidden = 288}, from);
  const QuantizedSource quantized(source, weight_format<F>);
  for (const TensorInfo& tensor : source.tensors()) {
    const TensorInfo* made = quantized.find(tensor.name);
    REQUIRE(made != nullptr);
    CHECK(made->shape == tensor.shape);
    if (tensor.shape.size() != 2 || tensor.shape[1] % F::block != 0) {
      CHECK(made->ggml_type == tensor.ggml_type);
      CHECK(made->data.data() == tensor.data.data());
      continue;
    }
    REQUIRE(made->ggml_type == F::ggml_type);
    const Dim columns = tensor.shape[1];
    const std::size_t row = row_bytes<F>(columns);
    REQUIRE(made->data.size() == static_cast<std::size_t>(tensor.shape[0]) * row);
    std::vector<float> values(static_cast<std::size_t>(columns));
    std::vector<std::byte> want(made->data.size()), got(want.size());
    const int tag = tag_of_ggml_type<synthetic::Formats>(from);
    for (Dim r = 0; r < tensor.shape[0]; ++r) {
      FormatList<synthetic::Formats>::visit(tag, [&]<class From>(From) {
        From::decode(tensor.data.data() + static_cast<std::size_t>(r) * row_bytes<From>(columns),
                     columns, values.data());
      });
      F::encode(values.data(), columns, want.data() + static_cast<std::size_t>(r) * row);
    }
    // In pieces of an odd size, which end within blocks.
    for (std::size_t at = 0; at < got.size(); at += 1013) {
      const std::size_t some = (std::min)(std::size_t{1013}, got.size() - at);
      made->data.copy(at, std::span(got).subspan(at, some));
    }
    CHECK(got == want);
  }
}

reference::Logits logits(const M& model) {
  auto session = model.open({.context = 64}, {.threads = 1});
  return reference::logits(session, {1, 5, 9, 200, 17, 3}, 4);
}

}  // namespace

TEST_CASE("matrices are encoded row by row, whatever part is asked for", "[quantize]") {
  for (const int from : {F32::ggml_type, F16::ggml_type, Bf16::ggml_type}) {
    check_encoded<Q8_0>(from);
    check_encoded<Q4_0>(from);
    check_encoded<Q4_K>(from);
  }
}

TEST_CASE("a model quantized while it loads is that of a file quantized before", "[quantize]") {
  const synthetic::Llama source({.tied = false});
  for (const WeightFormat* format : {&weight_format<Q8_0>, &weight_format<Q4_0>}) {
    const test::TemporaryFolder at;
    const QuantizedSource quantized(source, *format);
    write_gguf(at / "quantized.gguf", quantized.metadata(), quantized.tensors());
    const M before = M::bind(Gguf::open(at / "quantized.gguf"));
    const auto want = logits(before);
    CHECK_FALSE(reference::same_bits(logits(M::bind(source)), want));
    for (const int threads : {1, 2, 5}) {
      ThreadTeam team(threads);
      std::mutex mutex;
      std::size_t last = 0, all = 0;
      const M while_loading = M::bind(source, team,
                                      {.progress =
                                           [&](std::size_t done, std::size_t total) {
                                             const std::lock_guard lock(mutex);
                                             last = done;
                                             all = total;
                                             return true;
                                           },
                                       .quantize = format});
      CHECK(last == all);
      CHECK(while_loading.bytes() == before.bytes());
      CHECK(while_loading.bound()->fingerprint == before.bound()->fingerprint);
      CHECK(reference::same_bits(logits(while_loading), want));
    }
  }
}

TEST_CASE("formats by name", "[quantize]") {
  CHECK(&find_weight_format("Q4_k") == &weight_format<Q4_K>);
  // Q8_1 and Q8_K are what activations become, nothing is stored in them.
  for (const std::string name : {"q9", "q8_1", "Q8_K"}) {
    CHECK(test::missing(test::error_of<RequestError>([&] { find_weight_format(name); }),
                        {"one of f32", '"' + name + '"'})
              .empty());
  }
  CHECK(
      weight_format_names() ==
      "f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_K, q3_K, q4_K, q5_K, q6_K, iq4_nl, mxfp4, "
      "iq4_xs, nvfp4, iq3_s");
}
