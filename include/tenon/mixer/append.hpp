#pragma once
// Writing a step's new rows into a cache.
#include "../cache/row_cache.hpp"
#include "../core/batch.hpp"
#include "../kernels/cpu.hpp"
#include "../kernels/row_codec.hpp"

namespace tenon::inline TENON_ABI {

// rows [tokens, width of the plane] become the new rows of each sequence of the step.
template <RowCache C>
void append_rows(Cpu& cpu, C& cache, int slot, int plane, const Step& step,
                 MatView<const float> rows) {
  if (cpu.measuring()) return;
  const auto tag = cache.tags()[static_cast<std::size_t>(plane)];
  const RowCodec& codec = row_codec_of<typename C::Formats>(tag);
  for (const SeqStep& seq : step.seqs) {
    for (int i = 0; i < seq.count; ++i) {
      codec.store(cpu.rows(), rows.row(seq.first + i), rows.extent(1),
                  cache.row(seq.seq, slot, plane, seq.base + i));
    }
  }
}

}  // namespace tenon::inline TENON_ABI
