#pragma once
// A session without a model: its logits are a function of the tokens of the sequence, so a token
// that is lost, doubled or out of place changes everything after it.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include <tenon/model/concepts.hpp>

namespace fake {

using tenon::Batch;
using tenon::Dim;
using tenon::Limits;
using tenon::MatView;
using tenon::SeqId;
using tenon::Token;

// Logits in [-4, 4) that depend on every token of `history` and on its order.
inline void hashed_logits(std::span<const Token> history, std::span<float> row) {
  std::uint64_t state = 0x243F6A8885A308D3;
  for (const Token token : history) {
    state = (state ^ static_cast<std::uint64_t>(token)) * 0x9E3779B97F4A7C15;
    state ^= state >> 29;
  }
  for (float& x : row) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<float>(state >> 40) * 0x1p-21F - 4;
  }
}

class Session {
 public:
  using Row = std::function<void(std::span<const Token> history, std::span<float> row)>;

  Session(int vocab, Limits limits, Row row = hashed_logits)
      : vocab_(vocab), limits_(limits), row_(std::move(row)) {
    rows_.resize(static_cast<std::size_t>(limits.seqs));
    for (auto& tokens : rows_) tokens.reserve(static_cast<std::size_t>(limits.context));
    open_.assign(rows_.size(), false);
  }

  int vocab() const { return vocab_; }
  Limits limits() const { return limits_; }
  int length(SeqId seq) const { return static_cast<int>(at(seq).size()); }
  SeqId open() {
    for (std::size_t i = 0; i < open_.size(); ++i) {
      if (open_[i]) continue;
      open_[i] = true;
      rows_[i].clear();
      return static_cast<SeqId>(i);
    }
    tenon::fail<tenon::CapacityError>("every sequence is open");
  }
  SeqId fork(SeqId seq) {
    const SeqId copy = open();
    rows_[tenon::index(copy)].assign(at(seq).begin(), at(seq).end());
    return copy;
  }
  void truncate(SeqId seq, int n) {
    if (bounded && length(seq) - n > limits_.rollback) {
      tenon::fail<tenon::CapacityError>("this cache cannot go back so far");
    }
    rows_[tenon::index(seq)].resize(static_cast<std::size_t>(n));
  }
  void close(SeqId seq) {
    at(seq);
    open_[tenon::index(seq)] = false;
  }

  void forward(const Batch& batch, MatView<float> logits, std::stop_token stop) {
    ++forwards;
    largest_step = (std::max)(largest_step, static_cast<int>(batch.tokens.size()));
    if (static_cast<int>(batch.tokens.size()) > limits_.step_tokens) {
      tenon::fail<tenon::RequestError>("too many tokens for one step");
    }
    for (int layer = 0; layer < layers; ++layer) {
      ++checks;
      if (on_check) on_check(checks);
      if (stop.stop_requested()) tenon::fail<tenon::Cancelled>("cancelled in layer ", layer);
    }
    std::size_t first = 0;
    std::size_t wanted = 0;
    for (std::size_t s = 0; s < batch.seqs.size(); ++s) {
      std::vector<Token>& tokens = rows_[tenon::index(batch.seqs[s])];
      for (int i = 0; i < batch.counts[s]; ++i, ++first) {
        if (static_cast<int>(tokens.size()) == limits_.context) {
          tenon::fail<tenon::CapacityError>("context is full");
        }
        tokens.push_back(batch.tokens[first]);
        if (wanted < batch.want.size() && batch.want[wanted] == static_cast<int>(first)) {
          row_(tokens, {logits.row(static_cast<Dim>(wanted)), static_cast<std::size_t>(vocab_)});
          ++wanted;
        }
      }
    }
    if (wanted != batch.want.size() || logits.extent(0) != static_cast<Dim>(wanted)) {
      tenon::fail<tenon::RequestError>("rows of logits do not match what was wanted");
    }
  }

  const std::vector<Token>& tokens(SeqId seq) const { return at(seq); }
  int sequences_open() const {
    int n = 0;
    for (const bool open : open_) n += open ? 1 : 0;
    return n;
  }

  static constexpr int layers = 3;  // a step looks at its stop token before each
  int forwards = 0;                 // calls
  int checks = 0;                   // looks at a stop token
  int largest_step = 0;             // tokens
  bool bounded = false;             // truncate() is limited to Limits::rollback rows
  std::function<void(int check)> on_check;

 private:
  const std::vector<Token>& at(SeqId seq) const {
    if (tenon::index(seq) >= open_.size() || !open_[tenon::index(seq)]) {
      tenon::fail<tenon::RequestError>("sequence ", static_cast<int>(seq), " is not open");
    }
    return rows_[tenon::index(seq)];
  }

  int vocab_;
  Limits limits_;
  Row row_;
  std::vector<std::vector<Token>> rows_;
  std::vector<bool> open_;
};
static_assert(tenon::ModelSession<Session>);

}  // namespace fake
