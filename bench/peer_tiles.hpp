#pragma once
// Put before every file of llama.cpp that compare.py compiles. The _tile_loadconfig of g++ 12 tells
// the compiler that 8 bytes of the configuration are read; the stores of the other 56 are then
// dropped, and the first tile instruction is illegal.
#if defined(__AMX_TILE__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define _tile_loadconfig(config) \
  __asm__ volatile("ldtilecfg %0" : : "m"(*reinterpret_cast<const char(*)[64]>(config)))
#endif
