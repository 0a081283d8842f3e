// expect: tenon: a Format must provide `static void decode(const std::byte*, Dim n, float*)`
#include <tenon/quant/format.hpp>

struct Nibbles {
  static constexpr std::string_view name = "nibbles";
  static constexpr tenon::Dim block = 2;
  static constexpr std::size_t block_bytes = 1;
  static void encode(const float* x, tenon::Dim n, std::byte* to);
#ifdef TENON_EXPECT_FAIL
  static void decode(const char* from, tenon::Dim n, float* x);
#else
  static void decode(const std::byte* from, tenon::Dim n, float* x);
#endif
};

static_assert(tenon::explain_format<Nibbles>());
