#pragma once
#include <algorithm>
#include <array>

#include "regex.hpp"

#if defined(TENON_WITH_TEXT)
#include <pcre2.h>
#endif

namespace tenon::inline TENON_ABI {

namespace detail {

// Rewrites one expression; see Regex.
class OnigurumaToPcre2 {
 public:
  explicit OnigurumaToPcre2(std::string_view expression) : all_(expression), rest_(expression) {}

  std::string run() {
    while (!rest_.empty()) {
      const char c = take();
      if (c == '\\') {
        escape(false);
      } else if (c == '[') {
        character_class();
      } else if (c == '(' && starts("?")) {
        group();
      } else if (c == '(' && starts("*")) {
        refuse("(*");
      } else if (c == '{' && starts(",")) {
        refuse("{,n}");
      } else {
        if (c == '}' && starts("+")) refuse("a repetition of {n,m}");
        out_ += c;
      }
    }
    return std::move(out_);
  }

 private:
  static constexpr std::string_view space =
      "\\x{9}-\\x{D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}"
      "\\x{205F}\\x{3000}";
  static constexpr std::string_view word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";

  char take() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  bool starts(std::string_view text) const { return rest_.substr(0, text.size()) == text; }
  [[noreturn]] void refuse(std::string_view what) const {
    fail<LoadError>("the regular expression \"", printable(all_),
                    "\" of a tokenizer must use constructs that are implemented, it has ",
                    printable(what), "; this tokenizer cannot be used");
  }
  template <class... Parts>
  void put(const Parts&... parts) {
    (out_.append(std::string_view(parts)), ...);
  }

  // After the backslash.
  void escape(bool in_class) {
    if (rest_.empty()) refuse("a backslash at its end");
    const char c = take();
    switch (c) {
      case 's':
        return in_class ? put(space) : put("[", space, "]");
      case 'S':
        return in_class ? put("\\P{White_Space}") : put("[^", space, "]");
      case 'd':
        return put("\\p{Nd}");
      case 'D':
        return put("\\P{Nd}");
      case 'w':
        return in_class ? put(word) : put("[", word, "]");
      case 'W':
        if (in_class) refuse("\\W in a class");
        return put("[^", word, "]");
      case 'b':
      case 'B': {
        if (in_class) refuse("\\b in a class");
        const bool edge = c == 'b';
        return put("(?:(?<=[", word, "])(?", edge ? "!" : "=", "[", word, "])|(?<![", word, "])(?",
                   edge ? "=" : "!", "[", word, "]))");
      }
      case 'p':
      case 'P':
        return property(c);
      case 'x':
        return put("\\x");
      case 'u': {
        const std::string_view digits = rest_.substr(0, 4);
        if (digits.size() < 4) refuse("\\u without four digits");
        rest_.remove_prefix(4);
        return put("\\x{", digits, "}");
      }
      case 'A':
      case 'z':
      case 'G':
        if (in_class) refuse("an anchor in a class");
        [[fallthrough]];
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        out_ += '\\';
        out_ += c;
        return;
      case 'v':
        return put("\\x{B}");
      default:
        break;
    }
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (letter) refuse(std::string("\\") + c);
    if (byte < 0x80) out_ += '\\';
    out_ += c;
  }

  // \p{Name}, \P{Name}, \p{^Name}; PCRE2's scripts are Unicode's extended ones unless told
  // otherwise.
  void property(char c) {
    const std::size_t end = rest_.find('}');
    if (!starts("{") || end == std::string_view::npos) refuse("\\p without a name in braces");
    std::string_view name = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    const bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    const bool category = (name.size() == 1 || name.size() == 2) && name.find('&') == name.npos;
    struct Long {
      std::string_view name, category;
    };
    constexpr Long long_names[] = {{"Letter", "L"},      {"Mark", "M"},  {"Number", "N"},
                                   {"Punctuation", "P"}, {"Punct", "P"}, {"Symbol", "S"},
                                   {"Separator", "Z"}};
    std::string written = category ? std::string(name) : "sc:" + std::string(name);
    for (const Long& entry : long_names) {
      if (name == entry.name) written = entry.category;
    }
    put(std::string("\\") + ((c == 'P') != negated ? 'P' : 'p'), "{", written, "}");
  }

  // A class inside a class adds its characters to it.
  void character_class() {
    out_ += '[';
    if (starts("^")) out_ += take();
    int depth = 1;
    for (bool first = true; depth > 0; first = false) {
      if (rest_.empty()) refuse("a class without its end");
      if (starts("&&")) refuse("an intersection of classes");
      const char c = take();
      if (c == ']') {
        if (first) refuse("an empty class");
        if (--depth == 0) out_ += c;
      } else if (c == '[') {
        if (starts(":") || starts("^") || starts("]"))
          refuse("a POSIX or negated class inside a class");
        ++depth;
      } else if (c == '\\') {
        escape(true);
      } else {
        out_ += c;
      }
    }
  }

  // After "(", before "?".
  void group() {
    constexpr std::string_view heads[] = {"?:", "?=", "?!", "?<=", "?<!", "?>", "?i:", "?i)"};
    for (const std::string_view head : heads) {
      if (!starts(head)) continue;
      put("(", head);
      rest_.remove_prefix(head.size());
      return;
    }
    refuse(std::string("(") + std::string(rest_.substr(0, 3)));
  }

  std::string_view all_, rest_;
  std::string out_;
};

}  // namespace detail

TENON_INLINE std::string Regex::translated(std::string_view expression) {
  return detail::OnigurumaToPcre2(expression).run();
}

TENON_INLINE std::string Regex::quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool syntax = std::string_view("\\^$.|?*+()[]{}-&").find(c) != std::string_view::npos;
    if (syntax) out += '\\';
    out += c;
  }
  return out;
}

#if defined(TENON_WITH_TEXT)

struct Regex::Compiled {
  std::string expression;
  pcre2_code* code = nullptr;
  bool jit = false;

  Compiled() = default;
  ~Compiled() { pcre2_code_free(code); }
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
};

TENON_INLINE Regex::Regex(std::string_view expression) {
  constexpr std::size_t longest = std::size_t{1} << 16;
  if (expression.size() > longest || !is_utf8(expression)) {
    fail<LoadError>("the regular expression \"", printable(expression.substr(0, 80)),
                    "\" of a tokenizer must be UTF-8 of at most ", longest, " bytes, it has ",
                    expression.size(), "; the file is damaged or hostile");
  }
  const std::string pattern = translated(expression);
  auto compiled = std::make_shared<Compiled>();
  compiled->expression = expression;
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::unique_ptr<pcre2_compile_context, decltype(&pcre2_compile_context_free)> context(
      pcre2_compile_context_create(nullptr), &pcre2_compile_context_free);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  compiled->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK,
                                 &error, &at, context.get());
  if (compiled->code == nullptr) {
    std::array<PCRE2_UCHAR, 160> text{};
    pcre2_get_error_message(error, text.data(), text.size());
    fail<LoadError>("the regular expression \"", printable(expression),
                    "\" of a tokenizer must be one that PCRE2 compiles, it says: ",
                    reinterpret_cast<const char*>(text.data()), "; this tokenizer cannot be used");
  }
  compiled->jit = pcre2_jit_compile(compiled->code, PCRE2_JIT_COMPLETE) == 0;
  compiled_ = std::move(compiled);
}

TENON_INLINE Regex::Matcher::Matcher(const Regex& regex)
    : regex_(regex),
      data_(pcre2_match_data_create_from_pattern(regex.compiled_->code, nullptr)),
      context_(pcre2_match_context_create(nullptr)) {
  // One match of a published expression over a run of n characters takes some n steps.
  pcre2_set_match_limit(static_cast<pcre2_match_context*>(context_), 50'000'000);
  pcre2_set_heap_limit(static_cast<pcre2_match_context*>(context_), 256 * 1024);
}

TENON_INLINE Regex::Matcher::~Matcher() {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(data_));
  pcre2_match_context_free(static_cast<pcre2_match_context*>(context_));
  pcre2_jit_stack_free(static_cast<pcre2_jit_stack*>(stack_));
}

TENON_INLINE bool Regex::Matcher::find(std::string_view text, std::size_t from, TextRange& match) {
  const Compiled& compiled = *regex_.compiled_;
  auto* const data = static_cast<pcre2_match_data*>(data_);
  const auto* const subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  int found = 0;
  if (compiled.jit) {
    found = pcre2_jit_match(compiled.code, subject, text.size(), from, 0, data,
                            static_cast<pcre2_match_context*>(context_));
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = retry(text, from);
  } else {
    found = pcre2_match(compiled.code, subject, text.size(), from, PCRE2_NO_UTF_CHECK, data,
                        static_cast<pcre2_match_context*>(context_));
  }
  if (found == PCRE2_ERROR_NOMATCH) return false;
  if (found < 0) {
    fail<TokenizerError>("the regular expression \"", printable(compiled.expression),
                         "\" must match a text within PCRE2's limits, on this one it gives error ",
                         found, "; encode the text in parts");
  }
  const PCRE2_SIZE* const bounds = pcre2_get_ovector_pointer(data);
  match = {bounds[0], (std::max)(bounds[0], bounds[1])};
  return true;
}

// Groups that repeat over a long run take a stack in proportion to it.
TENON_INLINE int Regex::Matcher::retry(std::string_view text, std::size_t from) {
  auto* const context = static_cast<pcre2_match_context*>(context_);
  if (stack_ == nullptr) {
    stack_ = pcre2_jit_stack_create(std::size_t{1} << 16, std::size_t{1} << 28, nullptr);
    pcre2_jit_stack_assign(context, nullptr, stack_);
  }
  return pcre2_jit_match(regex_.compiled_->code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                         text.size(), from, 0, static_cast<pcre2_match_data*>(data_), context);
}

#else

struct Regex::Compiled {};

TENON_INLINE Regex::Regex(std::string_view expression) {
  fail<LoadError>("a tokenizer with the regular expression \"", printable(expression),
                  "\" needs PCRE2, and this program was built without it; link the CMake target ",
                  "tenon::text (PCRE2 and utf8proc)");
}
TENON_INLINE Regex::Matcher::Matcher(const Regex& regex) : regex_(regex) {}
TENON_INLINE Regex::Matcher::~Matcher() = default;
TENON_INLINE bool Regex::Matcher::find(std::string_view, std::size_t, TextRange&) {
  return false;
}
TENON_INLINE int Regex::Matcher::retry(std::string_view, std::size_t) {
  return 0;
}

#endif

}  // namespace tenon::inline TENON_ABI
