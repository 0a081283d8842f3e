#pragma once
#include "bpe.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::pair<std::string, std::string> merge_of_line(std::string_view line,
                                                               std::size_t entry) {
  const std::size_t gap = line.find(' ');
  if (gap == 0 || gap == std::string_view::npos || gap + 1 == line.size() ||
      line.find(' ', gap + 1) != std::string_view::npos) {
    fail<LoadError>("merge ", entry,
                    " of the tokenizer must be two pieces with one space between, it is \"",
                    printable(line), "\"; convert the checkpoint again with a current converter");
  }
  return {std::string(line.substr(0, gap)), std::string(line.substr(gap + 1))};
}

TENON_INLINE Bpe::Bpe(const std::vector<std::string>& pieces, const std::vector<bool>& whole,
                      const Merges& merges, const BytePieces& byte_pieces,
                      const BpeOptions& options)
    : options_(options), single_(256, no_symbol), byte_pieces_(byte_pieces) {
  std::vector<ByteTrie::Entry> all, wholes;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    all.emplace_back(pieces[id], static_cast<Token>(id));
    if (options.ignore_merges && whole[id]) wholes.push_back(all.back());
  }
  whole_ = ByteTrie(std::move(wholes));
  const ByteTrie ids(std::move(all));

  std::vector<MergeRule> rules;
  rules.reserve(merges.size());
  for (const auto& [left, right] : merges) {
    const std::int32_t a = ids.find(left), b = ids.find(right), both = ids.find(left + right);
    if (a < 0 || b < 0 || both < 0) {
      fail<LoadError>("merge ", rules.size(),
                      " of the tokenizer must be two pieces whose concatenation is a ",
                      "piece, it is \"", printable(left), "\" and \"", printable(right),
                      "\"; convert the checkpoint again with a current converter");
    }
    rules.push_back({static_cast<Symbol>(a),
                     static_cast<Symbol>(b),
                     {static_cast<Symbol>(both), static_cast<std::uint32_t>(rules.size())}});
  }
  merges_ = MergeTable(rules);

  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const std::int32_t id = ids.find(std::string_view(&c, 1));
    if (id >= 0) single_[byte] = static_cast<Symbol>(id);
  }
  if (options.bytes) return;
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].empty() || characters_.front(pieces[id]).size != pieces[id].size()) continue;
    characters_.set_front(pieces[id], static_cast<Symbol>(ids.find(pieces[id])));
  }
  // A character that has no piece can be part of one only where a merge list could not make it.
  for (const std::string& piece : pieces) {
    Symbol last = no_symbol;
    for (std::string_view rest = piece; !rest.empty();) {
      const CharacterTable::Front front = characters_.front(rest);
      if (last != no_symbol && front.symbol != no_symbol) joins_.add(last, front.symbol);
      last = front.symbol;
      rest.remove_prefix(front.size);
    }
  }
}

// The symbols read since the last place that no merge can cross.
class Bpe::Run {
 public:
  Run(const Bpe& bpe, std::vector<Token>& out) : bpe_(bpe), out_(out), merger_(bpe.merges_) {}

  void symbol(Symbol symbol) {
    unknown_ = false;
    if (!symbols_.empty() && !bpe_.joins_.may_contain(last_, symbol)) flush();
    symbols_.push_back(symbol);
    last_ = symbol;
  }
  // A character that is no piece.
  void stranger(std::string_view bytes) {
    bool spelled = true;
    for (const char c : bytes)
      spelled = spelled && bpe_.byte_pieces_[static_cast<unsigned char>(c)] >= 0;
    if (spelled) {
      flush();
      unknown_ = false;
      for (const char c : bytes) out_.push_back(bpe_.byte_pieces_[static_cast<unsigned char>(c)]);
      return;
    }
    if (bpe_.options_.unknown < 0) return;
    flush();
    if (!unknown_ || !bpe_.options_.fuse_unknown) out_.push_back(bpe_.options_.unknown);
    unknown_ = true;
  }
  void flush() {
    merger_(symbols_);
    for (const Symbol symbol : symbols_) out_.push_back(static_cast<Token>(symbol));
    symbols_.clear();
  }

 private:
  const Bpe& bpe_;
  std::vector<Token>& out_;
  Merger merger_;
  std::vector<Symbol> symbols_;
  Symbol last_ = no_symbol;
  bool unknown_ = false;  // the last id is the unknown piece
};

TENON_INLINE void Bpe::encode(std::string_view word, std::vector<Token>& out) const {
  if (options_.ignore_merges) {
    const std::int32_t id = whole_.find(word);
    if (id >= 0) {
      out.push_back(id);
      return;
    }
  }
  if (options_.bytes) {
    encode_bytes(word, out);
    return;
  }
  Run run(*this, out);
  while (!word.empty()) {
    const CharacterTable::Front front = characters_.front(word);
    if (front.symbol != no_symbol) {
      run.symbol(front.symbol);
    } else {
      run.stranger(word.substr(0, front.size));
    }
    word.remove_prefix(front.size);
  }
  run.flush();
}

TENON_INLINE void Bpe::encode_bytes(std::string_view word, std::vector<Token>& out) const {
  Merger merger(merges_);
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  const auto flush = [&] {
    merger(symbols);
    for (const Symbol symbol : symbols) out.push_back(static_cast<Token>(symbol));
    symbols.clear();
  };
  for (const char c : word) {
    const Symbol symbol = single_[static_cast<unsigned char>(c)];
    if (symbol != no_symbol) {
      symbols.push_back(symbol);
    } else if (options_.unknown >= 0) {
      flush();
      out.push_back(options_.unknown);
    }
  }
  flush();
}

}  // namespace tenon::inline TENON_ABI
