#pragma once
#include "utf8.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void Utf8Repair::push(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (missing_ > 0) {
      if (byte >= low_ && byte <= high_) {
        held_[size_++] = c;
        low_ = 0x80;
        high_ = 0xBF;
        if (--missing_ == 0) out.append(held_, size_);
        continue;
      }
      missing_ = 0;
      out += replacement_character;
    }
    start(c, out);
  }
}

TENON_INLINE void Utf8Repair::finish(std::string& out) {
  if (missing_ > 0) out += replacement_character;
  missing_ = 0;
}

TENON_INLINE void Utf8Repair::start(char c, std::string& out) {
  const detail::Utf8Lead lead = detail::utf8_lead(static_cast<unsigned char>(c));
  if (lead.length == 1) {
    out += c;
  } else if (lead.length == 0) {
    out += replacement_character;
  } else {
    held_[0] = c;
    size_ = 1;
    missing_ = lead.length - 1;
    low_ = lead.low;
    high_ = lead.high;
  }
}

TENON_INLINE std::string to_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  Utf8Repair repair;
  repair.push(bytes, out);
  repair.finish(out);
  return out;
}

}  // namespace tenon::inline TENON_ABI
