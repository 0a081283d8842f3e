// Compiles the file named by TENON_LEAF_FILE once per instruction set, in that set's namespace,
// with TENON_LEAF as the attribute that every leaf function in it carries. The bodies are written
// once, on the sixteen lanes of lanes_*.hpp, so all sets compute the same bits.
#include "lanes_avx2.hpp"
#include "lanes_avx512.hpp"
#include "lanes_neon.hpp"
#include "lanes_scalar.hpp"

namespace tenon::inline TENON_ABI::scalar {
#if defined(__x86_64__) || defined(__aarch64__)
#define TENON_LEAF __attribute__((cold))  // the oracle there: small code and short builds
#else
#define TENON_LEAF
#endif
#include TENON_LEAF_FILE
#undef TENON_LEAF
}  // namespace tenon::inline TENON_ABI::scalar

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
namespace tenon::inline TENON_ABI::avx2 {
#define TENON_LEAF TENON_TARGET("avx2,fma,f16c")
#include TENON_LEAF_FILE
#undef TENON_LEAF
}  // namespace tenon::inline TENON_ABI::avx2
namespace tenon::inline TENON_ABI::avx512 {
#define TENON_LEAF TENON_TARGET("avx512f,avx512bw,avx512vl,avx512dq,fma")
#include TENON_LEAF_FILE
#undef TENON_LEAF
}  // namespace tenon::inline TENON_ABI::avx512
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

#if defined(__aarch64__)
namespace tenon::inline TENON_ABI::neon {
#define TENON_LEAF TENON_TARGET("+nothing+simd")
#include TENON_LEAF_FILE
#undef TENON_LEAF
}  // namespace tenon::inline TENON_ABI::neon
#endif
#undef TENON_LEAF_FILE
