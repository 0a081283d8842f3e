#pragma once
// The formats of GGUF in which activations are multiplied elsewhere, Q8_1 and Q8_K: eight-bit codes
// with their sums. tenon reads them where a file stores weights so; the sums are not needed.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "dense.hpp"
#include "encode_blocks.hpp"
#include "k_quants.hpp"

namespace tenon::inline TENON_ABI {

// half d, half d times the sum of the codes; 32 int8: x = d q.
struct Q8_1 {
  static constexpr std::string_view name = "q8_1";
  static constexpr int ggml_type = 9;
  static constexpr Dim block = 32;
  static constexpr std::size_t block_bytes = 36;

  // How it lies in memory for the kernels: without the sum.
  using packed = Q8_0;
  static void repack(const std::byte* from, std::byte* to) {
    std::memcpy(to, from, 2);
    std::memcpy(to + 2, from + 4, 32);
  }

  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      std::byte plain[Q8_0::block_bytes];
      Q8_0::encode(x, block, plain);
      std::memcpy(to, plain, 2);
      std::memcpy(to + 4, plain + 2, 32);
      float largest = 0;
      int sum = 0;
      for (Dim i = 0; i < block; ++i) {
        largest = (std::max)(largest, std::fabs(x[i]));
        sum += static_cast<std::int8_t>(to[4 + i]);
      }
      detail::store_half(largest / 127.0f * static_cast<float>(sum), to + 2);
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      std::byte plain[Q8_0::block_bytes];
      repack(from, plain);
      Q8_0::decode(plain, block, x);
    }
  }
};

// float d; 256 int8; 16 int16 sums of sixteen codes each: x = d q. encode puts the peak on -127; a
// super-block it cannot express (see beyond_blocks) becomes NaN.
struct Q8_K {
  static constexpr std::string_view name = "q8_K";
  static constexpr int ggml_type = 15;
  static constexpr Dim block = detail::super_block;
  static constexpr std::size_t block_bytes = 292;

  // How it lies in memory for the kernels: as floats, 32 bits for 9.125, because no other format
  // with integers has a float scale.
  using packed = F32;
  static void repack(const std::byte* from, std::byte* to) {
    float values[block];
    decode(from, block, values);
    std::memcpy(to, values, sizeof values);
  }

  static void encode(const float* x, Dim n, std::byte* to) {
    for (; n > 0; n -= block, x += block, to += block_bytes) {
      std::memset(to, 0, block_bytes);
      const float peak = detail::beyond_blocks(x, block) ? std::numeric_limits<float>::quiet_NaN()
                                                         : detail::signed_peak(x, block);
      if (peak == 0) continue;
      const float inverse = -127.0f / peak, d = 1.0f / inverse;
      std::memcpy(to, &d, 4);
      std::int16_t sums[16] = {};
      for (Dim i = 0; i < block && peak == peak; ++i) {
        const int q = (std::min)(detail::nearest(detail::product(inverse, x[i])), 127);
        to[4 + i] = static_cast<std::byte>(static_cast<std::int8_t>(q));
        sums[i / 16] = static_cast<std::int16_t>(sums[i / 16] + q);
      }
      std::memcpy(to + 4 + block, sums, sizeof sums);
    }
  }
  static void decode(const std::byte* from, Dim n, float* x) {
    for (; n > 0; n -= block, x += block, from += block_bytes) {
      float d;
      std::memcpy(&d, from, 4);
      for (Dim i = 0; i < block; ++i) {
        x[i] = d * static_cast<float>(static_cast<std::int8_t>(from[4 + i]));
      }
    }
  }
};

}  // namespace tenon::inline TENON_ABI
