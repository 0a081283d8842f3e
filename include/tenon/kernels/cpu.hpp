#pragma once
// The CPU backend: the operations that layers are written in. A measuring one computes nothing and
// records the scratch that a step takes, so that a session can allocate it once.
#include <algorithm>
#include <initializer_list>
#include <span>

#include "../core/cost_counter.hpp"
#include "../core/executor.hpp"
#include "../core/memory.hpp"
#include "../tensor/view.hpp"
#include "attention_ops.hpp"
#include "linear.hpp"
#include "row_ops.hpp"

namespace tenon::inline TENON_ABI {

class Cpu {
 public:
  // The executor and the workspace must outlive it.
  Cpu(Isa isa, Activations activations, Executor& executor, Workspace& workspace)
      : isa_(isa),
        activations_(activations),
        executor_(executor),
        workspace_(workspace),
        rows_(tenon::row_ops(isa)),
        attention_(tenon::attention_ops(isa)) {}

  Isa isa() const { return isa_; }
  Activations activations() const { return activations_; }
  int threads() const { return executor_.threads(); }
  Workspace& workspace() { return workspace_; }
  bool measuring() const { return workspace_.measuring(); }
  const RowOps& rows() const { return rows_; }
  const AttentionOps& attention() const { return attention_; }

  // Scratch of the current frame: [rows, columns], uninitialised.
  MatView<float> take_matrix(Dim rows, Dim columns) {
    return matrix(workspace_.take<float>(rows * columns), rows, columns);
  }

  // Runs work({index, count}) on every thread, or on this one alone when `operations` (a rough
  // count) is too few to be worth waking anybody. Results must not depend on the division.
  template <class Fn>
  void parallel(Dim operations, Fn&& work) {
    if (executor_.threads() == 1 || operations < worth_waking) {
      work(Worker{0, 1});
    } else {
      executor_.run(work);
    }
  }
  // fn(row) for every row below `rows`; `each` is the rough count of operations of one row.
  template <class Fn>
  void each_row(Dim rows, Dim each, Fn&& fn) {
    if (measuring()) return;
    parallel(rows > 1 ? rows * each : 0, [&](Worker worker) {
      const Range mine = share(rows, worker);
      for (Dim row = mine.begin; row < mine.end; ++row) fn(row);
    });
  }

  // A vector of n floats is read: counted, where anything is.
  void reads_vector(Dim n) const {
    if constexpr (counts_cost) {
      if (!workspace_.measuring()) CostCounter::add(CostPart::linear, 0, n * Dim{sizeof(float)});
    }
  }

  void rms_norm(MatView<const float> x, const float* gain, float epsilon, MatView<float> y) {
    reads_vector(x.extent(1));
    each_row(x.extent(0), x.extent(1) * 4,
             [&](Dim row) { rows_.rms_norm(x.row(row), gain, x.extent(1), epsilon, y.row(row)); });
  }

  // to = from, both [rows, columns].
  void copy(MatView<const float> from, MatView<float> to) {
    each_row(to.extent(0), to.extent(1),
             [&](Dim row) { std::copy_n(from.row(row), to.extent(1), to.row(row)); });
  }
  // to += from, both [rows, columns].
  void add(MatView<const float> from, MatView<float> to) {
    each_row(to.extent(0), to.extent(1),
             [&](Dim row) { rows_.add_to(from.row(row), to.extent(1), to.row(row)); });
  }

  // Linear weights that share the input x [tokens, in]; see linear.hpp.
  template <class Formats>
  void linear(MatView<const float> x, std::initializer_list<LinearOutput<Formats>> outputs) {
    linear<Formats>(x, outputs, activations_);
  }
  // The same with activations that do not depend on the session's choice.
  template <class Formats>
  void linear(MatView<const float> x, std::initializer_list<LinearOutput<Formats>> outputs,
              Activations activations) {
    const auto frame = workspace_.frame();
    const Dim tokens = x.extent(0), in = x.extent(1);
    auto* memory = workspace_.take<std::byte>(QuantizedRows::bytes(tokens, in));
    if (measuring()) return;
    tenon::linear<Formats>(executor_, isa_, x, std::span(outputs.begin(), outputs.size()),
                           activations, QuantizedRows::carve(memory, tokens, in));
    for (const LinearOutput<Formats>& output : outputs) {
      if (output.bias == nullptr) continue;
      const Dim out = output.weight->out();
      each_row(tokens, out, [&](Dim row) { rows_.add_to(output.bias, out, output.y.row(row)); });
    }
  }

  // Groups of rows of x [rows, in] that have weights of their own; measuring needs none of them.
  template <class Formats>
  void linear_groups(MatView<const float> x, std::span<const LinearGroup<Formats>> groups) {
    const auto frame = workspace_.frame();
    const Dim rows = x.extent(0), in = x.extent(1);
    auto* memory = workspace_.take<std::byte>(QuantizedRows::bytes(rows, in));
    if (measuring()) return;
    tenon::linear_groups<Formats>(executor_, isa_, x, groups, activations_,
                                  QuantizedRows::carve(memory, rows, in));
  }

  // One matrix [out, in] for each head: head h reads `in` columns of x [tokens, .] from h *
  // x_stride on and writes `out` columns of y [tokens, .] from h * y_stride on. Threads share the
  // heads.
  template <class Formats>
  void linear_heads(std::span<const PackedMatrix<Formats>> weights, MatView<const float> x,
                    Dim x_stride, MatView<float> y, Dim y_stride) {
    const auto frame = workspace_.frame();
    const auto heads = static_cast<Dim>(weights.size());
    const Dim tokens = x.extent(0), in = weights[0].in();
    const Dim gathered = round_up(tokens * in, Dim{16});
    const Dim quantized = QuantizedRows::bytes(tokens, in);
    auto* floats = workspace_.take<float>(gathered * threads());
    auto* bytes = workspace_.take<std::byte>(quantized * threads());
    if (measuring()) return;
    parallel(heads * tokens * in * weights[0].out(), [&](Worker worker) {
      const auto mine = matrix(floats + gathered * worker.index, tokens, in);
      const auto scratch = QuantizedRows::carve(bytes + quantized * worker.index, tokens, in);
      SerialExecutor alone;
      const Range range = share(heads, worker);
      for (Dim h = range.begin; h < range.end; ++h) {
        for (Dim t = 0; t < tokens; ++t) std::copy_n(x.row(t) + h * x_stride, in, mine.row(t));
        const LinearOutput<Formats> output{&weights[static_cast<std::size_t>(h)],
                                           matrix(y.data + h * y_stride, tokens, y.extent(1))};
        tenon::linear<Formats>(alone, isa_, mine, {&output, 1}, activations_, scratch);
      }
    });
  }

 private:
  static constexpr Dim worth_waking = 65536;

  Isa isa_;
  Activations activations_;
  Executor& executor_;
  Workspace& workspace_;
  const RowOps& rows_;
  const AttentionOps& attention_;
};

}  // namespace tenon::inline TENON_ABI
