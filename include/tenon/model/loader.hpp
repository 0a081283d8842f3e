#pragma once
// The visitor that fills weights from a checkpoint: every tensor found exactly once, every shape
// checked, nothing left over.
#include <string>
#include <unordered_map>
#include <vector>

#include "../core/executor.hpp"
#include "../io/ggml_types.hpp"
#include "../io/tensor_source.hpp"
#include "../kernels/packed.hpp"
#include "../nn/bind.hpp"
#include "../nn/rotary.hpp"
#include "bind_options.hpp"
#include "fingerprint.hpp"

namespace tenon::inline TENON_ABI {

template <class Formats>
class Loader {
 public:
  Loader(const TensorSource& source, Executor& executor, const BindOptions& options = {})
      : source_(source), executor_(executor), progress_(options.progress, bytes_of(source)) {}

  // Prefix of the names that follow: "blk.3." or "".
  void within(std::string prefix) { prefix_ = std::move(prefix); }

  void matrix(std::string_view name, PackedMatrix<Formats>& to, Axis out, Axis in) {
    const TensorInfo& tensor = need(full(name));
    check(tensor, {out, in});
    to = pack(tensor, tensor.data, out.size, in.size);
  }

  // One matrix [out, in] after another, as experts and heads are stored: [count, out, in].
  void stack(std::string_view name, std::vector<PackedMatrix<Formats>>& to, Axis count, Axis out,
             Axis in) {
    const TensorInfo& tensor = need(full(name));
    check(tensor, {count, out, in});
    const std::size_t each = tensor.data.size() / static_cast<std::size_t>(count.size);
    to.reserve(static_cast<std::size_t>(count.size));
    for (std::size_t i = 0; i < static_cast<std::size_t>(count.size); ++i) {
      to.push_back(pack(tensor, tensor.data.subspan(i * each, each), out.size, in.size));
    }
  }

  // The same rows of each part of [count x period, in] or [count, period, in], as matrices
  // [rows, in], or [in, rows] when transposed. Transposing tears blocks apart, so a block format is
  // then kept as floats, which is exact; ShapeError when the type's list has no F32.
  void slices(std::string_view name, std::vector<PackedMatrix<Formats>>& to, Axis count,
              const Slice& slice, Axis in) {
    const TensorInfo& tensor = need(full(name));
    const std::string rows_origin = message(count.origin, " x (", slice.period.origin, ")");
    if (tensor.shape.size() == 3) {
      check(tensor, {count, slice.period, in});
    } else {
      check(tensor, {{count.size * slice.period.size, rows_origin}, in});
    }
    const std::size_t row =
        tensor.data.size() / static_cast<std::size_t>(count.size * slice.period.size);
    to.reserve(static_cast<std::size_t>(count.size));
    for (Dim i = 0; i < count.size; ++i) {
      const auto first = static_cast<std::size_t>(i * slice.period.size + slice.first);
      const auto part =
          tensor.data.subspan(first * row, static_cast<std::size_t>(slice.rows) * row);
      to.push_back(slice.transposed ? pack_transposed(tensor, part, slice.rows, in.size)
                                    : pack(tensor, part, slice.rows, in.size));
    }
  }

  void vector(std::string_view name, std::vector<float>& to, Axis n) {
    const TensorInfo& tensor = need(full(name));
    check(tensor, {n});
    decode(tensor, n.size, to);
  }
  // One vector [n] after another: [count, n].
  void vectors(std::string_view name, std::vector<float>& to, Axis count, Axis n) {
    const TensorInfo& tensor = need(full(name));
    check(tensor, {count, n});
    decode(tensor, count.size * n.size, to);
  }

  void optional_vector(std::string_view name, std::vector<float>& to, Axis n) {
    if (source_.find(full(name)) != nullptr) vector(name, to, n);
  }

  int rotary(RotaryFrequencies frequencies) {
    for (std::size_t i = 0; i < rotaries_.size(); ++i) {
      if (rotaries_[i] == frequencies) return static_cast<int>(i);
    }
    rotaries_.push_back(std::move(frequencies));
    return static_cast<int>(rotaries_.size()) - 1;
  }

  bool has(std::string_view name) const { return source_.find(full(name)) != nullptr; }
  // Bytes of the matrices packed so far.
  std::size_t bytes() const { return bytes_; }
  // Of all tensors read so far.
  const Checksum& weights_checksum() const { return weights_checksum_; }
  std::vector<RotaryFrequencies> take_rotaries() { return std::move(rotaries_); }

  // To be called last: the progress of the bind reaches its total.
  void finish() { progress_.finish(); }

  // LoadError when the checkpoint holds a tensor that nothing asked for.
  void refuse_unused() const {
    for (const TensorInfo& tensor : source_.tensors()) {
      if (left_.contains(&tensor)) continue;
      fail<LoadError>(source_.origin(), ": tensor ", printable(tensor.name), " ",
                      shape_text(tensor.shape),
                      " has no place in this model type, so the result would be "
                      "wrong without it; compose a type that uses it, or remove it from the file");
    }
  }

 private:
  static std::size_t bytes_of(const TensorSource& source) {
    std::size_t sum = 0;
    for (const TensorInfo& tensor : source.tensors()) sum += tensor.data.size();
    return sum;
  }
  std::string full(std::string_view name) const {
    if (name.starts_with('/')) return std::string(name.substr(1));
    if (name.ends_with(".bias")) return message(prefix_, name);
    return message(prefix_, name, ".weight");
  }
  void decode(const TensorInfo& tensor, Dim n, std::vector<float>& to) {
    const int tag = tag_of_ggml_type<AnyOf<F32, F16, Bf16>>(tensor.ggml_type);
    if (tag < 0) {
      fail<ShapeError>(source_.origin(), ": tensor ", tensor.name,
                       " must be stored as f32, f16 or bf16, it is ", type_name(tensor.ggml_type),
                       "; convert the checkpoint again");
    }
    to.resize(static_cast<std::size_t>(n));
    FormatList<AnyOf<F32, F16, Bf16>>::visit(
        tag, [&]<class F>(F) { F::decode(tensor.data.data(), n, to.data()); });
    count(tensor, tensor.data.size());
  }
  int tag_of(const TensorInfo& tensor) const {
    const int tag = tag_of_ggml_type<Formats>(tensor.ggml_type);
    if (tag < 0) {
      fail<ShapeError>(source_.origin(), ": tensor ", tensor.name, " must be stored as one of ",
                       FormatList<Formats>::names(), " for this model type, it is ",
                       type_name(tensor.ggml_type),
                       "; add the format to the type's list or convert the file");
    }
    return tag;
  }
  PackedMatrix<Formats> pack(const TensorInfo& tensor, std::span<const std::byte> data, Dim out,
                             Dim in) {
    std::size_t& left = left_.at(&tensor);
    auto packed = PackedMatrix<Formats>::pack(tag_of(tensor), data, out, in, executor_,
                                              [&](std::span<const std::byte> part) {
                                                source_.done_with(part);
                                                return progress_.add(left, part.size());
                                              });
    progress_.check();
    bytes_ += packed.bytes();
    return packed;
  }
  PackedMatrix<Formats> pack_transposed(const TensorInfo& tensor, std::span<const std::byte> data,
                                        Dim rows, Dim columns) {
    const int tag = tag_of(tensor);
    std::vector<std::byte> turned;
    const int kept = FormatList<Formats>::visit(tag, [&]<class F>(F) {
      if constexpr (F::block == 1) {
        transpose<F, F>(data, rows, columns, turned);
        return tag;
      } else {
        transpose<F, F32>(data, rows, columns, turned);
        return tag_of_ggml_type<Formats>(F32::ggml_type);
      }
    });
    if (kept < 0) {
      fail<ShapeError>(source_.origin(), ": tensor ", tensor.name,
                       " is used transposed, so its blocks of type ", type_name(tensor.ggml_type),
                       " are kept as f32, which the model type must list besides ",
                       FormatList<Formats>::names(), "; add F32 to it");
    }
    auto packed = PackedMatrix<Formats>::pack(kept, turned, columns, rows, executor_);
    bytes_ += packed.bytes();
    count(tensor, data.size());
    return packed;
  }
  // [rows, columns] of F -> [columns, rows] of To, which holds every value of F exactly.
  template <class F, class To>
  static void transpose(std::span<const std::byte> data, Dim rows, Dim columns,
                        std::vector<std::byte>& turned) {
    static_assert(To::block == 1);
    std::vector<float> values(static_cast<std::size_t>(columns));
    turned.resize(static_cast<std::size_t>(rows * columns) * To::block_bytes);
    for (Dim r = 0; r < rows; ++r) {
      const std::byte* row = data.data() + static_cast<std::size_t>(r) * row_bytes<F>(columns);
      decode_part<F>(row, 0, columns, values.data());
      for (Dim c = 0; c < columns; ++c) {
        To::encode(values.data() + c, 1,
                   turned.data() + static_cast<std::size_t>(c * rows + r) * To::block_bytes);
      }
    }
  }
  void count(const TensorInfo& tensor, std::size_t bytes) {
    progress_.add(left_.at(&tensor), bytes);
    progress_.check();
  }
  const TensorInfo& need(const std::string& name) {
    const TensorInfo* tensor = source_.find(name);
    if (tensor == nullptr) {
      fail<LoadError>(source_.origin(), ": tensor ", name,
                      " must be there for this model type, the file's ", source_.tensors().size(),
                      " tensors do not include it; convert the checkpoint again");
    }
    left_.emplace(tensor, tensor->data.size());
    add_tensor(weights_checksum_, *tensor);
    return *tensor;
  }
  void check(const TensorInfo& tensor, std::initializer_list<Axis> axes) const {
    std::vector<Dim> wanted;
    std::string origins;
    for (const Axis& axis : axes) {
      wanted.push_back(axis.size);
      origins += message(origins.empty() ? "" : ", ", axis.origin);
    }
    if (wanted == tensor.shape) return;
    fail<ShapeError>(source_.origin(), ": tensor ", tensor.name, " must have shape ",
                     shape_text(wanted), " ([", origins, "] of the metadata), the file has ",
                     shape_text(tensor.shape), "; metadata and tensors do not belong together");
  }
  static std::string type_name(int ggml_type) {
    const GgmlType* type = find_ggml_type(ggml_type);
    return type == nullptr ? message("ggml type ", ggml_type) : std::string(type->name);
  }

  const TensorSource& source_;
  Executor& executor_;
  BindProgress progress_;
  std::string prefix_;
  std::size_t bytes_ = 0;
  Checksum weights_checksum_;
  std::unordered_map<const TensorInfo*, std::size_t> left_;  // bytes, of the tensors asked for
  std::vector<RotaryFrequencies> rotaries_;
};

}  // namespace tenon::inline TENON_ABI
