#pragma once
// Weight matrices in file layout, and plain executors, for the tests of the linear kernels.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "backwards.hpp"
#include "tenon/kernels/linear.hpp"

namespace weights {

using namespace tenon;
using All = AnyOf<F32, F16, Bf16, Q8_0, Q4_0, Q4_1, Mxfp4, Q5_0, Q5_1, IQ4_NL, Q2_K, Q3_K, Q4_K,
                  Q5_K, Q6_K, IQ4_XS, Nvfp4>;
// Tags of All from here on are formats of blocks, which have kernels on int8 activations.
inline constexpr int first_blocks = 3;

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> all;
  for (const Isa isa : known_isas) {
    if (supported(isa)) all.push_back(isa);
  }
  return all;
}

inline std::vector<float> normal(Dim n, unsigned seed, float scale = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0.0f, scale);
  std::vector<float> values(static_cast<std::size_t>(n));
  for (float& v : values) v = distribution(generator);
  return values;
}

// A matrix [out, in] as a file holds it, and the values its bytes decode to.
struct FileMatrix {
  int tag = 0;
  Dim out = 0, in = 0;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};
template <class Formats>
void decode(FileMatrix& matrix) {
  matrix.values.resize(static_cast<std::size_t>(matrix.out * matrix.in));
  FormatList<Formats>::visit(matrix.tag, [&]<class F>(F) {
    for (Dim r = 0; r < matrix.out; ++r) {
      decode_part<F>(matrix.bytes.data() + static_cast<std::size_t>(r) * row_bytes<F>(matrix.in), 0,
                     matrix.in, matrix.values.data() + r * matrix.in);
    }
  });
}
template <class Formats>
FileMatrix encode(int tag, Dim out, Dim in, const std::vector<float>& values) {
  FileMatrix matrix{tag, out, in, {}, {}};
  FormatList<Formats>::visit(tag, [&]<class F>(F) {
    matrix.bytes.resize(static_cast<std::size_t>(out) * row_bytes<F>(in));
    for (Dim r = 0; r < out; ++r) {
      encode_row<F>(values.data() + r * in, in,
                    matrix.bytes.data() + static_cast<std::size_t>(r) * row_bytes<F>(in));
    }
  });
  decode<Formats>(matrix);
  return matrix;
}
// Whether byte i of F's file block belongs to a float scale.
template <class F>
bool in_scale(std::size_t i) {
  if constexpr (std::is_same_v<F, Nvfp4>) {
    return false;  // every byte is a finite one
  } else if constexpr (std::is_same_v<F, IQ4_XS>) {
    return i < 2;
  } else if constexpr (F::block == 256) {
    constexpr std::size_t at = std::is_same_v<F, Q2_K>   ? 80
                               : std::is_same_v<F, Q3_K> ? 108
                               : std::is_same_v<F, Q6_K> ? 208
                                                         : 0;
    return i >= at && i < at + 4;  // blocks with a single half end with it
  } else {
    return i < (F::block_bytes == 20 || F::block_bytes == 24 ? 4 : F::block_bytes == 17 ? 1 : 2);
  }
}
// Random bytes everywhere but in the float scales of each block, which are finite.
inline FileMatrix random_blocks(int tag, Dim out, Dim in, unsigned seed) {
  FileMatrix matrix = encode<All>(tag, out, in, normal(out * in, seed));
  std::mt19937 generator(seed);
  FormatList<All>::visit(tag, [&]<class F>(F) {
    for (std::size_t i = 0; i < matrix.bytes.size(); ++i) {
      if (!in_scale<F>(i % F::block_bytes))
        matrix.bytes[i] = static_cast<std::byte>(generator() & 255);
    }
  });
  decode<All>(matrix);
  return matrix;
}

// Leaves read behind the last token, where integers of any size and floats of any kind may lie.
inline void fill_with_anything(AlignedBuffer& memory) {
  std::mt19937 generator(21);
  for (std::size_t i = 0; i + 4 <= memory.size(); i += 4) {
    const auto bits = static_cast<std::uint32_t>(generator());
    std::memcpy(memory.data() + i, &bits, 4);
  }
}

// x [tokens, in] times the matrix, on rows of `stride` (0: out) floats that hold `before` at first;
// the row after the last one stays in the result, so that a test sees whether it was written.
struct Call {
  Isa isa = Isa::scalar;
  Activations activations = Activations::f32;
  int threads = 1;
  bool accumulate = false;
  Dim stride = 0;
  float before = 0;
};
template <class Formats>
std::vector<float> product(const PackedMatrix<Formats>& weight, const std::vector<float>& x,
                           Call call) {
  const Dim tokens = static_cast<Dim>(x.size()) / weight.in();
  const Dim stride = call.stride == 0 ? weight.out() : call.stride;
  std::vector<float> y(static_cast<std::size_t>((tokens + 1) * stride), call.before);
  AlignedBuffer scratch(static_cast<std::size_t>(QuantizedRows::bytes(tokens, weight.in())));
  fill_with_anything(scratch);
  Backwards team(call.threads);
  const LinearOutput<Formats> output{&weight, matrix(y.data(), tokens, stride), call.accumulate};
  linear<Formats>(team, call.isa, matrix<const float>(x.data(), tokens, weight.in()),
                  std::span(&output, 1), call.activations,
                  QuantizedRows::carve(scratch.data(), tokens, weight.in()));
  return y;
}
template <class Formats>
PackedMatrix<Formats> pack(const FileMatrix& matrix, int threads = 1) {
  Backwards team(threads);
  return PackedMatrix<Formats>::pack(matrix.tag, matrix.bytes, matrix.out, matrix.in, team);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool both_nan = a[i] != a[i] && b[i] != b[i];
    if (!both_nan && std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]))
      return false;
  }
  return true;
}

}  // namespace weights
