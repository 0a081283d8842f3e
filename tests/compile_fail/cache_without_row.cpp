// expect: tenon: a row cache must provide `std::byte* row(SeqId, int slot, int plane, int row)`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Nowhere {
  using Formats = F32;
  Nowhere(std::span<const RowSpec>, const Limits&, int);
  static std::size_t bytes(std::span<const RowSpec>, const Limits&, int);
  int tag() const;
#ifndef TENON_EXPECT_FAIL
  std::byte* row(SeqId, int, int, int);
  const std::byte* row(SeqId, int, int, int) const;
#endif
  bool fits(SeqId, int, int) const;
  void reserve(SeqId, int, int);
  int contiguous_from(int) const;
  std::size_t row_stride(int, int) const;
  void fork(SeqId, SeqId, int);
  void truncate(SeqId, int, int);
  void release(SeqId);
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Rope, Nowhere>) > 0);
