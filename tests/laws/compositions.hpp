#pragma once
// The compositions that the laws are checked on, from their policies.
#include <algorithm>

#include "laws/random_source.hpp"
#include "tenon/attn/masks.hpp"
#include "tenon/attn/tree.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/cache/paged.hpp"
#include "tenon/cache/ring.hpp"
#include "tenon/mixer/gqa.hpp"
#include "tenon/mixer/mla.hpp"
#include "tenon/model/decoder.hpp"
#include "tenon/model/interleave.hpp"
#include "tenon/nn/mlp.hpp"
#include "tenon/nn/norm.hpp"
#include "tenon/zoo/formats.hpp"

namespace laws {

using namespace tenon;
using Elements = zoo::CacheFormats;

template <class Mixer, auto Plan = Uniform{}>
using Model = Decoder<Kinds<Block<Mixer, SwiGlu, RmsNorm>>, Plan, F32>;

template <class Mask, class Cache, class Hook = PlainScore>
using WithGqa = Model<Gqa<GqaSpec{}, Mask, Rope, Cache, Hook>>;
template <class Mask, class Cache>
using WithMla = Model<Mla<MlaSpec{}, Mask, Rope, Cache>>;

template <int N>
using Pages = Paged<Elements, N>;
using Plain = Contiguous<Elements>;
using Window = Ring<Elements>;

// A small model; `more` adds or replaces keys.
inline std::vector<random_source::Key> sizes(std::vector<random_source::Key> more) {
  std::vector<random_source::Key> keys{
      {"embedding_length", 32},    {"block_count", 2},
      {"feed_forward_length", 48}, {"vocab_size", 64},
      {"attention.head_count", 4}, {"attention.layer_norm_rms_epsilon", 1e-5}};
  for (random_source::Key& key : more) {
    const auto same = [&](const random_source::Key& other) { return other.name == key.name; };
    keys.erase(std::remove_if(keys.begin(), keys.end(), same), keys.end());
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace laws
