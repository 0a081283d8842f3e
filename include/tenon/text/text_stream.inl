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
  shown_from_.clear();
  if (done_) return shown_;
  bytes_.clear();
  tokenizer_.append(id, state_, bytes_, decode_);
  text_.clear();
  text_from_.clear();
  repair(bytes_);
  ++pushed_;
  release();
  return shown_;
}

TENON_INLINE std::string_view TextStream::finish() {
  shown_.clear();
  shown_from_.clear();
  if (done_) return shown_;
  text_.clear();
  repair_.finish(text_);
  text_from_.assign(text_.size(), incomplete_.empty() ? 0 : incomplete_[0]);
  release();
  if (!done_) show(held_from_, held_.size());
  done_ = true;
  return shown_;
}

TENON_INLINE void TextStream::repair(std::string_view bytes) {
  for (const char c : bytes) {
    const std::size_t before = text_.size();
    repair_.push(std::string_view(&c, 1), text_);
    const std::size_t grown = text_.size() - before;
    const bool tail = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (tail && grown == incomplete_.size() + 1) {  // the last byte of a character
      text_from_.insert(text_from_.end(), incomplete_.begin(), incomplete_.end());
      text_from_.push_back(pushed_);
      incomplete_.clear();
      continue;
    }
    std::size_t replaced = 0;
    if (grown > 0 && !incomplete_.empty()) {
      replaced = replacement_character.size();
      text_from_.insert(text_from_.end(), replaced, incomplete_[0]);
      incomplete_.clear();
    }
    text_from_.insert(text_from_.end(), grown - replaced, pushed_);
    if (repair_.holding()) incomplete_.push_back(pushed_);
  }
}

TENON_INLINE void TextStream::release() {
  if (stops_.empty()) {
    shown_ += text_;
    shown_from_.insert(shown_from_.end(), text_from_.begin(), text_from_.end());
    return;
  }
  for (std::size_t i = 0; i < text_.size(); ++i) {
    held_ += text_[i];
    held_sources_.push_back(text_from_[i]);
    matched_ = stops_.step(matched_, static_cast<unsigned char>(text_[i]));
    const std::int32_t stop = stop_at_[matched_];
    if (stop == Automaton::none) continue;
    show(held_from_, held_.size() - stop_sizes_[static_cast<std::size_t>(stop)]);
    stop_ = stop;
    done_ = true;
    return;
  }
  const std::size_t keep_from = held_.size() - stops_.depth(matched_);
  show(held_from_, keep_from);
  held_from_ = keep_from;
  if (held_from_ > held_.size() / 2) {  // rarely enough to cost O(1) a byte
    held_.erase(0, held_from_);
    held_sources_.erase(held_sources_.begin(),
                        held_sources_.begin() + static_cast<std::ptrdiff_t>(held_from_));
    held_from_ = 0;
  }
}

TENON_INLINE void TextStream::show(std::size_t from, std::size_t to) {
  shown_.append(held_, from, to - from);
  const auto begin = held_sources_.begin();
  shown_from_.insert(shown_from_.end(), begin + static_cast<std::ptrdiff_t>(from),
                     begin + static_cast<std::ptrdiff_t>(to));
}

}  // namespace tenon::inline TENON_ABI
