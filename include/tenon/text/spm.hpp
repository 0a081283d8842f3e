#pragma once
// SentencePiece-style BPE, "llama" in GGUF: Llama 1 and 2, Mistral, Gemma, Phi-3, TinyLlama.
//
// A space becomes U+2581, the text is cut into characters, and the neighbours whose concatenation
// is the piece with the highest score are merged until none are left (ties: the leftmost). What
// then is no piece is spelled in byte pieces, or is the unknown piece.
// Sources: Kudo and Richardson 2018 (SentencePiece); the GGUF specification.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithm.hpp"
#include "character_map.hpp"
#include "character_table.hpp"
#include "merge.hpp"
#include "pair_filter.hpp"
#include "piece_splits.hpp"
#include "space_mark.hpp"
#include "special_matcher.hpp"

namespace tenon::inline TENON_ABI {

// Where implementations differ, this one does the following.
// * Only normal and unused pieces come out of merging. Control, unknown and byte pieces spelled out
//   in a text stay plain text.
// * A byte that is not UTF-8 is a character of its own, so the text around it is encoded as usual.
// * U+2581 itself in a text is one with the space, as in SentencePiece, tokenizer.json and
//   llama.cpp, and decoding makes it a space.
// * "tokenizer.ggml.merges", where a file has it, orders the merges instead of the scores:
//   converters that read a tokenizer.json write it next to scores that are all equal.
// * Of two pieces with the same text the one with the higher id is used.
// * Neighbouring characters that only the unknown piece can stand for share one.
class Spm final : public TextAlgorithm {
 public:
  // LoadError when scores (or merges) are missing, of another length or not numbers, when a merge
  // does not name three pieces, when the file declares a step that is not implemented, and when
  // some text could not be encoded at all (a byte piece is missing and so is the unknown piece).
  // With `inside`, user-defined pieces are looked for here, as SentencePiece does, and no space is
  // put behind them; otherwise the frame cuts the text at them before.
  static std::unique_ptr<const TextAlgorithm> from(const Metadata& metadata,
                                                   const Vocabulary& vocabulary,
                                                   bool inside = false) {
    return std::unique_ptr<const TextAlgorithm>(new Spm(metadata, vocabulary, inside));
  }

  void encode(const Stretch& stretch, WordCache&, std::vector<Token>& out) const override {
    std::string_view text = stretch.text;
    std::string changed;
    if (normalize_) {
      changed = text;
      normalize_(changed);
      text = changed;
    }
    if (text.empty()) return;
    Run run(*this, out);
    if (adds_space_) run.space();
    std::size_t at = 0;
    for (const SpecialMatcher::Match& match : inside_.find(text, false)) {
      read(text.substr(at, match.at - at), run);
      run.flush();
      out.push_back(match.id);
      at = match.at + match.size;
    }
    read(text.substr(at), run);
    run.flush();
  }

  std::string spell(const Vocabulary& vocabulary, Token id) const override {
    switch (vocabulary.kind(id)) {
      case TokenKind::byte:
        return std::string(1, static_cast<char>(vocabulary.byte_of(id)));
      case TokenKind::control:
      case TokenKind::unknown:
        return std::string(vocabulary.piece(id));
      default:
        return with_spaces(vocabulary.piece(id));
    }
  }
  SpaceInFront space_in_front() const override {
    return adds_space_ ? SpaceInFront::of_every_stretch : SpaceInFront::never;
  }

 private:
  // The symbols read since the last place that no merge can cross, and where ids go.
  class Run {
   public:
    Run(const Spm& spm, std::vector<Token>& out)
        : spm_(spm), out_(out), first_(out.size()), merger_(spm.merges_) {}

    void space() { character(" ", spm_.space_); }
    void character(std::string_view bytes, Symbol symbol) {
      if (symbol == no_symbol) {  // in no piece, so it merges with nothing
        flush();
        spell_out(bytes);
        return;
      }
      if (!symbols_.empty() && !spm_.joins_.may_contain(last_, symbol)) flush();
      symbols_.push_back(symbol);
      last_ = symbol;
    }
    void flush() {
      merger_(symbols_);
      for (const Symbol symbol : symbols_) {
        if (symbol < spm_.vocab_) {
          out_.push_back(static_cast<Token>(symbol));
        } else {
          spell_out(spm_.loose_[symbol - spm_.vocab_]);
        }
      }
      symbols_.clear();
    }

   private:
    void spell_out(std::string_view bytes) {
      const std::size_t size = out_.size();
      for (const char c : bytes) {
        const Token id = spm_.bytes_[static_cast<unsigned char>(c)];
        if (id >= 0) {
          out_.push_back(id);
          continue;
        }
        out_.resize(size);
        if (size == first_ || out_.back() != spm_.unknown_) out_.push_back(spm_.unknown_);
        return;
      }
    }

    const Spm& spm_;
    std::vector<Token>& out_;
    std::size_t first_;
    Merger merger_;
    std::vector<Symbol> symbols_;
    Symbol last_ = no_symbol;  // the last character's
  };

  Spm(const Metadata& metadata, const Vocabulary& vocabulary, bool inside)
      : vocab_(static_cast<Symbol>(vocabulary.size())),
        adds_space_(metadata.flag_or("tokenizer.ggml.add_space_prefix", true)) {
    refuse_other_steps(metadata);
    std::vector<std::string> spellings;
    std::vector<ByteTrie::Entry> kept;
    if (inside) {
      for (Token id = 0; id < vocabulary.size(); ++id) spellings.push_back(spell(vocabulary, id));
      for (Token id = 0; id < vocabulary.size(); ++id) {
        if (vocabulary.kind(id) == TokenKind::user_defined)
          kept.emplace_back(spellings[static_cast<std::size_t>(id)], id);
      }
      inside_ = SpecialMatcher(vocabulary, [&](Token id) {
        return std::string_view(spellings[static_cast<std::size_t>(id)]);
      });
    }
    normalize_ = declared_normalizer(metadata, ByteTrie(std::move(kept)));
    for (unsigned byte = 0; byte < 256; ++byte) {
      bytes_[byte] = vocabulary.byte_piece(static_cast<unsigned char>(byte)).value_or(-1);
    }
    unknown_ = vocabulary.unknown().value_or(-1);
    if (unknown_ < 0 && !vocabulary.spells_every_byte()) {
      fail<LoadError>("a vocabulary of the kind \"llama\" must have all 256 byte pieces or an ",
                      "unknown piece, this one has neither; convert the checkpoint again with a ",
                      "current converter");
    }
    const std::vector<PieceSplits::Item> pieces = merging_pieces(vocabulary);
    const std::vector<PieceSplits::Item> loose = read_characters(pieces);
    merges_ = metadata.contains("tokenizer.ggml.merges")
                  ? listed_merges(metadata.texts("tokenizer.ggml.merges"), pieces)
                  : scored_merges(metadata.floats("tokenizer.ggml.scores"), pieces, loose);
  }

  static void refuse_other_steps(const Metadata& metadata) {
    const auto refuse = [](std::string_view key, std::string_view step) {
      fail<LoadError>(
          "metadata key \"", key, "\" asks for ", step,
          ", which must not be left out and is not implemented for tokenizers of the kind "
          "\"llama\"; convert the checkpoint without it or use another one");
    };
    constexpr std::string_view pre = "tokenizer.ggml.pre";
    const std::string name = metadata.text_or(pre, "default");
    if (name != "default") refuse(pre, "the pre-tokenizer \"" + printable(name) + "\"");
    constexpr std::string_view separator = "tokenizer.ggml.add_sep_token";
    if (metadata.flag_or(separator, false)) refuse(separator, "a piece between texts");
  }

  // The pieces that merging may produce, sorted by text, each text once.
  static std::vector<PieceSplits::Item> merging_pieces(const Vocabulary& vocabulary) {
    std::vector<PieceSplits::Item> pieces;
    for (Token id = 0; id < vocabulary.size(); ++id) {
      const TokenKind kind = vocabulary.kind(id);
      if (kind != TokenKind::normal && kind != TokenKind::unused) continue;
      if (vocabulary.piece(id).empty()) continue;
      pieces.push_back({vocabulary.piece(id), static_cast<Symbol>(id)});
    }
    std::sort(pieces.begin(), pieces.end(), [](const auto& a, const auto& b) {
      const int order = a.text.compare(b.text);
      return order != 0 ? order < 0 : a.symbol > b.symbol;
    });
    const auto same = [](const auto& a, const auto& b) { return a.text == b.text; };
    pieces.erase(std::unique(pieces.begin(), pieces.end(), same), pieces.end());
    return pieces;
  }

  // Fills the character table and the pairs of characters that stand side by side in pieces.
  // Returns the characters that occur in pieces and are none: they can still merge.
  std::vector<PieceSplits::Item> read_characters(const std::vector<PieceSplits::Item>& pieces) {
    for (const auto& [text, symbol] : pieces) {
      if (characters_.front(text).size == text.size()) characters_.set_front(text, symbol);
    }
    std::vector<PieceSplits::Item> loose;
    for (const auto& piece : pieces) {
      Symbol last = no_symbol;
      for (std::string_view rest = piece.text; !rest.empty();) {
        CharacterTable::Front front = characters_.front(rest);
        if (front.symbol == no_symbol) {
          front.symbol = static_cast<Symbol>(vocab_ + loose.size());
          loose.push_back({rest.substr(0, front.size), front.symbol});
          characters_.set_front(rest, front.symbol);
        }
        if (last != no_symbol) joins_.add(last, front.symbol);
        last = front.symbol;
        rest.remove_prefix(front.size);
      }
    }
    // A mark that merged with nothing is spelled as the space it was.
    for (const auto& item : loose) loose_.emplace_back(item.text == space_mark ? " " : item.text);
    space_ = characters_.front(space_mark).symbol;
    return loose;
  }

  MergeTable scored_merges(const std::vector<double>& scores,
                           const std::vector<PieceSplits::Item>& pieces,
                           const std::vector<PieceSplits::Item>& loose) const {
    if (scores.size() != vocab_) {
      fail<LoadError>(
          "metadata array \"tokenizer.ggml.scores\" must have one entry for each of the ", vocab_,
          " tokens, it has ", scores.size(),
          "; convert the checkpoint again with a current converter");
    }
    std::vector<double> order;  // distinct scores, the best first
    for (const auto& piece : pieces) {
      if (std::isnan(scores[piece.symbol])) {
        fail<LoadError>(
            "the score of token ", piece.symbol,
            " in \"tokenizer.ggml.scores\" must be a number, it is NaN; the file is damaged");
      }
      order.push_back(scores[piece.symbol]);
    }
    std::sort(order.begin(), order.end(), std::greater<>());
    order.erase(std::unique(order.begin(), order.end()), order.end());

    std::vector<PieceSplits::Item> parts = pieces;
    parts.insert(parts.end(), loose.begin(), loose.end());
    std::vector<MergeRule> rules;
    PieceSplits(std::move(parts))
        .for_each([&](const auto& whole, const auto& left, const auto& right) {
          if (whole.symbol >= vocab_) return true;  // a character that is no piece
          const auto rank =
              std::lower_bound(order.begin(), order.end(), scores[whole.symbol], std::greater<>());
          rules.push_back({left.symbol,
                           right.symbol,
                           {whole.symbol, static_cast<std::uint32_t>(rank - order.begin())}});
          return rules.size() <= MergeTable::most_rules;
        });
    return MergeTable(rules);
  }

  // Each line is "left right"; the first line merges first.
  static MergeTable listed_merges(const std::vector<std::string>& lines,
                                  const std::vector<PieceSplits::Item>& pieces) {
    const auto find = [&](std::string_view text) -> std::optional<Symbol> {
      const auto at =
          std::lower_bound(pieces.begin(), pieces.end(), text,
                           [](const auto& piece, std::string_view t) { return piece.text < t; });
      if (at == pieces.end() || at->text != text) return std::nullopt;
      return at->symbol;
    };
    std::vector<MergeRule> rules;
    for (const std::string& line : lines) {
      const std::size_t gap = line.find(' ');
      std::optional<Symbol> left, right, whole;
      if (gap != std::string::npos) {
        const std::string_view a = std::string_view(line).substr(0, gap);
        const std::string_view b = std::string_view(line).substr(gap + 1);
        left = find(a);
        right = find(b);
        whole = find(std::string(a).append(b));
      }
      if (!left || !right || !whole) {
        fail<LoadError>("entry ", rules.size(),
                        " of \"tokenizer.ggml.merges\" must be two pieces with one "
                        "space between them whose concatenation is a piece, it is \"",
                        printable(line),
                        "\"; convert the checkpoint again with a current converter");
      }
      rules.push_back({*left, *right, {*whole, static_cast<std::uint32_t>(rules.size())}});
    }
    return MergeTable(rules);
  }

  void read(std::string_view text, Run& run) const {
    while (!text.empty()) {
      if (text[0] == ' ') {
        run.space();
        text.remove_prefix(1);
        continue;
      }
      const CharacterTable::Front front = characters_.front(text);
      run.character(text.substr(0, front.size), front.symbol);
      text.remove_prefix(front.size);
    }
  }

  TextStep normalize_;  // none for most files
  SpecialMatcher inside_;
  CharacterTable characters_;
  MergeTable merges_;
  std::vector<std::string> loose_;  // characters that are no piece, by symbol - vocab_
  PairFilter joins_;
  std::array<Token, 256> bytes_{};
  Token unknown_ = -1;
  Symbol vocab_;
  Symbol space_ = no_symbol;
  bool adds_space_;
};

}  // namespace tenon::inline TENON_ABI
