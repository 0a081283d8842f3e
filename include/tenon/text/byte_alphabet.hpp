#pragma once
// The characters that byte-level vocabularies write bytes in. Source: the GPT-2 encoder.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "../core/utf8.hpp"
#include "escaped_bytes.hpp"

namespace tenon::inline TENON_ABI {

// A byte that prints (of ASCII and Latin-1) is the character of that number; the other 68, in
// order, are U+0100 and on. "\u0120" is the space.
class ByteAlphabet {
 public:
  static std::uint32_t character(unsigned char byte) { return tables().characters[byte]; }

  // The bytes that a piece is written for; none when a character of it is not in the alphabet.
  static std::optional<std::string> bytes(std::string_view piece) {
    std::string out;
    while (!piece.empty()) {
      const Utf8Char c = utf8_front(piece);
      if (c.length == 0 || c.code >= tables().bytes.size() || tables().bytes[c.code] < 0)
        return std::nullopt;
      out += static_cast<char>(tables().bytes[c.code]);
      piece.remove_prefix(static_cast<std::size_t>(c.length));
    }
    return out;
  }
  // The bytes of a text written in the alphabet.
  static std::string write(std::string_view text) {
    std::string out;
    for (const char c : text) append_utf8(out, character(static_cast<unsigned char>(c)));
    return out;
  }

 private:
  struct Tables {
    std::array<std::uint32_t, 256> characters{};
    std::array<int, 0x144> bytes{};  // -1: not in the alphabet
  };
  static const Tables& tables() {
    static const Tables made = make();
    return made;
  }
  static Tables make() {
    Tables t;
    for (int& byte : t.bytes) byte = -1;
    std::uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool prints = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      t.characters[byte] = prints ? byte : next++;
      t.bytes[t.characters[byte]] = static_cast<int>(byte);
    }
    return t;
  }
};

}  // namespace tenon::inline TENON_ABI
