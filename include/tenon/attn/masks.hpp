#pragma once
// The masks that models use.
#include "../core/config.hpp"
#include "mask.hpp"

namespace tenon::inline TENON_ABI {

// Every token sees itself and what came before.
struct Causal {
  static constexpr bool bounded = false, looks_ahead = false;
  static constexpr Causal read(const ModelConfig& config, int) {
    if (!config.flag_or("attention.causal", true)) {
      fail<LoadError>(
          "metadata key \"", config.architecture,
          ".attention.causal\" must be true for this model type, it is false; compose the model "
          "with another mask");
    }
    return {};
  }
  constexpr Rows reach(Rows queries, int) const { return {0, queries.high}; }
  constexpr Coverage classify(Rows queries, Rows keys) const {
    if (keys.low >= queries.high) return Coverage::skip;
    return keys.high <= queries.low + 1 ? Coverage::full : Coverage::partial;
  }
  constexpr bool keep(int query, int key) const { return key <= query; }
  constexpr std::uint64_t keep_bits(int query, int first) const {
    return bit_range(0, query + 1 - first);
  }
};

// Every token sees the last `window` tokens, itself included (arXiv 2310.06825), and besides the
// first `sinks` of the sequence (arXiv 2309.17453).
struct SlidingWindow {
  static constexpr bool bounded = true, looks_ahead = false;
  int window = 1, sinks = 0;

  // A checkpoint without a window, or with one of 0, asks for a Causal mask instead.
  static constexpr bool fits(const ModelConfig& config, int layer) {
    return config.has("attention.sliding_window") &&
           config.number("attention.sliding_window", layer) > 0;
  }
  static constexpr SlidingWindow read(const ModelConfig& config, int layer) {
    if (!config.has("attention.sliding_window")) {
      fail<LoadError>("metadata key \"", config.architecture,
                      ".attention.sliding_window\" must be there for a SlidingWindow, it is not; "
                      "compose the model with Causal, or with a FixedWindow of your own size");
    }
    SlidingWindow mask;
    mask.window = rows(config, "attention.sliding_window", layer);
    if (config.number_or("attention.sink_count", 0, layer) != 0) {
      mask.sinks = rows(config, "attention.sink_count", layer);
    }
    return mask;
  }
  constexpr int rows_back() const { return window; }
  constexpr int first_rows() const { return sinks; }
  constexpr Rows reach(Rows queries, int) const {
    return {(std::max)(0, queries.low - window + 1), queries.high};
  }
  constexpr Coverage classify(Rows queries, Rows keys) const {
    if (keys.low >= queries.high) return Coverage::skip;
    if (keys.high > queries.low + 1) return Coverage::partial;
    if (keys.low > queries.high - 1 - window || keys.high <= sinks) return Coverage::full;
    return keys.high <= queries.low - window + 1 && keys.low >= sinks ? Coverage::skip
                                                                      : Coverage::partial;
  }
  constexpr bool keep(int query, int key) const {
    return key <= query && (key > query - window || key < sinks);
  }
  constexpr std::uint64_t keep_bits(int query, int first) const {
    const std::uint64_t recent = bit_range(query - window + 1 - first, query + 1 - first);
    return recent | bit_range(0, (std::min)(sinks, query + 1) - first);
  }

 private:
  // More rows than any context has are all of them.
  static constexpr int rows(const ModelConfig& config, std::string_view key, int layer) {
    return static_cast<int>((std::min)(config.size(key, layer), Dim{1} << 29));
  }
};

// A SlidingWindow of these sizes, whatever the file says.
template <int Window, int Sinks = 0>
struct FixedWindow : SlidingWindow {
  static_assert(Window >= 1 && Sinks >= 0, "tenon: FixedWindow sees at least one token");
  static constexpr bool fits(const ModelConfig&, int) { return true; }
  static constexpr FixedWindow read(const ModelConfig&, int) { return {{Window, Sinks}}; }
};

// A SlidingWindow in files that state one, and all that came before in files that do not.
struct StatedWindow : SlidingWindow {
  static constexpr bool fits(const ModelConfig&, int) { return true; }
  static constexpr StatedWindow read(const ModelConfig& config, int layer) {
    if (SlidingWindow::fits(config, layer)) return {SlidingWindow::read(config, layer)};
    return {{1 << 29, 0}};
  }
};

// Every token sees every other: encoders and diffusion models.
struct Bidirectional {
  static constexpr bool bounded = false, looks_ahead = true;
  static constexpr Bidirectional read(const ModelConfig& config, int) {
    if (config.flag_or("attention.causal", false)) {
      fail<LoadError>(
          "metadata key \"", config.architecture,
          ".attention.causal\" must be false for this model type, it is true; compose the model "
          "with a causal mask");
    }
    return {};
  }
  constexpr bool complete(int base, int) const { return base == 0; }
  constexpr Rows reach(Rows, int cached) const { return {0, cached}; }
  constexpr Coverage classify(Rows, Rows) const { return Coverage::full; }
  constexpr bool keep(int, int) const { return true; }
  constexpr std::uint64_t keep_bits(int, int) const { return ~std::uint64_t{0}; }
};

// Blocks of `block` tokens in causal order; inside a block every token sees every other
// (arXiv 2503.09573). A block may only be the last one when it is not full.
struct BlockCausal {
  static constexpr bool bounded = false, looks_ahead = true;
  int block = 1;

  static constexpr BlockCausal read(const ModelConfig& config, int layer) {
    return {static_cast<int>(config.size("attention.block_length", layer))};
  }
  constexpr bool complete(int base, int) const { return base % block == 0; }
  constexpr Rows reach(Rows queries, int cached) const {
    return {0, (std::min)(cached, end_of_block(queries.high - 1))};
  }
  constexpr Coverage classify(Rows queries, Rows keys) const {
    if (keys.low >= end_of_block(queries.high - 1)) return Coverage::skip;
    return keys.high <= end_of_block(queries.low) ? Coverage::full : Coverage::partial;
  }
  constexpr bool keep(int query, int key) const { return key < end_of_block(query); }
  constexpr std::uint64_t keep_bits(int query, int first) const {
    return bit_range(0, end_of_block(query) - first);
  }

 private:
  constexpr int end_of_block(int row) const { return (row / block + 1) * block; }
};

}  // namespace tenon::inline TENON_ABI
