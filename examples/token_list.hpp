#pragma once
// Token ids on a command line: "1,403,407".
#include <charconv>
#include <span>
#include <string>
#include <string_view>
#include <tenon/core/error.hpp>
#include <tenon/core/types.hpp>
#include <vector>

// RequestError naming the first entry that is not a whole number.
inline std::vector<tenon::Token> token_list(std::string_view text) {
  std::vector<tenon::Token> ids;
  while (!text.empty()) {
    const std::string_view entry = text.substr(0, text.find(','));
    tenon::Token id = 0;
    const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), id);
    if (error != std::errc{} || end != entry.data() + entry.size()) {
      tenon::fail<tenon::RequestError>(
          "token ids must be whole numbers separated by commas, entry ", ids.size(), " is \"",
          tenon::printable(entry), "\"; write them like 1,403,407");
    }
    ids.push_back(id);
    text.remove_prefix((std::min)(text.size(), entry.size() + 1));
  }
  return ids;
}

inline std::string token_text(std::span<const tenon::Token> ids) {
  std::string text;
  for (const tenon::Token id : ids) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}
