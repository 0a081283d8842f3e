#pragma once
// Templates and what Jinja2 3.1.6 renders from them with the settings of Hugging Face and
// `jinja_variables`.
#include <string_view>

struct JinjaCase {
  std::string_view source, expected;
};

inline constexpr std::string_view jinja_variables =
    R"json({"n": 3, "x": 2.5, "s": "Hello World", "u": "naïve 日本", "t": "  pad\n", "e": "", "l": [3, 1, 2], "w": ["b", "A", "c"], "d": {"b": 1, "a": [true, null, "q'"]}, "o": [{"k": "x", "v": 1}, {"k": "y", "v": 2}, {"k": "x"}], "z": null, "yes": true})json";

inline constexpr JinjaCase jinja_cases[] = {
    {"{{ n }} {{ x }} {{ z }} {{ yes }} {{ missing }}|", "3 2.5 None True |"},
    {"{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ "
     "-2 ** 2 }}",
     "3 -4 1 2 3.5 3.0 1024 4"},
    {"{{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 0.1 + 0.2 }} {{ 1_000 }} {{ 2 ** -1 }} "
     "{{ 1 / 3 }}",
     "1e+16 1000000000000000.0 0.0001 1e-05 0.30000000000000004 1000 0.5 0.3333333333333333"},
    {"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ \"a\" < \"b\" }} {{ [1,2] < [1,3] }} {{ 1 == 1.0 }} {{ 1 "
     "== true }} {{ \"1\" == 1 }}",
     "True False True True True True False"},
    {"{{ \"a\" in s }} {{ \"World\" in s }} {{ 3 in l }} {{ 4 not in l }} {{ \"a\" in d }} {{ "
     "\"x\" in missing }}",
     "False True True True True False"},
    {"{{ not n }} {{ n and \"yes\" }} {{ z or \"no\" }} {{ \"a\" if z else \"b\" }} {{ \"a\" if z "
     "}}|",
     "False yes no b |"},
    {"{{ s[0] }} {{ s[-1] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[:-1] }} {{ s[20:] }}| {{ u[6:] }} {{ "
     "u[2] }} {{ u|length }}",
     "H d ell dlroW olleH Hello Worl | 日本 ï 8"},
    {"{{ l[1:] }} {{ l[::-1] }} {{ l[-2:] }} {{ l[::2] }} {{ l[9] }}| {{ l[-1] }} {{ (1,2,3)[1:] "
     "}}",
     "[1, 2] [2, 1, 3] [1, 2] [3, 2] | 2 (2, 3)"},
    {"{{ d.a }} {{ d[\"b\"] }} {{ d.missing }}| {{ d.get(\"b\") }} {{ d.get(\"c\") }} {{ "
     "d.get(\"c\", 5) }} {{ d.items()|list }} {{ d.keys()|list }}",
     "[True, None, \"q'\"] 1 | 1 None 5 [('b', 1), ('a', [True, None, \"q'\"])] ['b', 'a']"},
    {"{{ d }} {{ l }} {{ (1,) }} {{ () }} {{ {} }} {{ {1: \"a\", \"b\": none} }} {{ [\"it's\", "
     "'say \"x\"', \"both ' and \\\"\"] }}",
     "{'b': 1, 'a': [True, None, \"q'\"]} [3, 1, 2] (1,) () {} {1: 'a', 'b': None} [\"it's\", 'say "
     "\"x\"', 'both \\' and \"']"},
    {"{{ \"a\" ~ 1 ~ none ~ [1] }} {{ \"ab\" * 3 }} {{ [1] * 2 }} {{ [1] + [2] }} {{ \"a\" \"b\" "
     "}}",
     "a1None[1] ababab [1, 1] [1, 2] ab"},
    {"{{ s.upper() }} {{ s.lower() }} {{ s.title() }} {{ \"hELLO wORLD\".capitalize() }} {{ "
     "s.swapcase() }} {{ \"they're bill's\".title() }}",
     "HELLO WORLD hello world Hello World Hello world hELLO wORLD They'Re Bill'S"},
    {"[{{ t.strip() }}] [{{ t.lstrip() }}] [{{ t.rstrip() }}] [{{ \"xxaxx\".strip(\"x\") }}] [{{ "
     "\"abcxba\".rstrip(\"ab\") }}]",
     "[pad] [pad\n] [  pad] [a] [abcx]"},
    {"{{ \"a,b,,c\".split(\",\") }} {{ \" a  b c \".split() }} {{ \"a,b,c\".split(\",\", 1) }} {{ "
     "\"a,b,c\".rsplit(\",\", 1) }} {{ \" a b  c \".split(none, 1) }} {{ \"  a b c "
     "\".rsplit(maxsplit=1) }}",
     "['a', 'b', '', 'c'] ['a', 'b', 'c'] ['a', 'b,c'] ['a,b', 'c'] ['a', 'b  c '] ['  a b', 'c']"},
    {"{{ \"a\\nb\\r\\nc\\n\".splitlines() }} {{ \"\".splitlines() }} {{ \"\".split() }} {{ "
     "\"\".split(\",\") }}",
     "['a', 'b', 'c'] [] [] ['']"},
    {"{{ s.startswith(\"He\") }} {{ s.endswith((\"x\", \"ld\")) }} {{ s.find(\"o\") }} {{ "
     "s.rfind(\"o\") }} {{ s.find(\"z\") }} {{ s.count(\"l\") }} {{ s.index(\"W\") }}",
     "True True 4 7 -1 3 6"},
    {"{{ s.replace(\"l\", \"L\") }} {{ s.replace(\"l\", \"L\", 1) }} {{ \"ab\".replace(\"\", "
     "\"-\") }} {{ s|replace(\"o\", \"0\") }} {{ \"aaa\"|replace(\"a\", \"b\", 2) }}",
     "HeLLo WorLd HeLlo World -a-b- Hell0 W0rld bba"},
    {"{{ \"{} and {}\".format(1, \"x\") }} {{ \"{0}{0}{a}\".format(1, a=2) }} {{ \"{{}}\".format() "
     "}} {{ \"%s=%d %.2f%%\" % (\"a\", 3, 2.5) }} {{ \"%s\"|format(\"q\") }}",
     "1 and x 112 {} a=3 2.50% q"},
    {"{{ \", \".join([\"a\", \"b\"]) }} {{ l|join(\"-\") }} {{ l|join }} {{ o|join(\",\", "
     "attribute=\"k\") }} {{ \"7\".zfill(3) }} {{ \"-7\".zfill(4) }} {{ \"a\".ljust(3) }}| {{ "
     "\"a\".rjust(3) }}",
     "a, b 3-1-2 312 x,y,x 007 -007 a  |   a"},
    {"{{ \"12\".isdigit() }} {{ \"a1\".isalnum() }} {{ \"a\".isalpha() }} {{ \" \".isspace() }} {{ "
     "\"Ab\".isupper() }} {{ \"AB\".isupper() }} {{ \"\".isdigit() }}",
     "True True True True False True False"},
    {"{{ \"prefix\".removeprefix(\"pre\") }} {{ \"suffix\".removesuffix(\"fix\") }}", "fix suf"},
    {"{{ s|length }} {{ s|upper }} {{ s|lower }} {{ s|title }} {{ \"ab cd\"|capitalize }} {{ "
     "t|trim }}| {{ s|first }} {{ s|last }} {{ l|first }} {{ l|last }} {{ []|first }}|",
     "11 HELLO WORLD hello world Hello World Ab cd pad| H d 3 2 |"},
    {"{{ l|sort }} {{ l|sort(reverse=true) }} {{ w|sort }} {{ w|sort(case_sensitive=true) }} {{ "
     "o|sort(attribute=\"v\")|length if false else \"-\" }} {{ l|reverse|list }} {{ s|reverse }}",
     "[1, 2, 3] [3, 2, 1] ['A', 'b', 'c'] ['A', 'b', 'c'] - [2, 1, 3] dlroW olleH"},
    {"{{ l|min }} {{ l|max }} {{ l|sum }} {{ o[:2]|sum(attribute=\"v\") }} {{ w|min }} {{ []|max "
     "}}|",
     "1 3 6 3 A |"},
    {"{{ missing|default(\"d\") }} {{ e|default(\"d\") }}| {{ e|default(\"d\", true) }} {{ "
     "z|default(\"d\") }} {{ z|d(\"d\", true) }} {{ missing|d }}|",
     "d | d None d |"},
    {"{{ d|tojson }} {{ u|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ d|tojson(indent=2) }} {{ "
     "{\"b\":1,\"a\":2}|tojson(sort_keys=true) }} {{ [1,2]|tojson(separators=(\",\",\":\")) }} {{ "
     "[]|tojson(indent=2) }} {{ \"\\x7f\\x01\\\"\\\\/<>&'\"|tojson }}",
     "{\"b\": 1, \"a\": [true, null, \"q'\"]} \"naïve 日本\" \"na\\u00efve \\u65e5\\u672c\" {\n  "
     "\"b\": 1,\n  \"a\": [\n    true,\n    null,\n    \"q'\"\n  ]\n} {\"a\": 2, \"b\": 1} [1,2] "
     "[] \"\\u0001\\\"\\\\/<>&'\""},
    {"{{ \"🙂é\"|tojson(ensure_ascii=true) }} {{ 1.0|tojson }} {{ 1e20|tojson }} {{ {1: none, "
     "none: 2, true: 3}|tojson }}",
     "\"\\ud83d\\ude42\\u00e9\" 1.0 1e+20 {\"1\": 3, \"null\": 2}"},
    {"{{ o|map(attribute=\"k\")|list }} {{ w|map(\"upper\")|list }} {{ o|map(attribute=\"v\", "
     "default=0)|list }} {{ o|map(attribute=\"v\")|list }}",
     "['x', 'y', 'x'] ['B', 'A', 'C'] [1, 2, 0] [1, 2, Undefined]"},
    {"{{ o|selectattr(\"k\", \"equalto\", \"x\")|list|length }} {{ o|selectattr(\"v\", "
     "\"defined\")|list|length }} {{ o|rejectattr(\"k\", \"eq\", \"x\")|list }} {{ "
     "[0,1,2]|select|list }} {{ [1,2,3]|select(\"odd\")|list }} {{ [1,2,3]|reject(\"gt\", 1)|list "
     "}}",
     "2 2 [{'k': 'y', 'v': 2}] [1, 2] [1, 3] [1]"},
    {"{{ [\"b\",\"a\",\"B\"]|unique|list }} {{ o|groupby(\"k\")|length if false else \"g\" }} {{ "
     "d|dictsort }} {{ {\"b\":1,\"A\":2}|dictsort }} {{ {\"b\":1,\"a\":2}|dictsort(by=\"value\") "
     "}} {{ d|items|list }}",
     "['b', 'a'] g [('a', [True, None, \"q'\"]), ('b', 1)] [('A', 2), ('b', 1)] [('b', 1), ('a', "
     "2)] [('b', 1), ('a', [True, None, \"q'\"])]"},
    {"{{ \"42\"|int }} {{ \"x\"|int }} {{ \"x\"|int(7) }} {{ 3.9|int }} {{ \"2.5\"|float }} {{ "
     "\"x\"|float }} {{ 2.567|round(2) }} {{ 2.5|round }} {{ 2.1|round(method=\"ceil\") }} {{ "
     "-3|abs }} {{ -2.5|abs }}",
     "42 0 7 3 2.5 0.0 2.57 2.0 3.0 3 2.5"},
    {"{{ \"a\\nb\\n\\nc\"|indent }}| {{ \"a\\nb\"|indent(2, true) }}| {{ \"a<b>&\\\"'\"|e }} {{ "
     "\"a b c\"|wordcount }} {{ [1,2,3]|batch(2)|list }} {{ \"ab\"|center(6) }}| {{ \"ab\"|list }} "
     "{{ d|list }} {{ 5|string ~ \"\" }}",
     "a\n    b\n\n    c|   a\n  b| a&lt;b&gt;&amp;&#34;&#39; 3 [[1, 2], [3]]   ab  | ['a', 'b'] "
     "['b', 'a'] 5"},
    {"{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ z is none }} {{ n "
     "is number }} {{ x is float }} {{ n is integer }} {{ yes is boolean }} {{ yes is number }} {{ "
     "yes is integer }}",
     "True False True True True True True True True False"},
    {"{{ s is string }} {{ l is string }} {{ l is sequence }} {{ s is sequence }} {{ d is mapping "
     "}} {{ d is iterable }} {{ n is iterable }} {{ missing is iterable }} {{ missing is sequence "
     "}} {{ d.items() is sequence }}",
     "True False True True True True False True True False"},
    {"{{ n is odd }} {{ n is even }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ n is eq "
     "3 }} {{ n is in [3] }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ \"a\" is "
     "lower }} {{ \"A\" is upper }} {{ n is not none }} {{ not n is none }} {{ z is sameas none }}",
     "True False True False True True True False True True True True True True"},
    {"{% for i in l %}{{ loop.index }}/{{ loop.length }}:{{ i }}{{ \",\" if not loop.last }}{% "
     "endfor %} {% for i in [] %}x{% else %}empty{% endfor %}",
     "1/3:3,2/3:1,3/3:2 empty"},
    {"{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for i in l if i > 1 %}{{ "
     "loop.index0 }}{{ i }} {% endfor %} {% for c in \"ab\" %}{{ c }}.{% endfor %} {% for k in d "
     "%}{{ k }}{% endfor %}",
     "b=1;a=[True, None, \"q'\"]; 03 12  a.b. ba"},
    {"{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% "
     "endif %}{{ i }}{% endfor %} {{ range(3)|list }} {{ range(1, 10, 4)|list }} {{ range(3, 0, "
     "-1)|list }}",
     "0134 [0, 1, 2] [1, 5, 9] [3, 2, 1]"},
    {"{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {{ loop.first }}{{ "
     "loop.revindex }}{{ loop.revindex0 }} {% endfor %} {% for i in [1,1,2] %}{{ loop.changed(i) "
     "}}{{ loop.cycle(\"a\",\"b\") }}{% endfor %}",
     "<3>1 True32 3<1>2 False21 1<2> False10  TrueaFalsebTruea"},
    {"{% set a = 1 %}{% for i in l %}{% set a = i %}{% endfor %}{{ a }} {% set ns = namespace(a=1) "
     "%}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} {% if true %}{% set a = 9 "
     "%}{% endif %}{{ a }}",
     "1 7 9"},
    {"{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set c %}<{{ n }}>{% endset %}{{ c }}{{ c|length }} {% "
     "set g | upper %}abc{% endset %}{{ g }}",
     "12 <3>3 ABC"},
    {"{% macro m(a, b=\"B\", c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, 2) "
     "}}{{ m(a=3, c=4) }}{{ m() }}{{ m.name }} {% macro r(i) %}{{ i }}{% if i > 0 %}{{ r(i - 1) "
     "}}{% endif %}{% endmacro %}{{ r(3) }}",
     "[1BNone][12None][3B4][BNone]m 3210"},
    {"{% macro f() %}({{ caller() }}){% endmacro %}{% call f() %}in{% endcall %} {% macro h() %}{{ "
     "caller(1, 2) }}{% endmacro %}{% call(a, b) h() %}{{ a }}+{{ b }}{% endcall %} {% filter "
     "upper %}ab{{ n }}{% endfilter %} {% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}",
     "(in) 1+2 AB3 12"},
    {"{% if z %}1{% elif n == 3 %}2{% else %}3{% endif %} {# comment #}x {% raw %}{{ no }} {% if "
     "%}{% endraw %}|",
     "2 x {{ no }} {% if %}|"},
    {"{{ {\"a\": {\"b\": 1}}[\"a\"][\"b\"] }} {{ {\"a\": {\"b\": 1}}.a.b }} {{ [[1, 2], [3]][0][1] "
     "}} {{ o.0.k }} {{ \"x\" if n > 2 and not z else \"y\" }} {{ (n, x)|length }}",
     "1 1 2 x x 2"},
    {"{{ -n|abs }} {{ 2 + 3 * 4 }} {{ (2 + 3) * 4 }} {{ 10 - 4 - 3 }} {{ 2 ~ 3 + 4 if false else "
     "\"p\" }} {{ \"a\" ~ \"b\"|upper }} {{ 1 if true else 2 if false else 3 }} {{ not true or "
     "true }}",
     "3 14 20 3 p aB 1 True"},
    {"{{ \"\\u00e9\\x41\\t\\\\ \\' \\\" \\q\" }} {{ 'a' 'b' }} {{ \"a\\\nb\" }}",
     "éA\t\\ ' \" \\q ab ab"},
    {"a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
    {"a\n{%- if true -%}\n  b\n{%- endif %}\n\nc", "ab\nc"},
    {"  {{ n }}\n  {# c #}\n  x", "  3\n  x"},
    {"a {%+ if true %}\n b{% endif +%}\nc", "a  b\nc"},
    {"{{- n -}}\n x {{- n }}\n", "3x3"},
    {"  {%- set a = 1 %}\n\n  {{ a }}", "\n  1"},
    {"a\r\nb\rc\r\n", "a\nb\nc"},
    {"{% raw %}\n {{ x }}\n{% endraw %}\n y", "\n {{ x }}\n y"},
    {"{% for i in l %}\n  {{ i }}\n{% endfor %}\nend", "  3\n  1\n  2\nend"},
    {"\t{% if n %}x{% endif %} {% if n %}\n\ty\n{% endif %}", "x \ty\n"},
    {"{#- c -#}\n  x", "x"},
    {"a\n  {#+ c #}\n b", "a\n   b"},
};
