#pragma once
// What a conversion gives: a checkpoint, and a receipt that says what was lost and what was saved.
#include <iomanip>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "../core/config.hpp"
#include "divergence.hpp"
#include "edited_source.hpp"

namespace tenon::inline TENON_ABI {

// Bytes of cached keys and values of one sequence at 16 bits a value: those that every token adds,
// and those that windows and sinks fill once.
struct CacheCost {
  Dim per_token = 0, fixed = 0;
  bool operator==(const CacheCost&) const = default;
};

// ||after - before|| / ||before|| (Frobenius) of the keys and values of a layer.
struct LayerError {
  int layer = 0;
  double keys = 0, values = 0;
};

struct ConversionReport {
  std::string conversion;  // "to_gqa: 2 key/value heads"
  // Of the outputs on a text's vectors, before their rotation, or of the weights. Only layers whose
  // keys or values were changed.
  bool on_text = false;
  std::vector<LayerError> layers;
  CacheCost before, after;
  // Not known to the conversion: set it to the divergence() of the two bound models.
  std::optional<TextDivergence> text;
};

struct Conversion {
  EditedSource source;
  ConversionReport report;
};

// A small table; numbers in scientific notation where they are errors.
inline void print(std::ostream& out, const ConversionReport& report) {
  const auto flags = out.flags();
  const auto precision = out.precision();
  out << report.conversion << '\n';
  const auto cost = [&](const char* when, const CacheCost& c) {
    out << "  cache " << when << ": " << c.per_token << " bytes per token";
    if (c.fixed > 0) out << " and " << c.fixed << " bytes per sequence";
    out << " (16-bit)\n";
  };
  cost("before", report.before);
  cost("after", report.after);
  if (!report.layers.empty()) {
    out << "  relative error of " << (report.on_text ? "outputs on the text" : "weights")
        << "\n  layer      keys    values\n"
        << std::scientific << std::setprecision(2);
    for (const LayerError& layer : report.layers) {
      out << std::setw(7) << layer.layer << std::setw(10) << layer.keys << std::setw(10)
          << layer.values << '\n';
    }
  }
  if (report.text) {
    const TextDivergence& text = *report.text;
    out << std::scientific << std::setprecision(3) << "  on " << text.tokens
        << " tokens: KL(before || after) " << text.kl << " nats/token, perplexity " << std::fixed
        << std::setprecision(4) << text.perplexity_before() << " -> " << text.perplexity_after()
        << '\n';
  }
  out.flags(flags);
  out.precision(precision);
}

}  // namespace tenon::inline TENON_ABI
