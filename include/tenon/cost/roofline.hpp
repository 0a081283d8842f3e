#pragma once
// How long a step takes at best: bytes over bandwidth, FLOPs over the peak, whichever is more.
#include <algorithm>
#include <limits>

#include "hardware.hpp"
#include "step.hpp"

namespace tenon::inline TENON_ABI::cost {

// A step of equal sequences in five numbers, for what is known of a model but no more.
struct Load {
  double parameters = 0;    // that a token meets
  double weight_bytes = 0;  // that a step reads
  double cache_bytes = 0;   // of one sequence
  double batch = 1;
  double tokens = 1;  // new ones of each sequence
};
constexpr Load load_of(const ModelSizes& m, const Step& step) {
  return {static_cast<double>(active_parameters(m)), static_cast<double>(weight_bytes(m)),
          static_cast<double>(cache_traffic(m, step.tokens, step.context)),
          static_cast<double>(step.batch), static_cast<double>(step.tokens)};
}

// Seconds of work that is bound by arithmetic or by memory, whichever takes longer.
constexpr double bound_time(double flops, double bytes, const Hardware& on, Arithmetic in) {
  return (std::max)(flops / on.flops(in), bytes / on.bandwidth);
}

// Seconds by memory alone: all weights and all caches once. (CS336, lecture 10.)
constexpr double memory_step_time(const Load& load, const Hardware& on) {
  return (load.batch * load.cache_bytes + load.weight_bytes) / on.bandwidth;
}
// Seconds where linear layers are bound by memory or by arithmetic, attention always by memory.
// (The scaling book, chapter on inference.) Equal to memory_step_time() below critical_batch().
constexpr double step_time(const Load& load, const Hardware& on, Arithmetic in = Arithmetic::bf16) {
  const double flops = 2 * load.batch * load.tokens * load.parameters;
  return load.batch * load.cache_bytes / on.bandwidth +
         bound_time(flops, load.weight_bytes, on, in);
}
// Seconds where each of the three parts is bound by memory or by arithmetic; attention may be
// computed in another arithmetic than the matrices.
constexpr double step_time(const ModelSizes& m, const Step& step, const Hardware& on, Arithmetic in,
                           Arithmetic attention) {
  const Parts<Dim> f = flops(m, step);
  const Parts<double> b = traffic(m, step);
  const auto part = [&](Dim work, double bytes, Arithmetic its) {
    return bound_time(static_cast<double>(work), bytes, on, its);
  };
  return part(f.linear, b.linear, in) + part(f.attention, b.attention, attention) +
         part(f.unembedding, b.unembedding, in);
}
constexpr double step_time(const ModelSizes& m, const Step& step, const Hardware& on,
                           Arithmetic in = Arithmetic::bf16) {
  return step_time(m, step, on, in, in);
}
// Tokens per second of all sequences together.
constexpr double throughput(const Load& load, const Hardware& on,
                            Arithmetic in = Arithmetic::bf16) {
  return load.batch * load.tokens / step_time(load, on, in);
}

// Tokens of a step from which on linear layers are bound by arithmetic.
constexpr double critical_batch(const Load& load, const Hardware& on,
                                Arithmetic in = Arithmetic::bf16) {
  return load.weight_bytes * on.flops(in) / (2 * load.parameters * on.bandwidth);
}
constexpr double critical_batch(Element weights, const Hardware& on,
                                Arithmetic in = Arithmetic::bf16) {
  return on.balance(in) * weights.bytes_per_value() / 2;
}
// Tokens per second that no batch exceeds while memory is the bound.
constexpr double throughput_limit(const Load& load, const Hardware& on) {
  return load.tokens * on.bandwidth / load.cache_bytes;
}
// The batch that reaches half of it: where the caches are as large as the weights.
constexpr double half_throughput_batch(const Load& load) {
  return load.weight_bytes / load.cache_bytes;
}

// The most sequences of `context` tokens whose caches fit beside the weights; 0 when not even the
// weights do, the largest Dim when a sequence takes nothing.
constexpr Dim largest_batch(const ModelSizes& m, Dim context, double memory) {
  const double room = memory - static_cast<double>(resident_bytes(m, 0, context));
  const Dim each = cache_bytes(m, context);
  if (room < 0) return 0;
  if (each == 0) return (std::numeric_limits<Dim>::max)();
  return static_cast<Dim>(room / static_cast<double>(each));
}
// The most tokens that `batch` sequences may have each, at most `limit`; 0 when none fits.
constexpr Dim longest_context(const ModelSizes& m, Dim batch, double memory,
                              Dim limit = Dim{1} << 24) {
  const double fixed = static_cast<double>(resident_bytes(m, 0, 0));
  const double sequences = static_cast<double>(batch);
  Dim low = 0, high = limit;
  while (low < high) {
    const Dim middle = low + (high - low + 1) / 2;
    if (fixed + sequences * static_cast<double>(cache_bytes(m, middle)) <= memory) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}
constexpr bool fits(const ModelSizes& m, Dim batch, Dim context, double memory) {
  return static_cast<double>(resident_bytes(m, batch, context)) <= memory;
}
// Whether weights and caches fit a machine: static_assert(fits<Laptop16G>(sizes, 4, 8192)). What a
// session needs as scratch is not counted.
template <class Machine>
constexpr bool fits(const ModelSizes& m, Dim batch = 1, Dim context = 0) {
  return fits(m, batch, context, Machine::hardware.memory);
}

}  // namespace tenon::inline TENON_ABI::cost
