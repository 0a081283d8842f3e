// Hostile vocabularies and texts. Loading may end in a LoadError and nothing else; a tokenizer that
// has loaded encodes every text, decodes what it encoded, and streams what it decodes.
//
// Input: a byte of options, a byte with the number of pieces, for each piece a byte (kind and
// length), a score byte and its text; then the texts of two stop strings, each after its length;
// the rest is the text to encode.
#include <tenon/text/text_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace tenon;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size)
      : rest_(reinterpret_cast<const char*>(data), size) {}

  unsigned byte() {
    if (rest_.empty()) return 0;
    const unsigned byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  std::string text(std::size_t size) {
    const std::string text(rest_.substr(0, size));
    rest_.remove_prefix(text.size());
    return text;
  }
  std::string rest() const { return std::string(rest_); }

 private:
  std::string_view rest_;
};

struct Options {
  bool space_prefix, bytes, parse_special, merges, hostile, special;
};

Metadata read_vocabulary(Input& input, const Options& options) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  std::vector<std::int64_t> kinds = {2, 3, 3};
  std::vector<double> scores = {0, 0, 0};
  constexpr char hex[] = "0123456789ABCDEF";
  for (std::size_t byte = 0; options.bytes && byte < 256; ++byte) {
    tokens.push_back({'<', '0', 'x', hex[byte / 16], hex[byte % 16], '>'});
    kinds.push_back(6);
    scores.push_back(0);
  }
  std::vector<std::string> merges;
  for (unsigned n = input.byte() % 32; n > 0; --n) {
    const unsigned head = input.byte();
    scores.push_back(static_cast<double>(input.byte()) - 100);
    std::string text = input.text(head % 16);
    // A tilde stands for the mark of a space, so that short inputs reach the rules about it.
    for (std::size_t at = 0; (at = text.find('~', at)) != std::string::npos;)
      text.replace(at, 1, "\u2581");
    const unsigned kind = head / 16;
    const std::int64_t legal[] = {1, 1, 1, 1, 1, 3, 4, 5};
    kinds.push_back(options.hostile ? static_cast<std::int64_t>(kind) - 1 : legal[kind % 8]);
    if (options.merges && text.size() > 1)
      merges.push_back(text.substr(0, 1) + " " + text.substr(1));
    tokens.push_back(std::move(text));
  }
  if (options.hostile) {
    for (unsigned n = input.byte() % 4; n > 0 && !kinds.empty(); --n) {
      switch (input.byte() % 8) {
        case 0:
          kinds.pop_back();
          break;
        case 1:
          scores.pop_back();
          break;
        case 2:
          tokens.emplace_back();
          break;
        case 3:
          scores.back() = 0.0 / static_cast<double>(input.byte());
          break;
        case 4:
          kinds[0] = 1;
          break;
        default:
          break;
      }
    }
  }
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", "llama");
  metadata.set("tokenizer.ggml.tokens", MetaValue{MetaType::array, MetaType::string, tokens});
  metadata.set("tokenizer.ggml.token_type", MetaValue{MetaType::array, MetaType::i32, kinds});
  metadata.set("tokenizer.ggml.scores", MetaValue{MetaType::array, MetaType::f32, scores});
  if (options.merges)
    metadata.set("tokenizer.ggml.merges", MetaValue{MetaType::array, MetaType::string, merges});
  metadata.set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
  metadata.set("tokenizer.ggml.eos_token_id", options.hostile ? input.byte() : 2u);
  metadata.set("tokenizer.ggml.add_space_prefix", options.space_prefix);
  return metadata;
}

// The decoded text up to the stop string that is complete first; of several, the longest.
std::string cut(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t size = 0;
    for (const std::string& stop : stops) {
      const bool here =
          stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (here && stop.size() > size) size = stop.size();
    }
    if (size > 0) return text.substr(0, end - size);
  }
  return text;
}

// The mark of a space may come back as one.
std::string spaced(std::string text) {
  for (std::size_t at = 0; (at = text.find("\u2581", at)) != std::string::npos; ++at)
    text.replace(at, 3, 1, ' ');
  return text;
}

void check_stream(const Tokenizer& tokenizer, const std::vector<Token>& ids, const Options& options,
                  const std::vector<std::string>& stops) {
  TextStream stream(tokenizer, {.stop = stops, .special = options.special});
  std::string shown;
  for (const Token id : ids) {
    const std::string_view step = stream.push(id);
    require(is_utf8(step), "a step is UTF-8");
    shown += step;
  }
  shown += stream.finish();
  const std::string text = to_utf8(tokenizer.decode(ids, {.special = options.special}));
  require(shown == cut(text, stops),
          "the stream shows the decoded text up to the first stop string");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  Input input(data, size);
  const unsigned bits = input.byte();
  const Options options{(bits & 1) != 0, (bits & 2) == 0,  (bits & 4) != 0,
                        (bits & 8) != 0, (bits & 16) != 0, (bits & 32) != 0};
  try {
    const Tokenizer tokenizer = Tokenizer::from(read_vocabulary(input, options));
    std::vector<std::string> stops;
    for (int i = 0; i < 2; ++i) {
      const std::string stop = input.text(input.byte() % 8);
      if (!stop.empty() && is_utf8(stop)) stops.push_back(stop);
    }
    const std::string text = input.rest();

    const std::vector<Token> ids =
        tokenizer.encode(text, {.bos = false, .parse_special = options.parse_special});
    for (const Token id : ids)
      require(id >= 0 && id < tokenizer.vocab(), "ids lie in the vocabulary");
    if (options.bytes && !options.hostile) {
      const std::string back = spaced(text);
      require(spaced(tokenizer.decode(ids, {.special = true})) == back,
              "decoding gives the text back");
      const std::vector<Token> plain = tokenizer.encode(text, {.bos = true, .eos = true});
      require(spaced(tokenizer.decode(plain)) == back,
              "decoding gives the text back, without start and end");
    }
    check_stream(tokenizer, ids, options, stops);

    // Ids as a model might draw them: the bytes of the text.
    std::vector<Token> drawn;
    for (const char c : text) drawn.push_back(static_cast<unsigned char>(c) % tokenizer.vocab());
    check_stream(tokenizer, drawn, options, stops);
    check_stream(tokenizer, drawn, options, {});
  } catch (const LoadError&) {
    require(options.hostile || options.merges || !options.bytes, "a sound vocabulary loads");
  }
  return 0;
}
