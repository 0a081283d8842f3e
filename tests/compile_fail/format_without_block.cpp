// expect: tenon: a Format must provide `static constexpr Dim block` (values)
#include <tenon/quant/any_of.hpp>
#include <tenon/quant/dense.hpp>

struct Whole {
  static constexpr std::string_view name = "whole";
  static constexpr int ggml_type = 26;
#ifndef TENON_EXPECT_FAIL
  static constexpr tenon::Dim block = 1;
  static constexpr std::size_t block_bytes = 4;
#endif
  static void encode(const float* x, tenon::Dim n, std::byte* to);
  static void decode(const std::byte* from, tenon::Dim n, float* x);
};

// A list of formats says it for each of its members.
static_assert(sizeof(tenon::AnyOf<tenon::F32, Whole>) > 0);
