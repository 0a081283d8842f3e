// What kernels count is what cost/ predicts: layers of several kinds in one model, norms of queries
// and keys, gated outputs, one matrix of queries, keys and values.
#include "cost/audit.hpp"
#include "tenon/model/interleave.hpp"

using namespace audit;

namespace {

template <GqaSpec Spec, class Mask, class Cache>
using Layer = Block<Gqa<Spec, Mask, Rope, Cache>, SwiGlu, RmsNorm>;

constexpr GqaSpec of_heads{.qk_norm = QkNorm::per_head, .output_gate = true};
constexpr GqaSpec of_rows{.qk_norm = QkNorm::full_width};
constexpr GqaSpec fused{.fused = true};

// Of three layers two see a window, the second of them the rows of the first; one sees all.
using Mixed = Decoder<Kinds<Layer<of_heads, FixedWindow<24>, Ring<CacheFormats>>,
                            Layer<of_rows, Causal, Paged<CacheFormats, 16>>>,
                      Interleave{.period = 3, .rare_at = 2, .share_common = 2}, WeightFormats>;
using Fused = Composed<Layer<fused, Causal, Contiguous<CacheFormats>>>;

const std::vector<int> chunks{70, 1, 33, 64, 1};

}  // namespace

TEST_CASE("audit: layers of several kinds, normed queries and keys, gated outputs",
          "[cost][audit]") {
  auto keys = audit::sizes({{"attention.head_count_kv", 2}});
  for (auto& key : keys) {
    if (key.name == "block_count") key.number = 6;
  }
  for (const char* format : {"f32", "q8_0", "q4_k"}) {
    Audited<Mixed> mixed(keys, format);
    CHECK(mixed.sizes("f16").size == 3);
    for (const char* cache : {"f32", "q8_0"}) mixed.check(cache, 2, chunks);
  }
}

TEST_CASE("audit: queries, keys and values of one matrix", "[cost][audit]") {
  Audited<Fused> fused_rows(audit::sizes({{"attention.head_count_kv", 2}}), "q8_0");
  fused_rows.check("f16", 2, chunks);
}
