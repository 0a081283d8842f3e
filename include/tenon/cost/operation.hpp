#pragma once
// Single operations: FLOPs, bytes and their exact quotient, the arithmetic intensity. Sizes: B
// sequences of T new tokens over S keys, the new ones included; D width, F hidden, N heads, K heads
// of keys and values, H values of a head. A multiply-add is two FLOPs.
#include "element.hpp"

namespace tenon::inline TENON_ABI::cost {

struct Operation {
  Dim flops = 0, bytes = 0;
  // FLOPs per byte; an operation is bound by arithmetic when this is above Hardware::balance().
  constexpr Ratio intensity() const { return {flops, bytes}; }
};

// [b, d] x [d, f]; tends to b FLOPs per byte in bf16 when b is far below d and f.
constexpr Operation matmul(Dim b, Dim d, Dim f, Element weights = elements::bf16,
                           Element activations = elements::bf16) {
  return {exact_product(2, b, d, f),
          exact_sum(activations.bytes_of(exact_product(b, exact_sum(d, f))),
                    weights.bytes_of(exact_product(d, f)))};
}

// Gate, up and down over `tokens` = B T tokens: reads the input, writes gate, up and output, reads
// the weights. `fused`: gate and up never reach memory.
constexpr Operation gated_mlp(Dim tokens, Dim d, Dim f, bool fused = false,
                              Element weights = elements::bf16,
                              Element activations = elements::bf16) {
  const Dim hidden = fused ? 0 : exact_product(2, tokens, f);
  return {exact_product(6, tokens, d, f),
          exact_sum(activations.bytes_of(exact_sum(exact_product(2, tokens, d), hidden)),
                    weights.bytes_of(exact_product(3, d, f)))};
}

// Keys that T new tokens see together: one after another of a causal prompt, at most `reach` each
// (0: all). Not masked, each sees min(S, reach). RequestError when T is more than S.
constexpr Dim query_key_pairs(Dim t, Dim s, Dim reach = 0, bool masked = true) {
  if (t < 0 || t > s || reach < 0) {
    fail<RequestError>(
        "query_key_pairs must have new tokens among all keys, and a reach of 0 or "
        "more, it has ",
        t, " of ", s, " and ", reach, "; count new tokens as keys");
  }
  const Dim most = reach == 0 || reach > s ? s : reach;
  if (!masked) return exact_product(t, most);
  const auto up_to = [most](Dim n) {  // the sum over rows 1 to n of min(row, most)
    const Dim rising = n < most ? n : most;
    const Dim half = rising % 2 == 0 ? exact_product(rising / 2, rising + 1)
                                     : exact_product(rising, (rising + 1) / 2);
    return exact_sum(half, exact_product(n - rising, most));
  };
  return up_to(s) - up_to(s - t);
}

// Scores and weighted sums in one pass, without a matrix of scores in memory: queries and outputs
// of N heads, keys and values of K. Not masked it is S T / (S + T) FLOPs per byte for N = K in
// bf16.
constexpr Operation attention(Dim b, Dim t, Dim s, Dim n, Dim k, Dim h, bool masked = false,
                              Element cache = elements::bf16,
                              Element activations = elements::bf16) {
  return {exact_product(4, b, query_key_pairs(t, s, 0, masked), exact_product(n, h)),
          exact_sum(activations.bytes_of(exact_product(2, b, t, exact_product(n, h))),
                    cache.bytes_of(exact_product(2, b, s, exact_product(k, h))))};
}

// Latent attention with absorbed projections, one new token over s rows of C + R values, of which
// the row is all that is read (arXiv 2405.04434).
constexpr Operation absorbed_attention(Dim s, Dim n, Dim c, Dim r, Element cache = elements::bf16) {
  return {exact_product(2, n, s, 2 * c + r), cache.bytes_of(exact_product(s, c + r))};
}

// T*: how many new tokens must share the keys and values that are written out of latents before
// that is less work than to attend to the latents, C (Dn + Dv) / (2 C - Dn - Dv). RequestError when
// it never is.
constexpr Ratio mla_crossover(Dim c, Dim dn, Dim dv) {
  if (2 * c <= dn + dv) {
    fail<RequestError>("the latent of mla_crossover must be wider than half of a key and a value, ",
                       (dn + dv) / 2, ", it is ", c, "; expanding is never less work");
  }
  return {exact_product(c, dn + dv), 2 * c - dn - dv};
}

}  // namespace tenon::inline TENON_ABI::cost
