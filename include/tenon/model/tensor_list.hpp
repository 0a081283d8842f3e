#pragma once
// The visitor that lists the tensors of a model instead of reading them: what a checkpoint must
// hold, known from the type and its configuration alone.
#include <string>
#include <vector>

#include "../kernels/packed.hpp"
#include "../nn/bind.hpp"
#include "../nn/rotary.hpp"

namespace tenon::inline TENON_ABI {

// A tensor as it lies in the file, the slowest axis first.
struct ListedTensor {
  std::string name;
  std::vector<Dim> shape;
  bool linear = false;  // a weight of a linear layer or an embedding, else a vector
};

template <class Formats>
class TensorList {
 public:
  using Matrix = PackedMatrix<Formats>;
  // Optional tensors are left out, but those named here, in full.
  explicit TensorList(std::vector<std::string> with = {}) : with_(std::move(with)) {}

  const std::vector<ListedTensor>& tensors() const { return tensors_; }

  void within(std::string prefix) { prefix_ = std::move(prefix); }
  void matrix(std::string_view name, Matrix&, Axis out, Axis in) {
    list(name, {out.size, in.size}, true);
  }
  void stack(std::string_view name, std::vector<Matrix>& to, Axis count, Axis out, Axis in) {
    list(name, {count.size, out.size, in.size}, true);
    to.resize(static_cast<std::size_t>(count.size));
  }
  void slices(std::string_view name, std::vector<Matrix>& to, Axis count, const Slice& slice,
              Axis in) {
    list(name, {count.size * slice.period.size, in.size}, true);
    to.resize(static_cast<std::size_t>(count.size));
  }
  void vector(std::string_view name, std::vector<float>& to, Axis n) {
    list(name, {n.size}, false);
    to.assign(static_cast<std::size_t>(n.size), 1.0f);
  }
  void vectors(std::string_view name, std::vector<float>& to, Axis count, Axis n) {
    list(name, {count.size, n.size}, false);
    to.assign(static_cast<std::size_t>(count.size * n.size), 1.0f);
  }
  void optional_vector(std::string_view name, std::vector<float>& to, Axis n) {
    if (has(name)) vector(name, to, n);
  }
  int rotary(const RotaryFrequencies&) { return 0; }
  bool has(std::string_view name) const {
    return std::find(with_.begin(), with_.end(), full(name)) != with_.end();
  }

 private:
  std::string full(std::string_view name) const {
    if (name.starts_with('/')) return std::string(name.substr(1));
    if (name.ends_with(".bias")) return message(prefix_, name);
    return message(prefix_, name, ".weight");
  }
  // Several slices may be of one tensor.
  void list(std::string_view name, std::vector<Dim> shape, bool linear) {
    std::string whole = full(name);
    for (const ListedTensor& tensor : tensors_) {
      if (tensor.name == whole) return;
    }
    tensors_.push_back({std::move(whole), std::move(shape), linear});
  }

  std::vector<std::string> with_;
  std::string prefix_;
  std::vector<ListedTensor> tensors_;
};

}  // namespace tenon::inline TENON_ABI
