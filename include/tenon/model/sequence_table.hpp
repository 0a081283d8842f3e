#pragma once
// The sequences of a session: which are open, how long they are, and whether a batch fits them.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "../core/batch.hpp"
#include "../core/error.hpp"
#include "../tensor/view.hpp"
#include "token_trees.hpp"

namespace tenon::inline TENON_ABI {

class SequenceTable {
 public:
  // `trees`: the model's masks understand token trees.
  SequenceTable(const Limits& limits, int vocab, bool trees)
      : limits_(limits), vocab_(vocab), takes_trees_(trees) {
    const auto seqs = static_cast<std::size_t>(limits.seqs);
    lengths_.assign(seqs, closed);
    stamps_.assign(seqs, 0);
    seqs_.reserve(seqs);
    positions_.reserve(static_cast<std::size_t>(limits.step_tokens));
    if (trees) trees_.reserve(limits.step_tokens);
  }

  const Limits& limits() const { return limits_; }
  // Rows of an open sequence; RequestError when it is not open.
  int length(SeqId seq) const { return lengths_[checked(seq)]; }
  void resize(SeqId seq, int rows) {
    lengths_[checked(seq)] = rows;
    forget_step(seq);
  }
  void close(SeqId seq) { resize(seq, closed); }
  // The admitted step is done: its sequences are longer now.
  void commit(const Step& step) {
    for (const SeqStep& seq : step.seqs) lengths_[index(seq.seq)] = seq.base + seq.count;
    committed_ = true;
  }
  // The part that a sequence had in the last step; RequestError when the step was not its last
  // change.
  const SeqStep& last_step(SeqId seq) const {
    const int rows = length(seq);
    for (const SeqStep& part : seqs_) {
      const bool whole = part.count > 0 && part.base + part.count == rows;
      if (committed_ && part.seq == seq && whole) return part;
    }
    fail<RequestError>("accept must follow the forward() that gave sequence ", index(seq),
                       " its tokens, before another step or change; its rows are now ", rows);
  }
  // A closed sequence, opened with `rows` rows; CapacityError when all are open.
  SeqId open(int rows) {
    const SeqId seq = vacant();
    lengths_[index(seq)] = rows;
    return seq;
  }
  SeqId vacant() const {
    for (std::size_t i = 0; i < lengths_.size(); ++i) {
      if (lengths_[i] == closed) return static_cast<SeqId>(i);
    }
    fail<CapacityError>("a session can hold Limits::seqs = ", limits_.seqs,
                        " sequences and all are open; close one or open the session with more");
  }

  // The validated batch, valid until the next call; RequestError names what is wrong with it,
  // CapacityError a full sequence. Allocates nothing.
  Step admit(const Batch& batch, MatView<const float> logits) {
    committed_ = false;
    check_sizes(batch, logits);
    check_values(batch);
    seqs_.clear();
    positions_.clear();
    trees_.clear();
    ++batches_;
    const auto tokens = static_cast<int>(batch.tokens.size());
    int first = 0;
    for (std::size_t i = 0; i < batch.seqs.size(); ++i) {
      first += admit_sequence(batch, i, first, tokens);
    }
    if (first != tokens) {
      fail<RequestError>("Batch::counts must add up to its ", tokens, " tokens, they add up to ",
                         first);
    }
    for (const int position : positions_) {
      if (position < 0)
        fail<RequestError>("a position must not be negative, the batch holds ", position);
    }
    return {seqs_, positions_, tokens};
  }

 private:
  static constexpr int closed = -1;

  // What the last step gave to `seq` is no longer all that happened to it.
  void forget_step(SeqId seq) {
    for (SeqStep& part : seqs_) {
      if (part.seq == seq) part.count = 0;
    }
  }
  std::size_t checked(SeqId seq) const {
    const std::size_t i = index(seq);
    if (i >= lengths_.size() || lengths_[i] == closed) {
      fail<RequestError>("a sequence must come from open() or fork() and not be closed; ",
                         static_cast<std::int32_t>(seq), " is not open in this session");
    }
    return i;
  }
  void check_sizes(const Batch& batch, MatView<const float> logits) const {
    const auto tokens = static_cast<Dim>(batch.tokens.size());
    if (batch.seqs.size() != batch.counts.size()) {
      fail<RequestError>("Batch::counts must have one entry per sequence, there are ",
                         batch.seqs.size(), " sequences and ", batch.counts.size(), " counts");
    }
    if (tokens < 1 || tokens > limits_.step_tokens) {
      fail<RequestError>("a batch must have 1 to Limits::step_tokens = ", limits_.step_tokens,
                         " tokens, it has ", tokens, "; feed longer prompts in chunks");
    }
    one_per_token("positions", batch.positions.size(), tokens);
    one_per_token("parents", batch.parents.size(), tokens);
    if (!batch.parents.empty() && !takes_trees_) {
      fail<RequestError>(
          "Batch::parents must be empty: not every mask of this model type understands token "
          "trees; compose it with Tree<...>");
    }
    const auto wanted = static_cast<Dim>(batch.want.size());
    if (wanted > tokens) {
      fail<RequestError>("Batch::want must have at most one entry per token, there are ", wanted,
                         " wants and ", tokens, " tokens");
    }
    if (wanted > 0 && (logits.extent(0) != wanted || logits.extent(1) != vocab_)) {
      fail<RequestError>("logits must be [want, vocab] = [", wanted, ", ", vocab_, "], they are [",
                         logits.extent(0), ", ", logits.extent(1), "]");
    }
  }
  static void one_per_token(std::string_view name, std::size_t given, Dim tokens) {
    if (given == 0 || static_cast<Dim>(given) == tokens) return;
    fail<RequestError>("Batch::", name, " must be empty or have one entry per token, there are ",
                       given, " ", name, " and ", tokens, " tokens");
  }
  void check_values(const Batch& batch) const {
    for (const Token token : batch.tokens) {
      if (token < 0 || token >= vocab_) {
        fail<RequestError>("a token id must be 0 to ", vocab_ - 1, ", the batch holds ", token,
                           "; was it made by another model's tokenizer?");
      }
    }
    const auto tokens = static_cast<int>(batch.tokens.size());
    for (const int want : batch.want) {
      if (want < 0 || want >= tokens) {
        fail<RequestError>("Batch::want must index its ", tokens, " tokens, it holds ", want);
      }
    }
  }
  // Writes down sequence i, whose tokens start at `first`; returns how many it has.
  int admit_sequence(const Batch& batch, std::size_t i, int first, int tokens) {
    const SeqId seq = batch.seqs[i];
    const int count = batch.counts[i];
    const int base = length(seq);
    if (count < 1 || count > tokens - first) {
      fail<RequestError>("Batch::counts must be positive and add up to its ", tokens,
                         " tokens; count ", i, " is ", count, " with ", tokens - first,
                         " tokens left");
    }
    if (std::exchange(stamps_[index(seq)], batches_) == batches_) {
      fail<RequestError>("a sequence may stand in a batch once, ", index(seq),
                         " stands in it twice");
    }
    if (count > limits_.context - base) {
      fail<CapacityError>("sequence ", index(seq),
                          " has room for Limits::context = ", limits_.context, " rows, it holds ",
                          base, " and ", count,
                          " more were given; open the session with a longer context");
    }
    SeqStep part{seq, first, count, base, nullptr, nullptr};
    if (!batch.parents.empty()) trees_.grow(batch.parents, part);
    for (int t = 0; t < count; ++t) {
      const auto at = static_cast<std::size_t>(first) + static_cast<std::size_t>(t);
      const int depth = part.depths == nullptr ? t : part.depths[t];
      positions_.push_back(batch.positions.empty() ? base + depth : batch.positions[at]);
    }
    seqs_.push_back(part);
    return count;
  }

  Limits limits_;
  int vocab_;
  bool takes_trees_;
  std::vector<int> lengths_;           // [seqs]; -1: closed
  std::vector<std::uint64_t> stamps_;  // [seqs] the last batch each was in
  std::uint64_t batches_ = 0;
  bool committed_ = false;  // seqs_ is the last step, and it was done
  std::vector<SeqStep> seqs_;
  std::vector<int> positions_;
  TokenTrees trees_;
};

}  // namespace tenon::inline TENON_ABI
