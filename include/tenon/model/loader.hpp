#pragma once
// The visitor that fills weights from a checkpoint: every tensor found exactly once, every shape
// checked, nothing left over.
#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "../core/executor.hpp"
#include "../core/shared_pages.hpp"
#include "../io/ggml_types.hpp"
#include "../io/tensor_source.hpp"
#include "../kernels/packed.hpp"
#include "../nn/bind.hpp"
#include "../nn/rotary.hpp"
#include "bind_options.hpp"
#include "fingerprint.hpp"
#include "packed_file.hpp"

namespace tenon::inline TENON_ABI {

template <class Formats>
class Loader {
 public:
  Loader(const TensorSource& source, Executor& executor, const BindOptions& options = {})
      : source_(source),
        executor_(executor),
        progress_(options.progress, bytes_of(source)),
        packed_(source),
        log_(options.packed),
        outline_(options.outline) {
    if (options.verify) packed_.verify(source.origin(), executor);
  }

  // Prefix of the names that follow: "blk.3." or "".
  void within(std::string prefix) { prefix_ = std::move(prefix); }

  void matrix(std::string_view name, PackedMatrix<Formats>& to, Axis out, Axis in) {
    const Found found = need(full(name));
    check(found.tensor, {out, in});
    std::vector<PackedMatrix<Formats>> one;
    matrices(found, one, 1, out.size, in.size);
    to = std::move(one[0]);
  }

  // One matrix [out, in] after another, as experts and heads are stored: [count, out, in].
  void stack(std::string_view name, std::vector<PackedMatrix<Formats>>& to, Axis count, Axis out,
             Axis in) {
    const Found found = need(full(name));
    check(found.tensor, {count, out, in});
    matrices(found, to, static_cast<std::size_t>(count.size), out.size, in.size);
  }

  // The same rows of each part of [count x period, in] or [count, period, in], as matrices
  // [rows, in], or [in, rows] when transposed. Transposing tears blocks apart, so a block format is
  // then kept as floats, which is exact; ShapeError when the type's list has no F32.
  void slices(std::string_view name, std::vector<PackedMatrix<Formats>>& to, Axis count,
              const Slice& slice, Axis in) {
    const TensorInfo& tensor = need_whole(full(name));
    if (log_ != nullptr) log_->keep_apart(tensor.name);
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
    const TensorInfo& tensor = need_whole(full(name));
    check(tensor, {n});
    decode(tensor, n.size, to);
  }
  // One vector [n] after another: [count, n].
  void vectors(std::string_view name, std::vector<float>& to, Axis count, Axis n) {
    const TensorInfo& tensor = need_whole(full(name));
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
  // Bytes of the vectors: norms, biases and the like.
  std::size_t vector_bytes() const { return vector_bytes_; }
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
    vector_bytes_ += to.size() * sizeof(float);
    std::vector<std::byte> made(tensor.data.made() ? tensor.data.size() : 0);
    const auto bytes = read(tensor.data, made);
    FormatList<AnyOf<F32, F16, Bf16>>::visit(
        tag, [&]<class F>(F) { F::decode(bytes.data(), n, to.data()); });
    tensor.data.done(0, tensor.data.size());
    if (!tensor.data.made()) source_.done_with(bytes);
    count_bytes(tensor, tensor.data.size());
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
  // A tensor of the source and, when it is stored packed, how; then `tensor` describes the original
  // and has the packed bytes.
  struct Found {
    const TensorInfo& tensor;
    const PackedTensor* packed;
  };
  // Bytes on a cache line, and who keeps them.
  struct Kept {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  // The matrices [out, in] of a tensor, in one piece of memory as packed_file.hpp describes it.
  void matrices(const Found& found, std::vector<PackedMatrix<Formats>>& to, std::size_t count,
                Dim out, Dim in) {
    using Matrix = PackedMatrix<Formats>;
    const TensorInfo& tensor = found.tensor;
    const int tag = tag_of(tensor);
    const std::size_t bytes = Matrix::packed_bytes(tag, out, in);
    const std::size_t stride = count == 1 ? bytes : round_up(bytes, cache_line);
    const std::size_t whole = checked_multiply(count, stride);
    to.reserve(count);
    if (outline_) {
      if (found.packed != nullptr) check_packed(*found.packed, tag, whole);
      for (std::size_t i = 0; i < count; ++i) to.push_back(Matrix::outline(tag, out, in));
      bytes_ += count * bytes;
      return;
    }
    Kept kept;
    if (found.packed != nullptr) {
      check_packed(*found.packed, tag, whole);
      kept = keep(tensor.data);
      for (std::size_t i = 0; i < count; ++i) {
        to.push_back(Matrix::view(tag, kept.bytes.subspan(i * stride, bytes), out, in, kept.owner));
      }
      count_bytes(*found.packed->stored, whole);
    } else {
      const std::size_t each = tensor.data.size() / count;
      const SharedPages::Buffer buffer = SharedPages::take(whole);
      kept = {buffer.bytes, buffer.owner};
      for (std::size_t i = 0; i < count; ++i) {
        std::byte* at = buffer.bytes.data() + i * stride;
        std::fill(at + bytes, at + stride, std::byte{0});
        to.push_back(Matrix::pack_into({at, bytes}, buffer.owner, tag,
                                       tensor.data.subspan(i * each, each), out, in, executor_,
                                       part_of(tensor)));
        progress_.check();
      }
    }
    bytes_ += count * bytes;
    if (log_ == nullptr) return;
    PackedTensor made{tensor, nullptr, layout_of(tag), digest_of(found), 0};
    made.tensor.data = kept.bytes;
    log_->add(std::move(made), kept.owner);
  }
  void check_packed(const PackedTensor& packed, int tag, std::size_t bytes) {
    const TensorInfo& tensor = packed.tensor;
    if (tensor.data.size() != bytes) {
      fail<LoadError>(source_.origin(), ": packed tensor ", printable(tensor.name), " ",
                      shape_text(tensor.shape), " must have ", bytes, " bytes, it has ",
                      tensor.data.size(), "; pack the original checkpoint again");
    }
    if (packed.layout != layout_of(tag)) {
      fail<LoadError>(source_.origin(), ": packed tensor ", printable(tensor.name),
                      " must be arranged as this version of tenon arranges ",
                      type_name(tensor.ggml_type),
                      ", it is arranged otherwise; pack the original checkpoint again");
    }
  }
  std::uint64_t layout_of(int tag) {
    const auto [at, first] = layouts_.try_emplace(tag, 0);
    if (first) at->second = PackedMatrix<Formats>::layout_signature(tag);
    return at->second;
  }
  // The bytes themselves where the source keeps them, and on a cache line; else a copy.
  Kept keep(std::span<const std::byte> data) const {
    std::shared_ptr<const void> owner = source_.keep_alive();
    if (owner != nullptr && reinterpret_cast<std::uintptr_t>(data.data()) % cache_line == 0) {
      return {data, std::move(owner)};
    }
    const SharedPages::Buffer buffer = SharedPages::take(data.size());
    std::copy(data.begin(), data.end(), buffer.bytes.begin());
    return {buffer.bytes, buffer.owner};
  }
  // All of `bytes`: where they lie, or made in `to`, which has room for those that are not there.
  static std::span<const std::byte> read(const StoredBytes& bytes, std::vector<std::byte>& to) {
    return bytes.made() ? bytes.read(0, to) : std::span<const std::byte>(bytes);
  }
  // What to call for each part of a tensor's bytes that is packed.
  auto part_of(const TensorInfo& tensor) {
    return [this, made = tensor.data.made(),
            &left = left_.at(&tensor)](std::span<const std::byte> part) {
      if (!made) source_.done_with(part);
      return progress_.add(left, part.size());
    };
  }
  PackedMatrix<Formats> pack(const TensorInfo& tensor, const StoredBytes& data, Dim out, Dim in) {
    if (outline_) return outlined(tag_of(tensor), out, in);
    auto packed =
        PackedMatrix<Formats>::pack(tag_of(tensor), data, out, in, executor_, part_of(tensor));
    progress_.check();
    bytes_ += packed.bytes();
    return packed;
  }
  PackedMatrix<Formats> outlined(int tag, Dim out, Dim in) {
    auto matrix = PackedMatrix<Formats>::outline(tag, out, in);
    bytes_ += matrix.bytes();
    return matrix;
  }
  PackedMatrix<Formats> pack_transposed(const TensorInfo& tensor, const StoredBytes& part, Dim rows,
                                        Dim columns) {
    const int tag = tag_of(tensor);
    std::vector<std::byte> made(part.made() ? part.size() : 0);
    const auto data = read(part, made);
    std::vector<std::byte> turned;
    const int kept = FormatList<Formats>::visit(tag, [&]<class F>(F) {
      using To = std::conditional_t<F::block == 1, F, F32>;
      if (!outline_) transpose<F, To>(data, rows, columns, turned);
      return F::block == 1 ? tag : tag_of_ggml_type<Formats>(F32::ggml_type);
    });
    if (kept < 0) {
      fail<ShapeError>(source_.origin(), ": tensor ", tensor.name,
                       " is used transposed, so its blocks of type ", type_name(tensor.ggml_type),
                       " are kept as f32, which the model type must list besides ",
                       FormatList<Formats>::names(), "; add F32 to it");
    }
    if (outline_) return outlined(kept, columns, rows);
    auto packed = PackedMatrix<Formats>::pack(kept, turned, columns, rows, executor_);
    bytes_ += packed.bytes();
    count_bytes(tensor, data.size());
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
  void count_bytes(const TensorInfo& stored, std::size_t bytes) {
    progress_.add(left_.at(&stored), bytes);
    progress_.check();
  }
  static std::uint64_t digest_of(const Found& found) {
    return found.packed == nullptr ? tensor_digest(found.tensor) : found.packed->digest;
  }
  Found need(const std::string& name) {
    const TensorInfo* tensor = source_.find(name);
    if (tensor == nullptr) {
      fail<LoadError>(source_.origin(), ": tensor ", name,
                      " must be there for this model type, the file's ", source_.tensors().size(),
                      " tensors do not include it; convert the checkpoint again");
    }
    left_.emplace(tensor, tensor->data.size());
    const PackedTensor* packed = packed_.find(name);
    const Found found{packed == nullptr ? *tensor : packed->tensor, packed};
    if (!outline_) weights_checksum_.add(digest_of(found));
    return found;
  }
  // One in the file's own form.
  const TensorInfo& need_whole(const std::string& name) {
    const Found found = need(name);
    if (found.packed != nullptr) {
      fail<LoadError>(source_.origin(), ": tensor ", name,
                      " must be stored as in the original, because this model type takes it "
                      "apart, it is packed; pack the original checkpoint again");
    }
    return found.tensor;
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
  PackedFile packed_;
  PackedLog* log_;
  bool outline_;                                    // no matrix is read
  std::unordered_map<int, std::uint64_t> layouts_;  // by tag
  std::string prefix_;
  std::size_t bytes_ = 0, vector_bytes_ = 0;
  Checksum weights_checksum_;
  std::unordered_map<const TensorInfo*, std::size_t> left_;  // bytes, of the tensors asked for
  std::vector<RotaryFrequencies> rotaries_;
};

}  // namespace tenon::inline TENON_ABI
