#pragma once
#include <utility>

#include "../core/utf8.hpp"
#include "character_map.hpp"
#include "escaped_bytes.hpp"
#include "space_mark.hpp"
#include "unicode.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE CharacterMap::CharacterMap(std::string_view bytes) {
  const auto number = [&](std::size_t at) {
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < 4; ++i)
      n |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
    return n;
  };
  const std::size_t size = bytes.size() < 4 ? 0 : number(0);
  if (size < 4 || size % 4 != 0 || size > bytes.size() - 4) {
    fail<LoadError>(
        "the character map of a tokenizer must be a trie of whole units and the texts behind it, ",
        "it has ", bytes.size(), " bytes and names ", size, " for the trie; the file is damaged");
  }
  units_.reserve(size / 4);
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(number(at));
  texts_ = bytes.substr(4 + size);
  texts_ += '\0';
}

TENON_INLINE std::optional<CharacterMap::Found> CharacterMap::find(std::string_view text,
                                                                   bool longest) const {
  const auto offset = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
  std::optional<Found> found;
  std::size_t node = offset(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units_.size()) break;
    const std::uint32_t unit = units_[node];
    if ((unit & (1u << 31 | 0xFFu)) != byte) break;
    node ^= offset(unit);
    if ((unit >> 8 & 1) == 0) continue;
    if (node >= units_.size()) break;
    const std::size_t at = units_[node] & ~(1u << 31);
    if (at >= texts_.size()) break;
    const std::string_view with(texts_.c_str() + at);
    if (!is_utf8(with)) continue;  // an offset into the middle of a character
    found = Found{i + 1, with};
    if (!longest) break;
  }
  return found;
}

TENON_INLINE TextStep sentencepiece_normalizer(std::optional<CharacterMap> map, bool trim,
                                               ByteTrie kept) {
  return [map = std::move(map), trim, kept = std::move(kept)](std::string& text) {
    std::string out;
    out.reserve(text.size());
    bool after_space = trim;
    for (std::string_view rest = text; !rest.empty();) {
      std::size_t size = kept.longest(rest);
      std::string_view part = rest.substr(0, size);
      if (size == 0) {
        const auto found = map ? map->longest(rest) : std::nullopt;
        size = found ? found->size : static_cast<std::size_t>(escaped_char(rest, 0).length);
        part = found ? found->with : rest.substr(0, size);
      }
      while (after_space && !part.empty() && part[0] == ' ') part.remove_prefix(1);
      out += part;
      if (!part.empty()) after_space = trim && part.back() == ' ';
      rest.remove_prefix(size);
    }
    // By then SentencePiece has turned spaces into marks, so marks at the end go too.
    while (trim && !out.empty()) {
      const bool marked = std::string_view(out).ends_with(space_mark);
      if (!marked && out.back() != ' ') break;
      out.resize(out.size() - (marked ? space_mark.size() : 1));
    }
    text = std::move(out);
  };
}

TENON_INLINE TextStep declared_normalizer(const Metadata& metadata, ByteTrie kept) {
  constexpr std::string_view key = "tokenizer.ggml.precompiled_charsmap";
  const bool trim = metadata.flag_or("tokenizer.ggml.remove_extra_whitespaces", false);
  std::string bytes;
  if (metadata.contains(key)) {
    for (const std::int64_t byte : metadata.integers(key)) bytes += static_cast<char>(byte);
  }
  if (bytes.empty() && !trim) return {};
  std::optional<CharacterMap> map;
  if (!bytes.empty()) map.emplace(bytes);
  return sentencepiece_normalizer(std::move(map), trim, std::move(kept));
}

TENON_INLINE TextStep precompiled_normalizer(CharacterMap map) {
  need_unicode("the normalizer \"Precompiled\"");
  return [map = std::move(map)](std::string& text) {
    constexpr std::size_t short_cluster = 6;
    std::string out;
    out.reserve(text.size());
    for (std::string_view rest = text; !rest.empty();) {
      const std::size_t cluster = cluster_size(rest);
      const auto whole =
          cluster < short_cluster ? map.shortest(rest.substr(0, cluster)) : std::nullopt;
      if (whole) {
        out += whole->with;
      } else {
        for (std::size_t at = 0; at < cluster;) {
          const auto size = static_cast<std::size_t>(escaped_char(rest, at).length);
          const std::string_view part = rest.substr(at, size);
          const auto found = map.shortest(part);
          out += found ? found->with : part;
          at += size;
        }
      }
      rest.remove_prefix(cluster);
    }
    text = std::move(out);
  };
}

}  // namespace tenon::inline TENON_ABI
