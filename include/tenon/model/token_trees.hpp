#pragma once
// The token trees of one step, as masks read them: depths, and ancestors as bits.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "../core/batch.hpp"
#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

class TokenTrees {
 public:
  // Of one step, over all sequences; a tree's ancestors take the square of its tokens in bits.
  static constexpr int most_tokens = 4096;

  // Room for steps of `tokens` tokens, or of most_tokens.
  void reserve(int tokens) {
    tokens = (std::min)(tokens, most_tokens);
    const auto n = static_cast<std::size_t>(tokens);
    depths_.reserve(n);
    ancestors_.reserve(n * words(tokens));
  }
  void clear() {
    depths_.clear();
    ancestors_.clear();
  }
  // Sets depths and ancestors of `part` from its slice of `parents`, where a parent is an earlier
  // token of the slice or -1 for the cached prefix; RequestError when it is not.
  void grow(std::span<const int> parents, SeqStep& part) {
    if (part.count > most_tokens - static_cast<int>(depths_.size())) {
      fail<RequestError>("a step's token trees must have at most ", most_tokens,
                         " tokens together, sequence ", index(part.seq), " brings ", part.count,
                         " more to ", depths_.size(), "; give them in several steps");
    }
    const std::size_t row = words(part.count);
    const std::size_t depths = depths_.size(), bits = ancestors_.size();
    depths_.resize(depths + static_cast<std::size_t>(part.count));
    ancestors_.resize(bits + static_cast<std::size_t>(part.count) * row, 0);
    for (int i = 0; i < part.count; ++i) {
      const int parent =
          parents[static_cast<std::size_t>(part.first) + static_cast<std::size_t>(i)];
      if (parent < -1 || parent >= i) {
        fail<RequestError>(
            "a parent must be an earlier token of its sequence's slice or -1, token ", i,
            " of sequence ", index(part.seq), " names ", parent);
      }
      const std::size_t at = bits + static_cast<std::size_t>(i) * row;
      const std::size_t own = depths + static_cast<std::size_t>(i);
      if (parent >= 0) {
        const std::size_t from = bits + static_cast<std::size_t>(parent) * row;
        for (std::size_t w = 0; w < row; ++w) ancestors_[at + w] = ancestors_[from + w];
        depths_[own] = depths_[depths + static_cast<std::size_t>(parent)] + 1;
      }
      ancestors_[at + static_cast<std::size_t>(i) / 64] |= std::uint64_t{1} << (i % 64);
    }
    part.depths = depths_.data() + depths;
    part.ancestors = ancestors_.data() + bits;
  }

 private:
  static std::size_t words(int tokens) { return (static_cast<std::size_t>(tokens) + 63) / 64; }

  std::vector<int> depths_;               // of all sequences, one after another
  std::vector<std::uint64_t> ancestors_;  // reserved, so that pointers into it stay valid
};
}  // namespace tenon::inline TENON_ABI
