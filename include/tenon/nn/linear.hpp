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
  // The same of rows [first, first + out) of a tensor [whole, in] that several layers share.
  template <class Visitor>
  void visit_rows(Visitor&& visitor, std::string_view name, Axis whole, Dim first, Axis out,
                  Axis in) {
    std::vector<PackedMatrix<Formats>> part;
    visitor.slices(name, part, {1, "1"}, Slice{whole, first, out.size, false}, in);
    weight = std::move(part[0]);
    std::vector<float> all;
    visitor.optional_vector(message(name, ".bias"), all, whole);
    if (!all.empty()) bias.assign(all.begin() + first, all.begin() + first + out.size);
  }
  LinearOutput<Formats> into(MatView<float> y, bool accumulate = false) const {
    return {&weight, y, accumulate, bias.empty() ? nullptr : bias.data()};
  }
};

}  // namespace tenon::inline TENON_ABI
