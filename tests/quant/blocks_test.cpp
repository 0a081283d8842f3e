// Block formats against the reference quantizer's own bytes and values, and on hostile blocks.
#include "tenon/quant/blocks.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "quant/safetensors.hpp"
#include "shared_data.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/quant/any_of.hpp"
#include "tenon/quant/dense.hpp"
#include "tenon/quant/mxfp4.hpp"

using namespace tenon;

TEMPLATE_TEST_CASE("blocks: the reference quantizer's bytes and values", "[quant]", Q8_0, Q4_0,
                   Q4_1, Bf16, Mxfp4) {
  using F = TestType;
  const auto path = shared_file("models/quant/quant_blocks.safetensors");
  if (path.empty()) return;
  const Tensors tensors(path);
  const std::string name(F::name);
  REQUIRE(tensors.contains(name + ".raw"));
  const auto raw = tensors.get<std::byte>(name + ".raw");
  const auto values = tensors.get<float>(name + ".values");
  const auto source = tensors.get<float>("source");
  REQUIRE(values.size() == source.size());
  const auto n = static_cast<Dim>(source.size());
  REQUIRE(raw.size() == row_bytes<F>(n));

  std::vector<float> decoded(source.size());
  F::decode(raw.data(), n, decoded.data());
  CHECK(decoded == values);

  // The 4-bit rows of that file were searched for the best scale; ours are the plain quantizer's.
  if (F::block_bytes == 18 || F::block_bytes == 20) return;
  std::vector<std::byte> encoded(raw.size());
  F::encode(source.data(), n, encoded.data());
  CHECK(encoded == raw);
}

TEST_CASE("blocks: a quantized model file, made again from the float one", "[quant]") {
  const auto floats = shared_file("models/stories260K.gguf");
  const std::string file = GENERATE("q8_0", "q4_0");
  const auto quantized = shared_file("models/stories260K-" + file + ".gguf");
  if (floats.empty() || quantized.empty()) return;
  using Formats = AnyOf<F32, F16, Q8_0, Q4_0>;
  const Gguf source = Gguf::open(floats), expected = Gguf::open(quantized);
  std::size_t compared[4] = {};
  for (const TensorInfo& tensor : expected.tensors()) {
    const TensorInfo* from = source.find(tensor.name);
    const int tag = tag_of_ggml_type<Formats>(tensor.ggml_type);
    REQUIRE(from != nullptr);
    REQUIRE(tag >= 0);
    std::vector<float> values(from->data.size() / 4);
    std::memcpy(values.data(), from->data.data(), from->data.size());
    std::vector<std::byte> encoded(tensor.data.size());
    FormatList<Formats>::visit(tag, [&]<class F>(F) {
      F::encode(values.data(), static_cast<Dim>(values.size()), encoded.data());
    });
    INFO(tensor.name);
    CHECK(std::equal(encoded.begin(), encoded.end(), tensor.data.begin()));
    ++compared[tag];
  }
  CHECK(compared[1] == 5);
  CHECK(compared[2] == (file == "q8_0" ? 31u : 1u));
  CHECK(compared[3] == (file == "q8_0" ? 0u : 30u));
}

TEMPLATE_TEST_CASE("blocks: values on the format's own grid come back exactly", "[quant]", Q8_0,
                   Q4_0, Q4_1) {
  using F = TestType;
  const int lowest = F::block_bytes == 34 ? -127 : F::block_bytes == 18 ? -8 : 0;
  const int highest = F::block_bytes == 34 ? 127 : F::block_bytes == 18 ? 7 : 15;
  const float origin = F::block_bytes == 20 ? -3.25f : 0.0f;
  std::vector<float> x(32), decoded(32);
  for (int i = 0; i < 32; ++i) {
    const int q = i == 5 ? lowest : i == 20 ? highest : lowest + i * 11 % (highest - lowest);
    x[static_cast<std::size_t>(i)] = 0.375f * static_cast<float>(q) + origin;
  }
  std::vector<std::byte> bytes(F::block_bytes);
  F::encode(x.data(), 32, bytes.data());
  F::decode(bytes.data(), 32, decoded.data());
  CHECK(decoded == x);
  CHECK(detail::load_half(bytes.data()) == 0.375f);
}

TEMPLATE_TEST_CASE("blocks: hostile values neither trap nor pass for numbers", "[quant]", Q8_0,
                   Q4_0, Q4_1) {
  using F = TestType;
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::byte> bytes(F::block_bytes);
  std::vector<float> decoded(32);
  for (const float quiet : {0.0f, -0.0f, 1e-45f}) {
    F::encode(std::vector<float>(32, quiet).data(), 32, bytes.data());
    F::decode(bytes.data(), 32, decoded.data());
    for (const float v : decoded) CHECK(v == 0.0f);
  }
  for (const float loud : {1e30f, -1e30f, inf, -inf, nan}) {  // beyond what a half scale holds
    for (const std::size_t at : {0u, 15u, 16u, 31u}) {
      std::vector<float> x(32, 0.5f);
      x[at] = loud;
      F::encode(x.data(), 32, bytes.data());
      F::decode(bytes.data(), 32, decoded.data());
      if (std::is_same_v<F, Q8_0>) CHECK_FALSE(std::isfinite(decoded[at]));
    }
  }
}

TEST_CASE("blocks: parts and ragged rows", "[quant]") {
  std::vector<float> x(75);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  std::vector<std::byte> row(row_bytes<Q8_0>(75));
  CHECK(row.size() == 3 * 34);
  encode_row<Q8_0>(x.data(), 75, row.data());
  std::vector<float> all(96), part(75);
  Q8_0::decode(row.data(), 96, all.data());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(all[i] == Approx(x[i]).margin(0.5 / 127 * 1.01));
  for (std::size_t i = 75; i < 96; ++i) CHECK(all[i] == 0.0f);
  for (const Dim first : {0, 1, 31, 32, 33, 64, 74}) {
    for (const Dim n : {0, 1, 2, 31, 32, 40, 75}) {
      if (first + n > 75) continue;
      decode_part<Q8_0>(row.data(), first, n, part.data());
      for (Dim i = 0; i < n; ++i)
        CHECK(part[static_cast<std::size_t>(i)] == all[static_cast<std::size_t>(first + i)]);
    }
  }
}

TEST_CASE("any_of: tags by name and by ggml type", "[quant]") {
  using Formats = AnyOf<Q8_0, F16, F32>;
  CHECK(FormatList<Formats>::size == 3);
  CHECK(FormatList<Formats>::names() == "q8_0, f16, f32");
  CHECK(tag_of_name<Formats>("f16") == 1);
  CHECK(tag_of_name<Formats>("q4_0") == -1);
  CHECK(tag_of_ggml_type<Formats>(8) == 0);
  CHECK(tag_of_ggml_type<Formats>(0) == 2);
  CHECK(tag_of_ggml_type<Formats>(2) == -1);
  CHECK(tag_of_ggml_type<F32>(0) == 0);
  CHECK(FormatList<Formats>::visit(1, []<class F>(F) { return std::string(F::name); }) == "f16");
}
