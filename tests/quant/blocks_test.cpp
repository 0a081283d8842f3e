// Block formats against the reference quantizer's own bytes and values, and on hostile blocks.
#include "tenon/quant/blocks.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <vector>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "shared_data.hpp"
#include "tenon/quant/any_of.hpp"
#include "tenon/quant/dense.hpp"

using namespace tenon;

namespace {

// One tensor of a safetensors file as the bytes it holds.
class Tensors {
 public:
  explicit Tensors(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), 8);
    std::string text(header, ' ');
    file.read(text.data(), static_cast<std::streamsize>(header));
    names_ = nlohmann::json::parse(text);
    data_.assign(std::istreambuf_iterator<char>(file), {});
  }
  bool contains(const std::string& name) const { return names_.contains(name); }
  template <class T>
  std::vector<T> get(const std::string& name) const {
    const auto range = names_.at(name).at("data_offsets").get<std::array<std::size_t, 2>>();
    std::vector<T> values((range[1] - range[0]) / sizeof(T));
    std::memcpy(values.data(), data_.data() + range[0], values.size() * sizeof(T));
    return values;
  }

 private:
  nlohmann::json names_;
  std::vector<char> data_;
};

}  // namespace

TEMPLATE_TEST_CASE("blocks: the reference quantizer's bytes and values", "[quant]", Q8_0, Q4_0,
                   Q4_1, Bf16) {
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

  std::vector<std::byte> encoded(raw.size());
  F::encode(source.data(), n, encoded.data());
  CHECK(encoded == raw);
}

TEMPLATE_TEST_CASE("blocks: what encode writes, encode writes again", "[quant]", Q8_0, Q4_0, F16,
                   Bf16, F32) {
  using F = TestType;
  std::vector<float> x(96);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) * 0.03f;
  std::vector<std::byte> once(row_bytes<F>(96)), twice(row_bytes<F>(96));
  std::vector<float> decoded(96);
  F::encode(x.data(), 96, once.data());
  F::decode(once.data(), 96, decoded.data());
  F::encode(decoded.data(), 96, twice.data());
  std::vector<float> again(96);
  F::decode(twice.data(), 96, again.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(again[i] == Approx(decoded[i]).margin(1e-6).epsilon(2e-3));
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
