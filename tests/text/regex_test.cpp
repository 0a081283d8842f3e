// Expressions mean what Oniguruma makes of them, for which they were written.
#include <tenon/text/regex.hpp>

#include <string>
#include <vector>

#include "catch.hpp"
#include "vocabularies.hpp"

namespace {

using namespace vocabularies;

std::vector<std::string> matches(const std::string& expression, const std::string& text) {
  const Regex regex(expression);
  Regex::Matcher matcher(regex);
  std::vector<std::string> all;
  std::size_t from = 0;
  for (TextRange match; from <= text.size() && matcher.find(text, from, match);) {
    all.push_back(text.substr(match.begin, match.end - match.begin));
    from = match.end > match.begin ? match.end : match.end + 1;
  }
  return all;
}
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("classes are those of Unicode, not of PCRE2") {
  // White_Space has U+0085 and U+3000; U+180E left it long ago, and PCRE2 keeps it.
  CHECK(matches(R"(\s)", "a \u180E\u0085\u3000") == Words{" ", "\u0085", "\u3000"});
  CHECK(matches(R"(\S)", "a \u180E") == Words{"a", "\u180E"});
  CHECK(matches(R"([^\S\n]+)", " \n\u3000\u180E") == Words{" ", "\u3000"});
  // A word has marks and connectors, but no superscripts.
  CHECK(matches(R"(\w+)", "n\u0303_\u203F1 \u00B2") == Words{"n\u0303_\u203F1"});
  CHECK(matches(R"(\d+)", "12\u0663\u00B2") == Words{"12\u0663"});
  CHECK(matches(R"(\bx\b)", "x n\u0303x x") == Words{"x", "x"});
  CHECK(matches(R"(\p{Han}+)", "\u4F60\u597D\u3001\u3053") == Words{"\u4F60\u597D"});
  CHECK(matches(R"((?i:'s))", "'S'\u017F") == Words{"'S", "'\u017F"});
}

TEST_CASE("lines, classes in classes, braces") {
  CHECK(matches("b$", "b\nb") == Words{"b", "b"});
  CHECK(matches("^b", "b\nb") == Words{"b", "b"});
  CHECK(matches("a.", "a\na\r") == Words{"a\r"});
  CHECK(matches(R"( ?[^(\s|[.,!?])]+)", "a b.(c,d)") == Words{"a", " b", "c", "d"});
  CHECK(matches("a{2}", "aaaaa") == Words{"aa", "aa"});
  CHECK(matches(Regex::quoted("a.b*[c]{2}^$|\\"), "xa.b*[c]{2}^$|\\") == Words{"a.b*[c]{2}^$|\\"});
}

TEST_CASE("what would mean something else is refused") {
  for (const std::string expression :
       {R"(\h)",     R"(\H)",          R"(\R)",      R"(\X)",   R"(\K)", R"(\1)",   R"(\k<a>)",
        R"([a&&b])", R"([[:alpha:]])", R"([a[^b]])", "[]a]",    "a{,3}", "a{1,2}+", "(?<name>a)",
        "(?m:a)",    "(?#a)",          "(?R)",       "(",       ")",     "[",       "a**",
        R"(\)",      R"(\p{Foo})",     R"(\pL)",     R"([\W])", "\xFF",  "(?C1)a",  "(*COMMIT)a"}) {
    INFO(expression);
    const std::string error = message_of<LoadError>([&] { Regex regex{expression}; });
    CHECK(contains(error, "the regular expression \""));
  }
}

TEST_CASE("an expression that would take for ever gives up") {
  const Regex regex("(?:a|aa)+$");
  Regex::Matcher matcher(regex);
  TextRange match;
  const std::string text = std::string(5000, 'a') + "b";
  CHECK(contains(message_of<TokenizerError>([&] { matcher.find(text, 0, match); }),
                 "within PCRE2's limits"));
  // Groups that repeat over a long run only need room.
  CHECK(matches("(?:(?!b)[a-z])+", std::string(300'000, 'a')).size() == 1);
}
