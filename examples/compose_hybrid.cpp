// A model in the manner of Character.AI as a type, and what its cache costs, known without any
// checkpoint: compose_hybrid. With one of that shape it also tells a story: compose_hybrid MODEL.
#include <cstdio>
#include <iostream>
#include <tenon/attn/masks.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/model/interleave.hpp>
#include <tenon/tenon.hpp>

using namespace tenon;

// [chat]
// One head of keys and values, stored in 8 bits with a scale per 32 values. Five layers of six see
// a window, and runs of up to three of them share their rows; the sixth sees everything, and all
// of these read the rows of the first of them. Window, width and depth are the checkpoint's.
inline constexpr GqaSpec mqa{.kv_heads = 1, .head_dim = 128};
inline constexpr Interleave chai{
    .period = 6, .rare_at = 5, .share_common = 3, .share_rare = Interleave::all};
using Local = Block<Gqa<mqa, SlidingWindow, Rope, Ring<Q8_0>>, GeGlu, RmsNorm>;
using Global = Block<Gqa<mqa, Causal, Rope, Paged<Q8_0, 16>>, GeGlu, RmsNorm>;
using Chat = Decoder<Kinds<Local, Global>, chai, Q8_0>;
static_assert(chai.at(4, {}) == LayerRef{0, 3});  // the kind, and whose rows the layer reads
static_assert(chai.at(5, {}) == LayerRef{1, 5} && chai.at(11, {}) == LayerRef{1, 5});
// [chat]

// What it is compared with: eight heads of keys and values in every layer, in 16 bits.
using Usual =
    Decoder<Kinds<Block<Gqa<GqaSpec{.kv_heads = 8, .head_dim = 128}, Causal, Rope, Contiguous<F16>>,
                        SwiGlu, RmsNorm>>,
            Uniform{}, Q8_0>;

template <class M>
std::size_t bytes(int context) {
  const double kv_heads = std::is_same_v<M, Chat> ? 1 : 8;
  const ConfigEntry sizes[] = {{"embedding_length", 4096},
                               {"block_count", 36},
                               {"vocab_size", 32000},
                               {"feed_forward_length", 11008},
                               {"attention.head_count", 32},
                               {"attention.head_count_kv", kv_heads},
                               {"attention.key_length", 128},
                               {"attention.value_length", 128},
                               {"attention.sliding_window", 1024}};
  // In steps of one token: the ring adds a row for each further token that a step may have.
  return M::cache_bytes({"llama", sizes}, {.context = context, .step_tokens = 1});
}

template <class M>
void print(const char* name) {
  const double growth = static_cast<double>(bytes<M>(8192) - bytes<M>(4096)) / 4096;
  std::printf("%-12s %12.2f %12.0f %14zu %14zu\n", name, growth,
              static_cast<double>(bytes<M>(8192)) - 8192 * growth, bytes<M>(2048), bytes<M>(8192));
}

int main(int argc, char** argv) try {
  const std::string path = argc > 1 ? argv[1] : "";
  if (path == "--help") {
    std::cout << "usage: compose_hybrid [MODEL]\n";
    return 0;
  }
  if (!path.empty()) {
    const auto checkpoint = open_checkpoint(path);
    const TensorSource& file = *checkpoint;
    auto session = Chat::bind(file).open({});
    std::cout << generate_text(session, Tokenizer::from(file), "Once upon a time", {}).text << '\n';
    return 0;
  }
  std::puts("36 layers     per token B      fixed B    at 2048, B    at 8192, B");
  print<Usual>("gqa-8 f16");
  print<Chat>("hybrid q8_0");
  for (const int context : {2048, 8192}) {
    std::printf(
        "at %d tokens the hybrid's cache is %.1f times smaller\n", context,
        static_cast<double>(bytes<Usual>(context)) / static_cast<double>(bytes<Chat>(context)));
  }
} catch (const Error& error) {
  std::cerr << "compose_hybrid: " << error.what() << '\n';
  return 1;
}
