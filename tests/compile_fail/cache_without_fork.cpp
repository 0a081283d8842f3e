// expect: tenon: a row cache whose `forks` is true must provide `void fork(SeqId from, SeqId to, int rows)`
#include <tenon/zoo/llama.hpp>
using namespace tenon;

struct Unforkable {
  using Formats = F32;
  static constexpr bool forks = true;
  Unforkable(std::span<const RowSpec>, const Limits&, const PlaneTags&);
  static std::size_t bytes(std::span<const RowSpec>, const Limits&, const PlaneTags&);
  const PlaneTags& tags() const;
  std::byte* row(SeqId, int, int, int);
  const std::byte* row(SeqId, int, int, int) const;
#ifndef TENON_EXPECT_FAIL
  void fork(SeqId, SeqId, int);
#endif
  bool reserve(SeqId, int, int);
  bool recalls(SeqId, int) const;
  int contiguous_from(int) const;
  std::size_t row_stride(int, int) const;
  void truncate(SeqId, int, int);
  void release(SeqId);
};
static_assert(sizeof(Gqa<GqaSpec{}, Causal, Rope, Unforkable>) > 0);
