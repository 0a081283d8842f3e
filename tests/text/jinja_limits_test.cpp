// What a hostile template can take: its file may be small, what it makes of itself may not.
#include <tenon/text/jinja/template.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "allocations.hpp"
#include "catch.hpp"

namespace {

using namespace tenon;
using jinja::Dict;
using jinja::Template;
using jinja::TemplateError;

// A text of 2^n bytes, and lists and dicts that hold the one before twice, n times: `b`, `l`, `m`.
std::string doubled(int n) {
  return message("{% set ns = namespace(b='x') %}{% for i in range(", n,
                 ") %}{% set ns.b = ns.b + ns.b %}{% endfor %}{% set b = ns.b %}");
}
std::string shared(int n) {
  std::string text;
  for (const std::string name : {"l", "m"}) {
    text += message("{% set ns = namespace(l=[]) %}{% for i in range(", n,
                    ") %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{% set ", name, " = ns.l %}");
  }
  return text +
         message("{% set ns = namespace(l={}) %}{% for i in range(", n,
                 ") %}{% set ns.l = {'a': ns.l, 'b': ns.l} %}{% endfor %}{% set d = ns.l %}");
}
std::string endless(const std::string& body) {
  return "{% for i in range(99999) %}{% for j in range(99999) %}" + body +
         "{% endfor %}{% endfor %}";
}
// A chain of lists that keeps each value it is given.
std::string hoarding(const std::string& expression) {
  return "{% set ns = namespace(a=[]) %}" + endless("{% set ns.a = [ns.a, " + expression + "] %}");
}

struct Taken {
  std::string problem;  // empty: it was rendered
  std::size_t bytes = 0;
};
Taken taken(const std::string& source, const jinja::Limits& limits) {
  const Template parsed = Template::parse(source);
  Taken out;
  out.problem.reserve(1024);
  out.bytes = test::most_bytes_held_by([&] {
    try {
      parsed.render({{"u", jinja::user_text("x")}, {"one", Dict{{"k", 1}}}}, {.limits = limits})
          .segments();
    } catch (const TemplateError& error) {
      out.problem = error.reason();
    }
  });
  return out;
}

void ends_in(const std::string& source, std::string_view limit, const jinja::Limits& limits = {}) {
  INFO(source.substr(0, 1000));
  const Taken out = taken(source, limits);
  INFO(out.problem);
  CHECK(out.problem.find(limit) != std::string::npos);
  CHECK(out.bytes < std::size_t{64} << 20);
}

// Enough to see that what is looked at is counted, and to be quick with a sanitizer.
const jinja::Limits few_steps{.steps = 100'000};

TEST_CASE("values of shared parts are walked within limits") {
  for (const std::string value : {"l", "d"}) {
    for (const std::string use :
         {"{{ X }}", "{{ X ~ '' }}", "{{ X|string }}", "{{ X|tojson }}", "{{ X|tojson(indent=9) }}",
          "{{ X|upper }}", "{{ X|trim }}", "{{ X|e }}", "{{ X|center }}", "{{ X|wordcount }}",
          "{{ X|replace('a', 'b') }}", "{{ 1|replace(X, '') }}", "{{ [X]|join }}",
          "{{ [1]|join(X) }}", "{{ '%s' % (X,) }}", "{{ '%r' % (X,) }}", "{{ '{}'.format(X) }}",
          "{{ X is lower }}", "{{ raise_exception(X) }}"}) {
      std::string source = shared(30) + use;
      source.replace(source.rfind('X'), 1, value);
      ends_in(source, "at most", few_steps);
    }
  }
  for (const std::string use :
       {"{{ l == m }}", "{{ l != m }}", "{{ l < m }}", "{{ l <= m }}", "{{ m in [l] }}",
        "{{ l is eq m }}", "{{ l is sameas m }}", "{{ [l].count(m) }}", "{{ [l].index(m) }}",
        "{{ [[l, 1], [m, 2]]|sort }}", "{{ [[l, 1], [m, 2]]|max }}",
        "{{ [[l, 1], [m, 2]]|groupby(0) }}",
        "{{ ['a', 'b']|select('in', [[l], m, [m], l]) and l == m }}",
        "{% for i in [l, m] %}{{ loop.changed(i) }}{% endfor %}"}) {
    ends_in(shared(30) + use, "steps", few_steps);
  }
  // Not walked, or no more than is there.
  CHECK(taken(shared(30) + "{{ l|length }}{{ d|length }}{{ l is l }}", few_steps).problem ==
        "there is no test \"l\"");
  CHECK(taken(shared(30) + "{{ l|length }}{{ d|length }}{{ l and 1 }}", few_steps).problem.empty());
  CHECK(taken(shared(10) + "{{ l == m }}{{ l|tojson }}", {}).problem.empty());
}

TEST_CASE("texts are searched, compared and copied within limits") {
  for (const std::string use : {"'y' in b",
                                "b|length",
                                "b|count",
                                "b.count('y')",
                                "b.count(b ~ 'y')",
                                "b.find('y')",
                                "b.rfind('y')",
                                "b.index('x' ~ b)",
                                "b[-1]",
                                "b[i]",
                                "b[i:]",
                                "b == b",
                                "b < b",
                                "b.isalpha()",
                                "b is lower",
                                "b.startswith(b)",
                                "b.endswith((b, b))",
                                "one[b]",
                                "one.get(b)",
                                "b in one",
                                "{b: 1}",
                                "b is in [b]",
                                "'z'.strip(b)",
                                "b|int",
                                "b|float",
                                "b % ()",
                                "b.format()",
                                "(b ~ 'y').split(b)",
                                "b.replace('y', 'z')"}) {
    // All steps together may look at 6.4 MB.
    const Taken out = taken(doubled(17) + endless("{% set x = " + use + " %}"), few_steps);
    INFO(use << ": " << out.problem);
    CHECK(out.problem.find(use == "b.index('x' ~ b)" ? "must be there" : "at most") !=
          std::string::npos);
    CHECK(out.bytes < std::size_t{64} << 20);
  }
  // Quadratic: the first 2^19 bytes match from each of 2^19 places.
  for (const std::string use :
       {"(b ~ b).find(b ~ 'y')", "(b ~ b).rfind(b ~ 'y')", "(b ~ 'y') in (b ~ b)",
        "(b ~ b).replace(b ~ 'y', '')", "(b ~ b).split(b ~ 'y')", "(b ~ b).rsplit(b ~ 'y')",
        "(b ~ b).count(b ~ 'y')"})
    ends_in(doubled(19) + "{% set x = " + use + " %}", "steps");
  for (const std::string use : {"b.upper()",
                                "b|title",
                                "b.strip('y')",
                                "b|trim('y')",
                                "b.removeprefix('x')",
                                "b.removesuffix('y')",
                                "b ~ 'y'",
                                "b + 'y'",
                                "b * 2",
                                "b[1:]",
                                "b[::-1]",
                                "b|reverse",
                                "b|e",
                                "b.ljust(9)",
                                "b.zfill(9)",
                                "b|center(9)",
                                "b|indent",
                                "b|tojson",
                                "'%s' % b",
                                "'{}'.format(b)",
                                "[b]|join",
                                "[b]|string",
                                "b.splitlines()",
                                "b.split()",
                                "b|list",
                                "('\"' ~ b ~ '\"')|from_json",
                                "strftime_now(b)",
                                "{b: 1}.copy()",
                                "dict({b: 1})",
                                "[b]|sort|list and b|lower",
                                "[b, b ~ '']|unique|list"})
    ends_in(doubled(20) + endless("{% set x = " + use + " %}"), "at most");
}

TEST_CASE("what is kept is paid for") {
  for (const std::string use : {"one.get",    "missing",       "one.missing", "one['missing']",
                                "none if 1",  "loop.nextitem", "[]|first",    "''|last",
                                "'ab'[0]",    "'ab'|upper",    "one.items()", "one.copy()",
                                "dict(a=1)",  "namespace()",   "{1: 2}",      "[]",
                                "range(1)",   "'a' ~ 1",       "1|string",    "strftime_now('x')",
                                "loop.cycle", "range",         "'%s' % 1",    "'ab'.split()"})
    ends_in(hoarding(use), "at most");
  ends_in(hoarding("1") + "", "at most");
  ends_in("{% set ns = namespace(a=1) %}" +
              endless("{% for k in [1] %}{% set ns.a = [ns.a, loop] %}{% endfor %}"),
          "at most");
  ends_in(
      "{% macro m(a) %}{% macro n() %}{{ a }}{% endmacro %}{% endmacro %}" + endless("{{ m(1) }}"),
      "at most");
  for (const std::string base : {"one", "'x'", "[]", "{}"}) {
    for (const std::string filter : {"attribute='get'", "attribute='missing'", "'string'", "'list'",
                                     "'first'", "'tojson'", "'batch', 1", "'default', 1"}) {
      INFO(base << "|" << filter);
      const Taken out =
          taken("{{ ([" + base + "] * 400000)|map(" + filter + ")|list|length }}", {});
      CHECK(out.bytes < std::size_t{64} << 20);
    }
  }
  // A stretch of one origin takes more than its byte.
  for (const int n : {100'000, 1'000'000}) {
    const std::string times = message(n);
    CHECK(taken("{{ ('a' ~ u) * " + times + " }}", {}).bytes < std::size_t{64} << 20);
    CHECK(taken("{{ ('ab' * " + times + ")|replace('b', u) }}", {}).bytes < std::size_t{64} << 20);
    CHECK(taken("{{ ([u] * " + times + ")|join('a') }}", {}).bytes < std::size_t{64} << 20);
    CHECK(taken("{{ ([u] * " + times + ")|tojson }}", {}).bytes < std::size_t{64} << 20);
  }
  // Escapes of JSON are six times as long, its values take more than their text.
  ends_in("{{ ('\x01' * 8000000)|tojson }}", "bytes of values");
  ends_in("{{ ['\x01' * 16000000] }}", "bytes of values");
  for (const std::string item : {"[],", "{},", "1,", "\"\",", "{\"a\":1},"})
    ends_in("{{ ('[' ~ '" + item + "' * 1000000 ~ '1]')|from_json }}", "bytes of values");
}

TEST_CASE("filters that apply filters are levels too") {
  std::string names;
  for (int i = 0; i < 1000; ++i) names += "'map', ";
  const std::string deep =
      "{% set ns = namespace(l=[1]) %}{% for i in range(20000) %}{% set ns.l = [ns.l] %}{% endfor "
      "%}";
  ends_in(deep + "{{ ns.l|map(" + names + "'list')|list }}", "at once");
}

TEST_CASE("the clock is asked once") {
  int asked = 0;
  jinja::RenderOptions options;
  options.clock = [&] {
    ++asked;
    return std::tm{};
  };
  Template::parse("{% for i in range(9) %}{{ strftime_now('%S') }}{% endfor %}")
      .render({}, options);
  CHECK(asked == 1);
}

TEST_CASE("long conversations are no attack") {
  // 3 MB by a user, in one message and in many.
  const std::string_view source =
      "{% for m in messages %}<|{{ m.role }}|>{% if '</think>' in m.content %}{{ "
      "m.content.split('</think>')[-1].lstrip('\\n') }}{% else %}{{ m.content|trim }}{% endif %}{{ "
      "m.content|length }}{{ m.content.replace('a', 'bb')[:1] }}<|end|>{% endfor %}";
  for (const std::size_t count : {std::size_t{1}, std::size_t{10'000}}) {
    const std::string content(3'000'000 / count, 'a');
    std::vector<jinja::Value> list;
    for (std::size_t i = 0; i < count; ++i) {
      list.emplace_back(Dict{{"role", "user"}, {"content", jinja::user_text(content)}});
    }
    const auto out = Template::parse(source).render({{"messages", jinja::List(std::move(list))}});
    const std::string one = message("<|user|>", content, content.size(), "b<|end|>");
    CHECK(out.size() == one.size() * count);
    CHECK(out.view().substr(0, one.size()) == one);
  }
}

}  // namespace
