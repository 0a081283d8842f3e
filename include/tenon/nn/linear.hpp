#pragma once
// A linear layer with its optional bias.
#include <string>
#include <vector>

#include "../core/error.hpp"
#include "../kernels/cpu.hpp"
#include "bind.hpp"

namespace tenon::inline TENON_ABI {

// y = x W^T + b. Several that share an input go to one Cpu::linear call.
template <class Formats>
struct Linear {
  PackedMatrix<Formats> weight;  // [out, in]
  std::vector<float> bias;       // [out], or empty

  template <class Visitor>
  void visit(Visitor&& visitor, std::string_view name, Axis out, Axis in) {
    visitor.matrix(name, weight, out, in);
    visitor.optional_vector(message(name, ".bias"), bias, out);
  }
  LinearOutput<Formats> into(MatView<float> y, bool accumulate = false) const {
    return {&weight, y, accumulate, bias.empty() ? nullptr : bias.data()};
  }
};

}  // namespace tenon::inline TENON_ABI
