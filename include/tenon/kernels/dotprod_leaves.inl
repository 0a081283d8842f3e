// Linear leaves on int8 activations with the dot products of bytes that most 64-bit Arm processors
// have (FEAT_DotProd): products and sum are one instruction. Everything else is that of NEON.
#if defined(__aarch64__)
#include "lanes_neon.hpp"

#if defined(__clang__)
#define TENON_LEAF __attribute__((target("dotprod")))
#else
#define TENON_LEAF TENON_TARGET("arch=armv8.2-a+dotprod")
#endif

namespace tenon::inline TENON_ABI::neon_dotprod {
using namespace neon;  // NOLINT(google-build-using-namespace): all but the dot product

// Assembly, because older compilers' headers offer it only to units compiled for processors that
// have it; volatile, because GCC would otherwise load all weights of a unit first, and spill them.
struct ByteDot {
  static constexpr bool signs_wide = true;
  static constexpr int one = 2, four = 1, eight = 0;
  TENON_LEAF static inline __attribute__((always_inline)) int32x4_t add_products(int32x4_t acc,
                                                                                 uint8x16_t w,
                                                                                 uint8x16_t x) {
    __asm__ volatile("sdot %0.4s, %1.16b, %2.16b" : "+w"(acc) : "w"(w), "w"(x));
    return acc;
  }
  TENON_LEAF static inline __attribute__((always_inline)) I32x16 narrow(I32x16 acc, Bytes64 w,
                                                                        Bytes64 x) {
    return {add_products(acc.q0, w.q0, x.q0), add_products(acc.q1, w.q1, x.q1),
            add_products(acc.q2, w.q2, x.q2), add_products(acc.q3, w.q3, x.q3)};
  }
  TENON_LEAF static inline __attribute__((always_inline)) I32x16 bytes(I32x16 acc, Bytes64 w,
                                                                       Bytes64 x) {
    return narrow(acc, signed_of_stored(w), x);
  }
};

#include "int8_leaves.inl"

}  // namespace tenon::inline TENON_ABI::neon_dotprod
#undef TENON_LEAF
#endif
