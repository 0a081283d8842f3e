// expect: tenon: a row cache must provide `std::byte* row(SeqId, int slot, int plane, int row)`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Nowhere {
  using Formats = F32;
  static constexpr bool forks = false;
  Nowhere(std::span<const RowSpec>, const Limits&, const PlaneTags&);
  static std::size_t bytes(std::span<const RowSpec>, const Limits&, const PlaneTags&);
  const PlaneTags& tags() const;
#ifndef TENON_EXPECT_FAIL
  std::byte* row(SeqId, int, int, int);
  const std::byte* row(SeqId, int, int, int) const;
#endif
  bool reserve(SeqId, int, int);
  bool recalls(SeqId, int) const;
  int contiguous_from(int) const;
  std::size_t row_stride(int, int) const;
  void truncate(SeqId, int, int);
  void release(SeqId);
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Rope, Nowhere>) > 0);
