#pragma once
// Feeding one sequence of a session: a guard that closes it, and step() and prefill() over
// forward().
#include <algorithm>
#include <cstddef>
#include <exception>
#include <span>
#include <stop_token>
#include <utility>

#include "../core/batch.hpp"
#include "../core/error.hpp"
#include "../model/concepts.hpp"
#include "../tensor/view.hpp"

namespace tenon::inline TENON_ABI {

// Owns a sequence of a session and closes it when it goes out of scope, exceptions included.
template <ModelSession S>
class OpenSequence {
 public:
  // Opens an empty one; CapacityError when the session has none free.
  explicit OpenSequence(S& session) : session_(&session), seq_(session.open()) {}
  // Takes over one that is open, a fork for example.
  OpenSequence(S& session, SeqId seq) : session_(&session), seq_(seq) {}
  OpenSequence(OpenSequence&& from) noexcept
      : session_(std::exchange(from.session_, nullptr)), seq_(from.seq_) {}
  OpenSequence& operator=(OpenSequence&&) = delete;
  ~OpenSequence() {
    if (session_ == nullptr) return;
    try {
      session_->close(seq_);
    } catch (const std::exception&) {
      // Somebody closed it already: what this guard is for has been done.
    }
  }

  SeqId id() const { return seq_; }
  // Leaves the sequence open and to the caller.
  SeqId release() {
    session_ = nullptr;
    return seq_;
  }

 private:
  S* session_;
  SeqId seq_;
};

namespace detail {

// Refuses, before anything runs, tokens that cannot be appended after `cached` rows.
template <ModelSession S>
void check_tokens(const S& session, int cached, std::span<const Token> tokens) {
  if (tokens.empty()) {
    fail<RequestError>(
        "the tokens to process must be at least one, there are none; start an empty "
        "sequence with the tokenizer's BOS token, continue one with the token drawn last");
  }
  const Limits limits = session.limits();
  const std::size_t room = static_cast<std::size_t>((std::max)(limits.context - cached, 0));
  if (tokens.size() > room) {
    fail<CapacityError>(
        "the sequence would hold ", static_cast<std::size_t>(cached) + tokens.size(), " tokens (",
        cached, " cached and ", tokens.size(), " more); it must fit the context of ",
        limits.context, "; shorten the prompt or open the session with a larger Limits::context");
  }
  const int vocab = session.vocab();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < vocab) continue;
    fail<RequestError>("token ", i, " of ", tokens.size(), " must be an id from 0 to ", vocab - 1,
                       ", it is ", tokens[i],
                       "; encode the text with the tokenizer of the same checkpoint");
  }
}

template <ModelSession S>
void check_row(const S& session, std::span<const float> logits) {
  if (logits.size() == static_cast<std::size_t>(session.vocab())) return;
  fail<RequestError>("the row for logits must have ", session.vocab(), " values, it has ",
                     logits.size(), "; size it by the session's vocab()");
}

// One forward() over the next tokens of one sequence. `want` are indices into tokens, one for each
// row of `logits` [want, vocab].
template <ModelSession S>
void forward_one(S& session, SeqId seq, std::span<const Token> tokens, std::span<const int> want,
                 float* logits, const std::stop_token& stop) {
  const int count = static_cast<int>(tokens.size());
  Batch batch;
  batch.seqs = {&seq, 1};
  batch.counts = {&count, 1};
  batch.tokens = tokens;
  batch.want = want;
  session.forward(batch, matrix(logits, static_cast<Dim>(want.size()), session.vocab()), stop);
}

template <ModelSession S>
std::size_t step_tokens(const S& session) {
  const Limits limits = session.limits();
  return static_cast<std::size_t>((std::max)(limits.step_tokens, 1));
}

}  // namespace detail

// Appends one token; logits [vocab] receives what follows it. Throws what forward() throws, and
// RequestError for a row of another length; the sequence is then as it was.
template <ModelSession S>
void step(S& session, SeqId seq, Token token, std::span<float> logits, std::stop_token stop = {}) {
  detail::check_row(session, logits);
  constexpr int last = 0;
  detail::forward_one(session, seq, {&token, 1}, {&last, 1}, logits.data(), stop);
}

// Appends tokens, limits().step_tokens at a time; logits [vocab] receives what follows the last
// one, or nothing when it is empty. Checked before anything runs: RequestError for no tokens or an
// id outside the vocabulary, CapacityError when they do not fit the context. On an error or a
// cancel on the way the appended chunks are truncated again; where a bounded cache cannot give that
// many rows back they stay, and length(seq) tells how far it came.
template <ModelSession S>
void prefill(S& session, SeqId seq, std::span<const Token> tokens, std::span<float> logits,
             std::stop_token stop = {}) {
  const int before = session.length(seq);
  detail::check_tokens(session, before, tokens);
  if (!logits.empty()) detail::check_row(session, logits);
  const std::size_t chunk = detail::step_tokens(session);
  try {
    for (std::size_t at = 0; at < tokens.size(); at += chunk) {
      const std::span<const Token> part = tokens.subspan(at, (std::min)(chunk, tokens.size() - at));
      const bool final = at + part.size() == tokens.size();
      const int last = static_cast<int>(part.size()) - 1;
      const std::size_t rows = final && !logits.empty() ? 1 : 0;
      detail::forward_one(session, seq, part, {&last, rows}, logits.data(), stop);
    }
  } catch (...) {
    try {
      if (session.length(seq) > before) session.truncate(seq, before);
    } catch (const Error&) {
      // Too many rows for a ring or a recurrent state to take back: documented above.
    }
    throw;
  }
}

}  // namespace tenon::inline TENON_ABI
