// Sizes whose products leave 32 bits: logits of 32768 tokens over 131073 pieces, and of 12031 over
// 248320. The memory is only reserved, so that pointers are real and pages come where one is used.
#include <sys/mman.h>

#include <cstdint>
#include <memory>

#include "catch.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/io/gguf_format.hpp"
#include "tenon/kernels/activations.hpp"
#include "tenon/kernels/packed.hpp"
#include "tenon/quant/gguf_formats.hpp"
#include "tenon/tensor/view.hpp"

using namespace tenon;

namespace {

class Reserved {
 public:
  explicit Reserved(std::size_t bytes)
      : bytes_(bytes),
        at_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~Reserved() {
    if (there()) ::munmap(at_, bytes_);
  }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;
  bool there() const { return at_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(at_); }

 private:
  std::size_t bytes_;
  void* at_;
};

}  // namespace

TEST_CASE("large offsets: rows of logits") {
  for (const auto& [tokens, vocab] : {std::pair<Dim, Dim>{32768, 131073}, {12031, 248320}}) {
    const auto bytes = static_cast<std::size_t>(tokens) * static_cast<std::size_t>(vocab) * 4;
    const Reserved memory(bytes);
    if (!memory.there()) return;
    const auto logits = matrix(reinterpret_cast<float*>(memory.data()), tokens, vocab);
    CHECK(logits.row(tokens - 1) - logits.row(0) == (tokens - 1) * vocab);
    logits.row(tokens - 1)[vocab - 1] = 1;
    CHECK(reinterpret_cast<float*>(memory.data() + bytes)[-1] == 1.0f);
    CHECK(logits.row(0)[0] == 0.0f);
    CHECK(QuantizedRows::bytes(tokens, vocab) >= tokens * vocab);
  }
}

TEST_CASE("large offsets: packed weights of every format") {
  const Dim out = 131073, in = 32768;
  for (int tag = 0; tag < FormatList<GgufFormats>::size; ++tag) {
    FormatList<GgufFormats>::visit(tag, [&]<class F>(F) {
      const std::size_t row = row_bytes<F>(in);
      CHECK(row == static_cast<std::size_t>(in / F::block) * F::block_bytes);
      const std::vector<Dim> shape{out, in};
      CHECK(gguf_tensor_bytes<ShapeError>("test", "t", F::ggml_type, shape) ==
            static_cast<std::size_t>(out) * row);
      const std::size_t bytes = PackedMatrix<GgufFormats>::packed_bytes(tag, out, in);
      const std::size_t packed_row = row_bytes<packed_form<F>>(in);
      CHECK(bytes >= static_cast<std::size_t>(out) * packed_row);
      CHECK(bytes <= static_cast<std::size_t>(out + 15) * packed_row / 9 * 10);
    });
  }
  const int tag = tag_of_name<GgufFormats>("f16");
  const std::size_t bytes = PackedMatrix<GgufFormats>::packed_bytes(tag, out, in);
  CHECK(bytes == std::size_t{131088} * 32768 * 2);
  const Reserved memory(bytes);
  if (!memory.there()) return;
  const auto packed =
      PackedMatrix<GgufFormats>::view(tag, {memory.data(), bytes}, out, in, nullptr);
  const std::size_t tile = std::size_t{16} * 32768 * 2;
  CHECK(packed.tiles() == 8193);
  CHECK(packed.tile(8192).values - packed.tile(0).values ==
        static_cast<std::ptrdiff_t>(8192 * tile));
  // The last value of the last row: row 0 of the last tile.
  const std::uint16_t one = half_of_float(1);
  std::memcpy(memory.data() + 8192 * tile + std::size_t{32767} * 32, &one, 2);
  std::vector<float> row(static_cast<std::size_t>(in));
  packed.decode_row(out - 1, row.data());
  CHECK(row.back() == 1.0f);
  CHECK(row[0] == 0.0f);
  packed.decode_row(out - 2, row.data());
  CHECK(row.back() == 0.0f);
}

TEST_CASE("large offsets: caches") {
  using Plain = Contiguous<F16>;
  const std::vector<RowSpec> slots(80, RowSpec{{1024, 1024}});
  const Limits limits{.seqs = 4, .context = 131073, .step_tokens = 1};
  const std::size_t want = std::size_t{80} * 4 * 131073 * 2 * 1024 * 2;
  CHECK(Plain::bytes(slots, limits, {0, 0}) == want);
  CHECK(Paged<F16, 16>::bytes(slots, limits, {0, 0}) >= want);
}
