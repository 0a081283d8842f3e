#pragma once
#include "text_stream.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE TextStream::TextStream(Tokenizer tokenizer, const StreamOptions& options)
    : tokenizer_(std::move(tokenizer)), decode_{options.special} {
  for (std::size_t i = 0; i < options.stop.size(); ++i) {
    const std::string& stop = options.stop[i];
    if (stop.empty() || !is_utf8(stop)) {
      fail<RequestError>("stop string ", i, " must be UTF-8 and not empty, it is \"",
                         printable(stop), "\"; leave it out");
    }
    stops_.add(stop, static_cast<std::int32_t>(i));
    stop_sizes_.push_back(stop.size());
  }
  stops_.build();
  stop_at_ = stops_.longest([](std::int32_t) { return true; });
  if (!options.after.empty()) {
    const TokenKind kind = tokenizer_.kind(options.after.back());
    state_.starts = kind == TokenKind::control || kind == TokenKind::user_defined;
  }
}

TENON_INLINE std::string_view TextStream::push(Token id) {
  shown_.clear();
  if (done_) return shown_;
  bytes_.clear();
  tokenizer_.append(id, state_, bytes_, decode_);
  text_.clear();
  repair_.push(bytes_, text_);
  release(text_);
  return shown_;
}

TENON_INLINE std::string_view TextStream::finish() {
  shown_.clear();
  if (done_) return shown_;
  text_.clear();
  repair_.finish(text_);
  release(text_);
  if (!done_) shown_.append(held_, held_from_);
  done_ = true;
  return shown_;
}

TENON_INLINE void TextStream::release(std::string_view text) {
  if (stops_.empty()) {
    shown_ += text;
    return;
  }
  for (const char c : text) {
    held_ += c;
    matched_ = stops_.step(matched_, static_cast<unsigned char>(c));
    const std::int32_t stop = stop_at_[matched_];
    if (stop == Automaton::none) continue;
    held_.resize(held_.size() - stop_sizes_[static_cast<std::size_t>(stop)]);
    shown_.append(held_, held_from_);
    stop_ = stop;
    done_ = true;
    return;
  }
  const std::size_t keep_from = held_.size() - stops_.depth(matched_);
  shown_.append(held_, held_from_, keep_from - held_from_);
  held_from_ = keep_from;
  if (held_from_ > held_.size() / 2) {  // rarely enough to cost O(1) a byte
    held_.erase(0, held_from_);
    held_from_ = 0;
  }
}

}  // namespace tenon::inline TENON_ABI
