#pragma once
#include <utility>

#include "../quant/dense.hpp"
#include "gguf_file_types.hpp"
#include "quantized_source.hpp"
#include "tensor_makers.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {

// Whole blocks of a format, of numbers without blocks.
class Encoded final : public ByteMaker {
 public:
  using Decode = void (*)(const std::byte*, Dim, float*);
  Encoded(MakerInput from, Decode decode, std::size_t from_bytes, const WeightFormat& to)
      : from_(std::move(from)), decode_(decode), from_bytes_(from_bytes), to_(to) {}

  void make(std::size_t first, std::span<std::byte> to) const noexcept override {
    std::byte one[most_block_bytes];
    make_units(first, to, to_.block_bytes, static_cast<std::size_t>(most / to_.block), one,
               [&](std::size_t unit, std::size_t count, std::byte* at) {
                 std::byte stored[most * 4];
                 float values[most];
                 const auto n = static_cast<std::size_t>(to_.block) * count;
                 const auto from =
                     from_.bytes.read(unit * static_cast<std::size_t>(to_.block) * from_bytes_,
                                      {stored, n * from_bytes_});
                 decode_(from.data(), static_cast<Dim>(n), values);
                 to_.encode(values, static_cast<Dim>(n), at);
               });
  }
  void done(std::size_t first, std::size_t count) const noexcept override {
    const std::size_t from = first / to_.block_bytes, to = (first + count) / to_.block_bytes;
    const std::size_t block = static_cast<std::size_t>(to_.block) * from_bytes_;
    if (from < to) from_.done(from * block, (to - from) * block);
  }

  static constexpr Dim most = 1024;  // values at a time
  static constexpr std::size_t most_block_bytes = 1024;

 private:
  MakerInput from_;
  Decode decode_;
  std::size_t from_bytes_;
  const WeightFormat& to_;
};

}  // namespace detail

TENON_INLINE QuantizedSource::QuantizedSource(const TensorSource& from, const WeightFormat& to)
    : from_(from), metadata_(from.metadata()) {
  if (to.block < 1 || detail::Encoded::most % to.block != 0 || to.encode == nullptr ||
      to.block_bytes == 0 || to.block_bytes > detail::Encoded::most_block_bytes) {
    fail<RequestError>(
        "the format to quantize to must have blocks of a power of two values, at "
        "most ",
        detail::Encoded::most, ", those of ", to.name, " have ", to.block, "; use another");
  }
  metadata_.set("general.file_type", gguf_file_type(to.name));
  metadata_.set("general.quantization_version", std::uint32_t{2});
  tensors_.assign(from.tensors().begin(), from.tensors().end());
  for (TensorInfo& tensor : tensors_) {
    const bool matrix = (tensor.shape.size() == 2 || tensor.shape.size() == 3) &&
                        tensor.shape.back() % to.block == 0 &&
                        !tensor.name.ends_with("ffn_gate_inp.weight");
    const int type = tensor.ggml_type;
    const bool dense = type == F32::ggml_type || type == F16::ggml_type || type == Bf16::ggml_type;
    if (!matrix || !dense || type == to.ggml_type) continue;
    const std::size_t each = type == F32::ggml_type ? 4 : 2;
    const std::size_t blocks = tensor.data.size() / each / static_cast<std::size_t>(to.block);
    MakerInput input{tensor.data, [&source = from_](std::span<const std::byte> part) {
                       source.done_with(part);
                     }};
    makers_.push_back(std::make_unique<const detail::Encoded>(std::move(input),
                                                              type == F32::ggml_type ? F32::decode
                                                              : type == F16::ggml_type
                                                                  ? F16::decode
                                                                  : Bf16::decode,
                                                              each, to));
    tensor.ggml_type = to.ggml_type;
    tensor.data = StoredBytes(*makers_.back(), checked_multiply(blocks, to.block_bytes));
  }
  index_ = TensorIndex(tensors_, from.origin());
}

}  // namespace tenon::inline TENON_ABI
