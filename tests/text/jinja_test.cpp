// The template engine: what Jinja2 renders, where errors are, whose text is whose, and limits.
#include <tenon/text/jinja/template.hpp>

#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "jinja_cases.hpp"
#include "sanitized.hpp"

namespace {

using namespace tenon;
using jinja::Dict;
using jinja::Template;
using jinja::TemplateError;
using jinja::Value;

std::string render(std::string_view source, const Dict& variables = {},
                   const jinja::RenderOptions& options = {}) {
  return std::string(Template::parse(source).render(variables, options).view());
}

// More than any test needs, but those without end.
const jinja::Limits quick{.made_bytes = std::size_t{1} << 24, .steps = 200'000};

// What goes wrong, and where.
struct Problem {
  std::string what, reason;
  int row = 0, column = 0;
  bool raised = false;
};
Problem problem(std::string_view source, const Dict& variables = {},
                const jinja::Limits& limits = quick) {
  try {
    render(source, variables, {.limits = limits});
  } catch (const TemplateError& error) {
    return {error.what(), error.reason(), error.row(), error.column(), error.raised()};
  }
  return {};
}
std::string syntax_problem(std::string_view source) {
  try {
    Template::parse(source);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Dict with_user(const std::string& text) {
  return {{"u", jinja::user_text(text)}};
}

// The rendered text with the stretches of users in brackets.
std::string origins(std::string_view source, const Dict& variables) {
  std::string out;
  for (const TextSegment& segment : Template::parse(source).render(variables).segments())
    out += segment.from_template ? segment.text : "[" + segment.text + "]";
  return out;
}

TEST_CASE("templates render as with Jinja2") {
  const Value variables = Value::parse_json(jinja_variables);
  for (const JinjaCase& one : jinja_cases) {
    INFO(one.source);
    Dict dict = variables.dict().copy();
    CHECK(render(one.source, dict) == one.expected);
  }
}

TEST_CASE("errors name the row and the column") {
  const Problem attribute = problem("a\n{{ missing.field }}");
  CHECK(attribute.row == 2);
  CHECK(attribute.column == 11);
  CHECK(
      attribute.what ==
      "chat template, row 2, column 11: \"missing\" is undefined; give messages and variables that "
      "the template has a rule for, or another template");
  const Problem sum = problem("{% if true %}\n  {{ 'a' + 1 }}{% endif %}");
  CHECK(sum.row == 2);
  CHECK(sum.column == 10);
  CHECK(has(sum.what, "no sum of text and an int"));
  CHECK(problem("{% for i in 5 %}{% endfor %}").row == 1);
  CHECK(problem("\n\n{{ 1 // 0 }}").row == 3);
  CHECK(has(problem("{{ none|length }}").what, "a length"));
  CHECK(has(problem("{{ 'x'|nothing }}").what, "no filter \"nothing\""));
  CHECK(has(problem("{{ 1 is nothing }}").what, "no test \"nothing\""));
  CHECK(has(problem("{% set a = [] %}{{ a.append(1) }}").what, "may not change values"));
  CHECK(has(problem("{{ missing() }}").what, "undefined"));
  CHECK(has(problem("{{ none[1:] }}").what, "sliced"));
  CHECK(has(problem("{{ missing|tojson }}").what, "undefined"));
  CHECK(has(problem("{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}").what, "at most 1"));
  CHECK(has(problem("{% macro m(a) %}{% endmacro %}{{ m(b=2) }}").what, "no parameter"));
  CHECK(has(problem("{% set a.b = 1 %}").what, "namespace"));
  CHECK(has(problem("{% set a, b = [1] %}").what, "2 values"));
  CHECK(has(problem("{{ 9223372036854775807 + 1 }}").what, "64 bits"));
  CHECK(has(problem("{{ [1] < ['a'] }}").what, "no order"));

  const Problem raised = problem("\n  {{ raise_exception('no ' ~ 'way') }}");
  CHECK(raised.raised);
  CHECK(raised.reason == "no way");
  CHECK(raised.row == 2);
  CHECK(has(raised.what, "it refuses these messages: no way"));
}

TEST_CASE("syntax errors name the row and the column") {
  CHECK(
      syntax_problem("a\nb {{ x") ==
      "chat template, row 2, column 3: this tag must end with \"}}\"; correct the template or give "
      "another");
  CHECK(has(syntax_problem("{% if x %}"), "row 1, column 11: {% endif %} is missing"));
  CHECK(has(syntax_problem("{# open"), "column 1: this comment must end"));
  CHECK(has(syntax_problem("{{ 'open }}"), "column 4: this text must end"));
  CHECK(has(syntax_problem("{{ a b }}"), "column 6: \"}}\" must follow here, not \"b\""));
  CHECK(has(syntax_problem("{{ ) }}"), "closes what is not open"));
  CHECK(has(syntax_problem("{{ $ }}"), "no expression has '$'"));
  CHECK(has(syntax_problem("{% include 'x' %}"), "\"include\" is not supported"));
  CHECK(has(syntax_problem("{% break %}"), "within a loop"));
  CHECK(has(syntax_problem("{% endif %}"), "\"endif\" is not supported here"));
  CHECK(has(syntax_problem("{% set true = 1 %}"), "cannot be assigned"));
  CHECK(has(syntax_problem("{{ f(a=1, 2) }}"), "must stand before"));
  CHECK(has(syntax_problem("{{ f(*a) }}"), "not supported"));
  CHECK(has(syntax_problem("{{ 99999999999999999999 }}"), "too large"));
  CHECK(has(syntax_problem("{% raw %} x"), "raw block must end"));
  CHECK(has(syntax_problem(std::string(std::size_t{1} << 21, 'x')), "at most 1048576 bytes"));
}

TEST_CASE("text of users stays theirs whatever happens to it") {
  const Dict u = with_user("  Ab,c\n");
  CHECK(origins("<s>{{ u }}</s>", u) == "<s>[  Ab,c\n]</s>");
  CHECK(origins("{{ u|trim }}{{ u.strip() ~ '!' }}", u) == "[Ab,cAb,c]!");
  CHECK(origins("{{ '(' + u[2:4] + ')' }}{{ u[::-1] }}", u) == "([Ab])[\nc,bA  ]");
  CHECK(origins("{{ u|upper }}{{ u.title() }}{{ u|replace('A', '<x>') }}", u) ==
        "[  AB,C\n  Ab,C\n  ]<x>[b,c\n]");
  CHECK(origins("{{ 'a-a'|replace('-', u.strip()) }}", u) == "a[Ab,c]a");
  CHECK(origins("{% for c in u.strip() %}{{ c }}.{% endfor %}", with_user("xy")) == "[x].[y].");
  CHECK(origins("{{ u.strip().split(',')|join('|') }}", u) == "[Ab]|[c]");
  CHECK(origins("{{ {'k': u}|tojson }}", with_user("a\"b")) == "{\"k\": \"[a\\\"b]\"}");
  CHECK(origins("{{ (u ~ '') * 2 }}{{ '%s' % u }}{{ '<{}>'.format(u) }}", with_user("x")) ==
        "[xxx]<[x]>");
  CHECK(origins("{{ [u] }}{{ u|string|indent }}", with_user("x")) == "['[x]'][x]");
  CHECK(origins("{% set b %}<{{ u }}>{% endset %}{{ b }}{% filter upper %}a{{ u }}{% endfilter %}",
                with_user("x")) == "<[x]>A[X]");
  CHECK(origins("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(u) }}{{ m(u)|length }}",
                with_user("x")) == "<[x]>3");
  CHECK(origins("{{ ('{\"a\":\"' ~ u ~ '\"}')|from_json }}", with_user("x")) == "{'[a]': '[x]'}");
  CHECK(origins("{{ u|e }}{{ u|list|first }}{{ u|reverse }}", with_user("<")) == "[&lt;<<]");
  CHECK(origins("{{ strftime_now(u) }}", with_user("%%")) == "[%]");
  CHECK(origins("{{ u|center(3) }}{{ u|default('d') }}{{ u if u else 'n' }}", with_user("x")) ==
        " [x] [xx]");
  CHECK(origins("{% for k, v in u|items %}{{ k }}={{ v }}{% endfor %}",
                {{"u", jinja::user_text(Value::parse_json("{\"a\": \"b\"}"))}}) == "[a]=[b]");
}

TEST_CASE("the clock is the caller's") {
  jinja::RenderOptions options;
  options.clock = [] {
    std::tm time{};
    time.tm_year = 126, time.tm_mon = 0, time.tm_mday = 2, time.tm_hour = 15, time.tm_min = 4;
    time.tm_sec = 5, time.tm_wday = 5, time.tm_yday = 1;
    return time;
  };
  CHECK(render("{{ strftime_now('%Y-%m-%d %H:%M:%S %B %b %A %a %y %j %I %p %-d %e %F %%') }}", {},
               options) ==
        "2026-01-02 15:04:05 January Jan Friday Fri 26 002 03 PM 2  2 2026-01-02 %");
}

TEST_CASE("JSON in and out") {
  const std::string text = R"({"a": [1, -2.5, true, null, "q\"\\\n\u00e9\ud83d\ude42"], "b": {}})";
  CHECK(Value::parse_json(text).to_json() ==
        "{\"a\": [1, -2.5, true, null, \"q\\\"\\\\\\né🙂\"], \"b\": {}}");
  for (const char* wrong : {"", "{", "[1,]", "{\"a\"}", "01", "1.", "\"\\x\"", "\"\\ud800\"", "nul",
                            "[1] 2", "\"a\nb\"", "+1", "{\"a\":1,}"}) {
    INFO(wrong);
    CHECK_THROWS_AS(Value::parse_json(wrong), RequestError);
  }
  CHECK_NOTHROW(Value::parse_json(std::string(100, '[') + std::string(100, ']')));
  CHECK_THROWS_AS(Value::parse_json(std::string(1000000, '[')), RequestError);
}

TEST_CASE("a hostile template ends in an error") {
  const auto nested = [](const std::string& open, int n, const std::string& middle,
                         const std::string& close) {
    std::string text;
    for (int i = 0; i < n; ++i) text += open;
    text += middle;
    for (int i = 0; i < n; ++i) text += close;
    return text;
  };
  CHECK(has(syntax_problem("{{ " + nested("(", 100000, "1", ")") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ " + nested("[", 100000, "1", "]") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ " + nested("not ", 100000, "1", "") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ " + nested("- ", 100000, "1", "") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ " + nested("1 if 1 else ", 50000, "1", "") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ " + nested("1 + ", 100000, "1", "") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ x" + nested(".a", 100000, "", "") + " }}"), "levels"));
  CHECK(has(syntax_problem("{{ x" + nested("|e", 100000, "", "") + " }}"), "levels"));
  CHECK(has(syntax_problem("{% set " + nested("(", 100000, "a", ")") + " = 1 %}"), "levels"));
  CHECK(has(syntax_problem(nested("{% if 1 %}", 20000, "", "{% endif %}")), "levels"));

  CHECK(has(problem("{% for i in range(100001) %}{% endfor %}").what, "100000"));
  CHECK(has(problem("{{ range(-9223372036854775807, 9223372036854775807) }}").what, "100000"));
  CHECK(
      has(problem("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}")
              .what,
          "at most"));
  CHECK(has(problem("{{ 'x' * 99999999999 }}").what, "bytes of values"));
  CHECK(has(problem("{{ [0] * 99999999999 }}").what, "bytes of values"));
  CHECK(has(
      problem("{% set ns = namespace(s='x') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
              "{% endfor %}")
          .what,
      "bytes of values"));
  CHECK(has(problem("{% for i in range(99999) %}{{ 'x' * 9999 }}{% endfor %}").what, "at most"));
  CHECK(has(problem("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").what, "at once"));
  CHECK(has(problem("{% macro m() %}{{ n() }}{% endmacro %}{% macro n() %}{{ m() }}{% endmacro %}"
                    "{{ m() }}")
                .what,
            "at once"));
  CHECK(has(
      problem("{% macro m(n) %}{% for i in range(9) %}{{ m(n - 1) if n }}{% endfor %}{% endmacro %}"
              "{{ m(30) }}")
          .what,
      "at most"));
  CHECK(has(problem("{{ 'a'|center(999999999999) }}{{ 'a'.ljust(999999999999) }}").what, "bytes"));
  CHECK(has(problem("{{ 'aaaa'|replace('', 'x' * 99999999) }}").what, "bytes"));
  CHECK(has(problem("{{ [1]|batch(99999999999, 0)|list }}").what, "bytes"));
  CHECK(has(problem("{{ 2 ** 99999999 }}").what, "64 bits"));
  // Values so deep that nothing may walk them by recursion, not even to free them.
  const std::string deep =
      "{% set ns = namespace(a=[]) %}{% for i in range(20000) %}{% set ns.a = [ns.a] %}{% endfor "
      "%}";
  CHECK(render(deep + "x") == "x");
  CHECK(has(problem(deep + "{{ ns.a }}").what, "levels"));
  CHECK(has(problem(deep + "{{ ns.a|tojson }}").what, "levels"));
  CHECK(has(problem(deep + "{{ ns.a == [ns.a] }}").what, "levels"));
  // Values that hold themselves are freed too (a leak sanitizer looks).
  CHECK(render("{% set ns = namespace() %}{% set ns.self = [ns] %}x") == "x");
  CHECK(render("{% for i in [1] %}{{ loop.changed(loop) }}{% endfor %}") == "True");
  CHECK(render("{% set ns = namespace() %}{% macro m() %}{% set b = ns %}{% endmacro %}{% set ns.m "
               "= m %}"
               "{{ m() }}x") == "x");

  jinja::Limits small;
  small.steps = 100;
  CHECK(has(problem("{% for i in range(99) %}{{ i }}{% endfor %}", {}, small).what, "100 steps"));
  small = {};
  CHECK(small.steps == 5'000'000);
  small.output_bytes = 10;
  CHECK(has(problem("01234567890", {}, small).what, "10 bytes of output"));
}

// Every step may be small and what it looks at large: time is bounded by bytes as well.
TEST_CASE("a template of few nodes cannot work for long") {
  const auto ends = [](const std::string& source) {
    INFO(source);
    const std::clock_t start = std::clock();
    const std::string what = problem(source).what;
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    CHECK(has(what, "at most"));
#if defined(__OPTIMIZE__) && !defined(TENON_SANITIZED)
    CHECK(seconds < 5);
#else
    static_cast<void>(seconds);
#endif
  };
  // Forty lists, each of which holds the one before it twice.
  const std::string shared =
      "{% set ns = namespace(a=['x']) %}{% for i in range(40) %}{% set ns.a = [ns.a, ns.a] %}"
      "{% endfor %}";
  for (const char* use :
       {"{{ ns.a }}", "{{ ns.a ~ 'x' }}", "{{ ns.a|tojson }}", "{{ ns.a|tojson(indent=2) }}",
        "{{ ns.a == ns.a }}", "{{ ns.a != ns.a }}", "{{ ns.a < ns.a }}", "{{ ns.a in [ns.a] }}",
        "{{ [ns.a].count(ns.a) }}", "{{ [ns.a, ns.a]|max }}", "{{ [ns.a, ns.a]|sort }}",
        "{{ ns.a is eq(ns.a) }}", "{{ '%s' % [ns.a] }}", "{{ '{}'.format(ns.a) }}",
        "{{ [ns.a]|join }}", "{{ ns.a|upper }}", "{{ ns.a is lower }}"})
    ends(shared + use);
  CHECK(render(shared + "{{ 'x'[ns.a] }}").empty());

  const std::string text = "{% set t = 'a' * 4000000 %}{% set u = 'a' * 4000000 %}";
  for (const char* use :
       {"t|length", "t|count", "t.find('ab')", "'ab' in t", "t.count('b')", "t|upper", "t.strip()",
        "t|trim", "t[3999999]", "t == u", "t < u", "t is lower", "t.islower()", "t.startswith('b')",
        "t.removeprefix('a')|length", "t|int", "t|wordcount", "t.split('b')|length"})
    ends(text + "{% for i in range(99999) %}{% if " + use + " %}{% endif %}{% endfor %}");
  ends(text +
       "{% set ns = namespace(kept=[]) %}{% for i in range(9999) %}"
       "{% set ns.kept = [ns.kept, t.upper()] %}{% endfor %}");
  ends(
      "{% set d = {'a': 1, 'b': 2} %}{% set ns = namespace(kept=[]) %}{% for i in range(99999) %}"
      "{% for j in range(99) %}{% set ns.kept = [ns.kept, d.copy()] %}{% endfor %}{% endfor %}");
  for (const char* use : {"t.find('a' * 2000000 ~ 'b')", "('a' * 2000000 ~ 'b') in t",
                          "t.count('a' * 2000000 ~ 'b')", "t.replace('a' * 2000000 ~ 'b', '')",
                          "t.split('a' * 2000000 ~ 'b')", "t.strip('b' * 100000 ~ 'a')"})
    ends(text + "{{ (" + use + ")|length }}");
}

}  // namespace
