#pragma once
// What a checkpoint stores its weights in, as cost/ takes it.
#include "../io/tensor_source.hpp"
#include "composition.hpp"

namespace tenon::inline TENON_ABI::cost {

// The formats that most bytes of layers and of experts are in, those of embedding and output, and
// whether there is an output; nothing of the cache.
Storage storage_of(const TensorSource& file);

// Where `file` mixes formats, bytes of the matrices of layers and of experts become its average,
// rounded to bytes of 1024 values: every layer then takes the same, which is true of all together.
void average_mixtures(ModelSizes& sizes, const TensorSource& file);

}  // namespace tenon::inline TENON_ABI::cost

#if !defined(TENON_COMPILED)
#include "stored.inl"
#endif
