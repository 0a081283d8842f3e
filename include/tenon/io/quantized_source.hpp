#pragma once
// A checkpoint whose matrices are encoded in another format while they are read.
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "../core/metadata.hpp"
#include "../core/stored_bytes.hpp"
#include "../quant/weight_format.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

// The matrices of `from` in format `to`, and everything else as it is. Matrices [out, in], and
// stacks of them, are those stored as f32, f16 or bf16 with rows of whole blocks, but for the
// routers of experts. They are made where they are read, by whoever reads them, so that a model
// bound to this never lies in memory in its first format. `from` must outlive it.
class QuantizedSource final : public TensorSource {
 public:
  QuantizedSource(const TensorSource& from, const WeightFormat& to);

  std::string_view origin() const override { return from_.origin(); }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override { return index_.find(name); }
  void done_with(std::span<const std::byte> part) const override { from_.done_with(part); }

 private:
  const TensorSource& from_;
  Metadata metadata_;
  std::vector<std::unique_ptr<const ByteMaker>> makers_;
  std::vector<TensorInfo> tensors_;
  TensorIndex index_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "quantized_source.inl"
#endif
