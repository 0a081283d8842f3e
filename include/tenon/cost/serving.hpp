#pragma once
// What users of a server wait for: the first token, and each one after it.
#include "roofline.hpp"
#include "speculation.hpp"

namespace tenon::inline TENON_ABI::cost {

// One iteration of continuous batching with chunked prefill: `decodes` sequences of `context` rows
// go on by one token, and `chunk` tokens of a prompt join whose first `prefix` rows are cached.
struct Iteration {
  Dim decodes = 0, context = 1;
  Dim chunk = 0, prefix = 0;
};
// Seconds: linear layers work on all tokens at once, attention on each sequence's own. Of a chunk
// only the `last` one of its prompt wants logits.
constexpr double iteration_time(const ModelSizes& m, const Iteration& it, const Hardware& on,
                                Arithmetic in = Arithmetic::bf16, bool last = true) {
  detail::check_not_negative("decodes of an iteration", it.decodes);
  detail::check_not_negative("the chunk of an iteration", it.chunk);
  if (it.decodes + it.chunk < 1) return 0;
  const auto bound = [&](Dim work, double bytes) {
    return bound_time(static_cast<double>(work), bytes, on, in);
  };
  // Weights are read once for all tokens. Running sequences have one new token each, however many
  // they are, and so do not write latents out.
  const Dim tokens = it.decodes + it.chunk;
  const Dim logits = it.decodes + (it.chunk > 0 && last ? 1 : 0);
  const Step all =
      it.decodes > 0 ? Step{tokens, 1, 1, logits} : Step{1, tokens, it.prefix + tokens, logits};
  const Parts<double> bytes = traffic(m, all);
  double seconds = bound(flops(m, all).unembedding, bytes.unembedding);
  Dim linear = 0;
  for (const Step& step :
       {Step{it.decodes, 1, it.context}, Step{1, it.chunk, it.prefix + it.chunk}}) {
    if (step.batch < 1 || step.tokens < 1) continue;
    const Parts<Dim> work = flops(m, step);
    linear = exact_sum(linear, work.linear);
    seconds += bound(work.attention, traffic(m, step).attention);
  }
  seconds += bound(linear, bytes.linear);
  return seconds;
}

// Seconds from a request's arrival to its first token: `queue`, then the chunks of its prompt past
// what a prefix cache holds, each beside `decodes` running sequences of `context` rows. The last
// token is computed in any case: its logits are not cached. RequestError when `prompt` or `chunk`
// is less than 1.
constexpr double time_to_first_token(const ModelSizes& m, Dim prompt, Dim chunk, const Hardware& on,
                                     Dim decodes = 0, Dim context = 1, Dim cached = 0,
                                     double queue = 0, Arithmetic in = Arithmetic::bf16) {
  if (chunk < 1 || prompt < 1) {
    fail<RequestError>("prompt and chunk of time_to_first_token must be at least 1, they are ",
                       prompt, " and ", chunk,
                       "; name the tokens of a prompt, and those that one step takes");
  }
  double seconds = queue;
  for (Dim at = (std::min)(cached, prompt - 1), now = 0; at < prompt; at += now) {
    now = (std::min)(chunk, prompt - at);
    seconds += iteration_time(m, {decodes, context, now, at}, on, in, at + now == prompt);
  }
  return seconds;
}
// Seconds between two tokens of a sequence among `batch` that all have `context` rows.
constexpr double time_per_output_token(const ModelSizes& m, Dim batch, Dim context,
                                       const Hardware& on, Arithmetic in = Arithmetic::bf16) {
  return step_time(m, {batch, 1, context}, on, in);
}

// Seconds that one token takes with drafts of `gamma` tokens, verified in one step of gamma + 1 for
// each sequence: past the critical batch this is more than without.
constexpr double speculative_time_per_token(const ModelSizes& m, Dim batch, Dim context,
                                            const Hardware& on, double alpha, int gamma,
                                            double draft_step_seconds,
                                            Arithmetic in = Arithmetic::bf16) {
  const Step verify{batch, gamma + 1, context + gamma, exact_product(batch, gamma + 1)};
  return (step_time(m, verify, on, in) + gamma * draft_step_seconds) /
         expected_tokens(alpha, gamma);
}

// What a sequence that made room for others costs when it comes back: computing its rows again, or
// moving them to the host and back. Choose the less.
struct Preemption {
  double recompute = 0, swap = 0;  // seconds
  constexpr bool recomputes() const { return recompute <= swap; }
};
constexpr Preemption preemption(const ModelSizes& m, Dim context, const Hardware& on,
                                Arithmetic in = Arithmetic::bf16) {
  const double work = static_cast<double>(flops(m, {1, context, context}).total());
  return {work / on.flops(in), 2 * static_cast<double>(cache_bytes(m, context)) / on.host_link};
}

}  // namespace tenon::inline TENON_ABI::cost
