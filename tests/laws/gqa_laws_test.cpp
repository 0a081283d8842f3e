// The laws on grouped-query attention: MHA, GQA and MQA under masks without a window (those are in
// window_laws_test.cpp), every cache that may hold them.
#include "laws/compositions.hpp"
#include "laws/laws.hpp"
#include "tenon/attn/score_hooks.hpp"

using namespace laws;

TEST_CASE("causal: contiguous and paged", "[laws]") {
  for (const int kv_heads : {4, 2, 1}) {
    check<WithGqa<Causal, Plain>, WithGqa<Causal, Pages<4>>, WithGqa<Causal, Pages<16>>,
          WithGqa<Causal, Pages<64>>, WithGqa<Tree<Causal>, Pages<16>>>(
        sizes({{"attention.head_count_kv", static_cast<double>(kv_heads)}}));
  }
}

TEST_CASE("masks that look ahead", "[laws]") {
  check<WithGqa<Bidirectional, Plain>, WithGqa<Bidirectional, Pages<16>>>(sizes({}));
  check<WithGqa<BlockCausal, Plain>, WithGqa<BlockCausal, Pages<4>>>(
      sizes({{"attention.block_length", 8}}), 8);
}

TEST_CASE("score hooks: capped, biased by distance, with sinks", "[laws]") {
  using Hooks = Scores<Alibi, SoftCap, LearnedSinks>;
  check<WithGqa<Causal, Plain, Hooks>, WithGqa<Causal, Pages<16>, Hooks>>(
      sizes({{"attn_logit_softcapping", 4}}));
}
