#pragma once
// The two things every other header stands on: the ABI tag of this translation unit, and the
// attribute that lets one function use an instruction set the rest of the unit does not.
#include <version>

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error \
    "tenon: -ffast-math and -ffinite-math-only break the exact equalities tenon promises; remove them"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "tenon: only little-endian targets are supported"
#endif

#define TENON_VERSION_MAJOR 0
#define TENON_VERSION_MINOR 1
#define TENON_VERSION_PATCH 0

// An inline function compiled twice under two sets of -m flags is one symbol with two bodies; the
// linker keeps either. Naming the flags in the namespace turns that into a link error.
// So does TENON_COUNT_COST, which changes functions (cost_counter.hpp); what counts is compiled
// under one set of flags.
#if defined(TENON_COUNT_COST)
#define TENON_ABI v0_counting
#elif defined(__AVX512VNNI__)
#define TENON_ABI v0_avx512vnni
#elif defined(__AVX512F__)
#define TENON_ABI v0_avx512
#elif defined(__AVX2__) && defined(__FMA__)
#define TENON_ABI v0_avx2_fma
#elif defined(__AVX2__)
#define TENON_ABI v0_avx2
#elif defined(__AVX__)
#define TENON_ABI v0_avx
#elif defined(__ARM_FEATURE_SVE)
#define TENON_ABI v0_sve
#elif defined(__ARM_FEATURE_DOTPROD)
#define TENON_ABI v0_dotprod
#else
#define TENON_ABI v0
#endif

// TENON_TARGET("avx2,fma"): the function below may use these instructions without any -m flag. On
// Arm it is said to GCC alone, which inlines nothing that may use more; Clang has other names.
#if defined(__GNUC__) && (defined(__x86_64__) || (defined(__aarch64__) && !defined(__clang__)))
#define TENON_TARGET(isa) __attribute__((target(isa)))
#else
#define TENON_TARGET(isa)
#endif

// The loop below is written out in full, so that an array it indexes can live in registers. Not
// under clang's sanitizers, which check every step of every copy: that takes minutes to compile.
#if defined(__clang__) && defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TENON_UNROLL
#endif
#endif
#if defined(TENON_UNROLL)
#elif defined(__clang__)
#define TENON_UNROLL _Pragma("unroll")
#else
#define TENON_UNROLL _Pragma("GCC unroll 32")
#endif

// Everything that is no template is declared in x.hpp and defined in x.inl beside it. By default
// the header includes its definitions. A program that links tenon::compiled is built with
// TENON_COMPILED and sees the declarations alone; the library holds the rest.
#if defined(TENON_COMPILED)
#define TENON_INLINE
#else
#define TENON_INLINE inline
#endif
