#pragma once
// The part of the parser that reads expressions.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "syntax.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {
namespace detail {

// Recursive descent in the order of Jinja's own precedence, from `x if y else z` down to a name.
class ExpressionParser {
 protected:
  explicit ExpressionParser(const Source& source) : source_(source), lexemes_(lex(source)) {}

  using Kind = Lexeme::Kind;
  static constexpr int most_nested = 100;  // parentheses, blocks and the like
  static constexpr int most_depth = 500;   // levels of nodes; a sum of n terms has n

  struct Nested {
    explicit Nested(ExpressionParser& owner) : parser(owner) {
      if (++parser.nested_ > most_nested)
        parser.wrong(message("more than ", most_nested, " levels"));
    }
    ~Nested() { --parser.nested_; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ExpressionParser& parser;
  };

  const Lexeme& now() const { return lexemes_[at_]; }
  const Lexeme& next() const { return lexemes_[at_ + 1 < lexemes_.size() ? at_ + 1 : at_]; }
  [[noreturn]] void wrong(std::string_view what) const { source_.fail_syntax(now().at, what); }
  [[noreturn]] void unexpected(std::string_view wanted) const {
    const Kind kind = now().kind;
    const bool written = kind == Kind::name || kind == Kind::sign;
    wrong(message(wanted, " must follow here, not ",
                  written             ? "\"" + printable(now().text) + "\""
                  : kind == Kind::end ? "the end of the template"
                  : kind == Kind::tag_end || kind == Kind::output_end ? "the end of the tag"
                                                                      : "this"));
  }
  bool skip(Kind kind, std::string_view text) {
    if (!now().is(kind, text)) return false;
    ++at_;
    return true;
  }
  bool sign(std::string_view text) { return skip(Kind::sign, text); }
  bool word(std::string_view text) { return skip(Kind::name, text); }
  void need(std::string_view text) {
    if (!sign(text)) unexpected(message('"', text, '"'));
  }
  void end_tag() {
    if (now().kind != Kind::tag_end) unexpected("\"%}\"");
    ++at_;
  }
  int name() {
    if (now().kind != Kind::name) unexpected("a name");
    return intern(lexemes_[at_++].text);
  }
  int intern(const std::string& text) {
    const auto [place, added] = places_.emplace(text, static_cast<int>(out_.names.size()));
    if (added) out_.names.push_back(text);
    return place->second;
  }
  int make(Op op, std::size_t at, std::vector<int> kids = {}, int name = -1,
           std::vector<int> names = {}) {
    Node node{op, static_cast<std::uint32_t>(at), name, std::move(kids), std::move(names)};
    for (const int kid : node.kids) {
      if (kid >= 0) node.depth = (std::max)(node.depth, out_.node(kid).depth + 1);
    }
    if (node.depth > most_depth)
      source_.fail_syntax(at, message("more than ", most_depth, " levels of expressions"));
    out_.nodes.push_back(std::move(node));
    return static_cast<int>(out_.nodes.size()) - 1;
  }
  int constant(std::size_t at, Value value) {
    const int node = make(Op::constant, at);
    out_.nodes.back().value = std::move(value);
    return node;
  }

  // What is assigned to: a name, a field of a namespace, or several names.
  int targets() {
    const std::size_t at = now().at;
    std::vector<int> kids;
    const bool enclosed = sign("(");
    do {
      if (enclosed ? now().is(Kind::sign, ")") : now().is(Kind::name, "in")) break;
      kids.push_back(target());
    } while (sign(","));
    if (enclosed) need(")");
    const bool one = kids.size() == 1 && !lexemes_[at_ - 1].is(Kind::sign, ",");
    return one ? kids[0] : make(Op::tuple, at, std::move(kids));
  }
  int target() {
    const Nested nested(*this);
    if (now().is(Kind::sign, "(")) return targets();
    const std::size_t at = now().at;
    const int base = name();
    constexpr std::string_view reserved[] = {"true", "false", "none", "True", "False", "None"};
    for (const std::string_view word : reserved) {
      if (out_.name(base) == word) wrong(message("\"", word, "\" cannot be assigned to"));
    }
    if (sign(".")) return make(Op::space_field, at, {}, base, {base, name()});
    return make(Op::name, at, {}, base);
  }

  // One expression, or a tuple of several with commas between.
  template <class One>
  int tuple_of(One one) {
    const std::size_t at = now().at;
    int first = one();
    if (!now().is(Kind::sign, ",")) return first;
    std::vector<int> kids = {first};
    while (sign(",")) {
      const Kind kind = now().kind;
      if (kind == Kind::tag_end || kind == Kind::output_end || now().is(Kind::sign, ")")) break;
      kids.push_back(one());
    }
    return make(Op::tuple, at, std::move(kids));
  }
  int tuple_or_one() {
    return tuple_of([&] { return expression(); });
  }
  int expression() {
    const Nested nested(*this);
    const std::size_t at = now().at;
    int value = disjunction();
    while (word("if")) {
      const int condition = disjunction();
      const int otherwise = word("else") ? expression() : -1;
      value = make(Op::conditional, at, {condition, value, otherwise});
    }
    return value;
  }
  int disjunction() {
    int left = conjunction();
    for (std::size_t at = now().at; word("or"); at = now().at)
      left = make(Op::logical_or, at, {left, conjunction()});
    return left;
  }
  int conjunction() {
    int left = negation();
    for (std::size_t at = now().at; word("and"); at = now().at)
      left = make(Op::logical_and, at, {left, negation()});
    return left;
  }
  int negation() {
    const Nested nested(*this);
    const std::size_t at = now().at;
    if (word("not")) return make(Op::logical_not, at, {negation()});
    std::vector<int> kids = {sum()}, signs;
    for (;;) {
      std::string compared;
      for (const std::string_view s : {"==", "!=", "<", "<=", ">", ">="}) {
        if (compared.empty() && sign(s)) compared = s;
      }
      if (compared.empty() && word("in")) compared = "in";
      if (compared.empty() && now().is(Kind::name, "not") && next().is(Kind::name, "in")) {
        at_ += 2;
        compared = "not in";
      }
      if (compared.empty()) break;
      signs.push_back(intern(compared));
      kids.push_back(sum());
    }
    if (signs.empty()) return kids[0];
    return make(Op::compare, at, std::move(kids), -1, std::move(signs));
  }
  int sum() {
    int left = concat();
    for (std::size_t at = now().at;; at = now().at) {
      if (sign("+")) {
        left = make(Op::add, at, {left, concat()});
      } else if (sign("-")) {
        left = make(Op::subtract, at, {left, concat()});
      } else {
        return left;
      }
    }
  }
  int concat() {
    const std::size_t at = now().at;
    std::vector<int> kids = {product()};
    while (sign("~")) kids.push_back(product());
    return kids.size() == 1 ? kids[0] : make(Op::concat, at, std::move(kids));
  }
  int product() {
    int left = power();
    for (std::size_t at = now().at;; at = now().at) {
      if (sign("*")) {
        left = make(Op::multiply, at, {left, power()});
      } else if (sign("//")) {
        left = make(Op::floor_divide, at, {left, power()});
      } else if (sign("/")) {
        left = make(Op::divide, at, {left, power()});
      } else if (sign("%")) {
        left = make(Op::modulo, at, {left, power()});
      } else {
        return left;
      }
    }
  }
  int power() {
    int left = unary(true);
    for (std::size_t at = now().at; sign("**"); at = now().at)
      left = make(Op::power, at, {left, unary(true)});
    return left;
  }
  int unary(bool with_filters) {
    const Nested nested(*this);
    const std::size_t at = now().at;
    int node = -1;
    if (sign("-")) {
      node = make(Op::negate, at, {unary(false)});
    } else if (sign("+")) {
      node = make(Op::plus, at, {unary(false)});
    } else {
      node = primary();
    }
    node = postfix(node);
    while (with_filters) {
      if (now().is(Kind::sign, "|")) {
        node = filter(node);
      } else if (now().is(Kind::name, "is")) {
        node = test(node);
      } else if (now().is(Kind::sign, "(")) {
        node = call(Op::call, now().at, {node});
      } else {
        break;
      }
    }
    return node;
  }
  int primary() {
    const Lexeme& lexeme = now();
    const std::size_t at = lexeme.at;
    switch (lexeme.kind) {
      case Kind::name: {
        ++at_;
        const std::string& text = lexeme.text;
        if (text == "true" || text == "True") return constant(at, true);
        if (text == "false" || text == "False") return constant(at, false);
        if (text == "none" || text == "None") return constant(at, nullptr);
        return make(Op::name, at, {}, intern(text));
      }
      case Kind::text: {
        std::string text;
        while (now().kind == Kind::text) text += lexemes_[at_++].text;
        return constant(at, std::move(text));
      }
      case Kind::integer:
        ++at_;
        return constant(at, lexeme.integer);
      case Kind::real:
        ++at_;
        return constant(at, lexeme.real);
      default:
        break;
    }
    if (sign("(")) {
      if (sign(")")) return make(Op::tuple, at);
      const int inside = tuple_or_one();
      need(")");
      return inside;
    }
    const bool is_list = sign("[");
    if (!is_list && !sign("{")) unexpected("a value");
    const std::string_view close = is_list ? "]" : "}";
    std::vector<int> kids;
    while (!sign(close)) {
      if (!kids.empty()) need(",");
      if (sign(close)) break;
      kids.push_back(expression());
      if (is_list) continue;
      need(":");
      kids.push_back(expression());
    }
    return make(is_list ? Op::list : Op::dict, at, std::move(kids));
  }
  int postfix(int node) {
    for (;;) {
      const std::size_t at = now().at;
      if (sign(".")) {
        if (now().kind == Kind::integer) {
          node = make(Op::item, at, {node, constant(now().at, now().integer)});
          ++at_;
        } else {
          node = make(Op::attribute, at, {node}, name());
        }
      } else if (sign("[")) {
        node = subscript(at, node);
      } else if (now().is(Kind::sign, "(")) {
        node = call(Op::call, at, {node});
      } else {
        return node;
      }
    }
  }
  int subscript(std::size_t at, int of) {
    int parts[3] = {-1, -1, -1};
    int colons = 0;
    while (!now().is(Kind::sign, "]")) {
      if (colons < 2 && sign(":")) {
        ++colons;
      } else if (parts[colons] < 0) {
        parts[colons] = expression();
      } else {
        unexpected("\"]\"");
      }
    }
    ++at_;
    if (colons > 0) return make(Op::slice, at, {of, parts[0], parts[1], parts[2]});
    if (parts[0] < 0) source_.fail_syntax(at, "an index must stand between \"[\" and \"]\"");
    return make(Op::item, at, {of, parts[0]});
  }
  // Arguments in parentheses, added to those that are there.
  int call(Op op, std::size_t at, std::vector<int> kids, int called = -1) {
    need("(");
    std::vector<int> names;
    const std::size_t before = kids.size();
    while (!sign(")")) {
      if (kids.size() > before) need(",");
      if (sign(")")) break;
      if (now().is(Kind::sign, "*") || now().is(Kind::sign, "**"))
        wrong("arguments from a list or dict are not supported");
      if (now().kind == Kind::name && next().is(Kind::sign, "=")) {
        names.push_back(name());
        ++at_;
      } else if (!names.empty()) {
        wrong("an argument without a name must stand before those with one");
      }
      kids.push_back(expression());
    }
    return make(op, at, std::move(kids), called, std::move(names));
  }
  int filter(int input) {
    need("|");
    return filter_named(input);
  }
  int filter_named(int input) {
    const std::size_t at = now().at;
    const int called = name();
    if (now().is(Kind::sign, "(")) return call(Op::filter, at, {input}, called);
    return make(Op::filter, at, {input}, called);
  }
  int test(int input) {
    ++at_;
    const std::size_t at = now().at;
    const bool negated = word("not");
    const int called = name();
    int node = -1;
    const Kind kind = now().kind;
    const bool value = kind == Kind::text || kind == Kind::integer || kind == Kind::real ||
                       now().is(Kind::sign, "[") || now().is(Kind::sign, "{");
    const bool word_follows = kind == Kind::name && !now().is(kind, "else") &&
                              !now().is(kind, "or") && !now().is(kind, "and") &&
                              !now().is(kind, "if") && !now().is(kind, "is") &&
                              !now().is(kind, "in") && !now().is(kind, "not");
    if (now().is(Kind::sign, "(")) {
      node = call(Op::test, at, {input}, called);
    } else if (value || word_follows) {
      node = make(Op::test, at, {input, postfix(primary())}, called);
    } else {
      node = make(Op::test, at, {input}, called);
    }
    return negated ? make(Op::logical_not, at, {node}) : node;
  }

  const Source& source_;
  std::vector<Lexeme> lexemes_;
  std::size_t at_ = 0;
  Syntax out_;
  std::unordered_map<std::string, int> places_;
  int nested_ = 0;
};

}  // namespace detail
}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
