#pragma once
// What a GGUF file may hold. Reader and writer share it, so what one writes the other reads.
// Source: docs/gguf.md of the ggml project.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <variant>

#include "../core/error.hpp"
#include "../core/metadata.hpp"
#include "../core/types.hpp"
#include "../core/utf8.hpp"
#include "ggml_types.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

struct GgufFormat {
  static constexpr std::string_view magic = "GGUF";
  static constexpr std::uint32_t version = 3;         // what is written
  static constexpr std::uint32_t oldest_version = 2;  // differs from 3 in name only
  static constexpr std::string_view alignment_key = "general.alignment";
  static constexpr std::uint64_t default_alignment = 32;
  static constexpr std::uint64_t least_alignment = 8;
  static constexpr std::uint64_t most_alignment = std::uint64_t{1} << 20;
  static constexpr std::size_t most_rank = 4;
  static constexpr std::size_t longest_name = 65535;
  // Real files have under 200. The bound keeps keys chosen to collide in Metadata's hash harmless.
  static constexpr std::uint64_t most_keys = 4096;
  // Bytes of the shortest possible entry: a one-letter key with a one-byte value, and a one-letter
  // name with rank, one size, type and offset.
  static constexpr std::uint64_t least_key_bytes = 8 + 1 + 4 + 1;
  static constexpr std::uint64_t least_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;
};

// Throws E unless `name` (what: "a tensor name", "a metadata key") is 1 to 65535 bytes of UTF-8.
template <class E>
void check_gguf_name(std::string_view origin, std::string_view what, std::string_view name) {
  if (name.empty() || name.size() > GgufFormat::longest_name) {
    fail<E>(origin, ": ", what, " must have 1 to ", GgufFormat::longest_name, " bytes, \"",
            printable(name), "\" has ", name.size(), "; rename it and write the file again");
  }
  if (!is_utf8(name)) {
    fail<E>(origin, ": ", what, " must be UTF-8, \"", printable(name),
            "\" is not; rename it and write the file again");
  }
}

// The alignment of tensor data that the metadata asks for; throws E when it cannot be meant.
template <class E>
std::uint64_t gguf_alignment(std::string_view origin, const Metadata& metadata) {
  const MetaValue* value = metadata.find(GgufFormat::alignment_key);
  if (value == nullptr) return GgufFormat::default_alignment;
  const auto* bytes = std::get_if<std::uint64_t>(&value->data);
  if (value->type != MetaType::u32 || bytes == nullptr) {
    fail<E>(origin, ": ", GgufFormat::alignment_key, " must be a u32, it is of type ",
            value->type_name(), "; write the file again with a u32, or without the key for ",
            GgufFormat::default_alignment);
  }
  if (!std::has_single_bit(*bytes) || *bytes < GgufFormat::least_alignment ||
      *bytes > GgufFormat::most_alignment) {
    fail<E>(origin, ": ", GgufFormat::alignment_key, " must be a power of two from ",
            GgufFormat::least_alignment, " to ", GgufFormat::most_alignment, ", it is ", *bytes,
            "; write the file again with ", GgufFormat::default_alignment);
  }
  return *bytes;
}

// Bytes of a tensor of that type and shape (slowest axis first); throws E, naming the tensor, when
// the type is unknown, the rank is not 1 to 4, a size is below 1, a row is not a whole number of
// blocks, or the bytes do not fit 64 bits.
template <class E>
std::uint64_t gguf_tensor_bytes(std::string_view origin, std::string_view name, int type,
                                std::span<const Dim> shape) {
  const auto refuse = [&](const auto&... parts) {
    fail<E>(origin, ": tensor \"", printable(name), "\" ", parts...,
            "; the file or its converter is at fault, write it again");
  };
  const GgmlType* known = find_ggml_type(type);
  if (known == nullptr) refuse("must have a ggml type this version knows, it has type ", type);
  if (shape.empty() || shape.size() > GgufFormat::most_rank) {
    refuse("must have 1 to ", GgufFormat::most_rank, " axes, it has ", shape.size());
  }
  for (const Dim size : shape) {
    if (size < 1) refuse("must have sizes of at least 1, its shape is ", shape_text(shape));
  }
  if (shape.back() % known->block != 0) {
    refuse("must have rows of a multiple of ", known->block, " values for type ", known->name,
           ", its shape is ", shape_text(shape));
  }
  std::uint64_t bytes = known->block_bytes;
  const auto multiply = [&](Dim size) {
    const auto factor = static_cast<std::uint64_t>(size);  // at least 1
    if (bytes > (std::numeric_limits<std::uint64_t>::max)() / factor) {
      refuse("must have a size below 2^64 bytes, its shape is ", shape_text(shape), " of type ",
             known->name);
    }
    bytes *= factor;
  };
  multiply(shape.back() / known->block);
  for (const Dim size : shape.first(shape.size() - 1)) multiply(size);
  return bytes;
}

}  // namespace tenon::inline TENON_ABI
