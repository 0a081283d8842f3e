#pragma once
#include <initializer_list>
#include <utility>

#include "expression_parser.inl"
#include "syntax.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

class Parser : ExpressionParser {
 public:
  explicit Parser(const Source& source) : ExpressionParser(source) {}

  Syntax run() {
    out_.root = statements({});
    return std::move(out_);
  }

 private:
  // Statements up to a tag whose name is one of `ends`, whose name is then the current lexeme.
  int statements(std::initializer_list<std::string_view> ends) {
    const Nested nested(*this);
    const std::size_t start = now().at;
    std::vector<int> kids;
    for (;;) {
      const Lexeme& lexeme = now();
      if (lexeme.kind == Kind::end) {
        if (ends.size() == 0) break;
        wrong(message("{% ", *(ends.end() - 1), " %} is missing"));
      }
      ++at_;
      if (lexeme.kind == Kind::data) {
        kids.push_back(make(Op::data, lexeme.at));
        out_.nodes.back().value = lexeme.text;
      } else if (lexeme.kind == Kind::output) {
        kids.push_back(make(Op::output, lexeme.at, {tuple_or_one()}));
        if (now().kind != Kind::output_end) unexpected("\"}}\"");
        ++at_;
      } else {
        bool ended = false;
        for (const std::string_view end : ends) ended = ended || now().is(Kind::name, end);
        if (ended) break;
        const int kid = statement();
        if (kid >= 0) kids.push_back(kid);
      }
    }
    return make(Op::block, start, std::move(kids));
  }
  int body(std::string_view end) {
    end_tag();
    const int block = statements({end});
    ++at_;
    return block;
  }

  int statement() {
    const std::size_t at = now().at;
    if (now().kind != Kind::name) unexpected("the name of a statement");
    if (word("if")) return branch(at);
    if (word("for")) return loop(at);
    if (word("set")) return set(at);
    if (word("macro")) return macro(at);
    if (word("call")) return call_block(at);
    if (word("filter")) return filter_block(at);
    if (word("with")) return with(at);
    if (word("generation")) {  // marks what a model writes, for training
      const int block = body("endgeneration");
      end_tag();
      return block;
    }
    const bool breaks = now().text == "break";
    if (breaks || now().text == "continue") {
      if (loops_ == 0) wrong(message("\"", now().text, "\" must stand within a loop"));
      ++at_;
      end_tag();
      return make(breaks ? Op::break_loop : Op::continue_loop, at);
    }
    wrong(message("the statement \"", printable(now().text), "\" is not supported here"));
  }

  int branch(std::size_t at) {
    std::vector<int> kids;
    for (;;) {
      kids.push_back(tuple_or_one());
      end_tag();
      kids.push_back(statements({"elif", "else", "endif"}));
      if (word("elif")) continue;
      if (word("else")) {
        kids.push_back(body("endif"));
      } else {
        ++at_;
      }
      end_tag();
      return make(Op::branch, at, std::move(kids));
    }
  }
  int loop(std::size_t at) {
    const int target = targets();
    if (!word("in")) unexpected("\"in\"");
    const int items = tuple_of([&] { return disjunction(); });
    const int condition = word("if") ? expression() : -1;
    if (now().is(Kind::name, "recursive")) wrong("recursive loops are not supported");
    end_tag();
    ++loops_;
    const int block = statements({"else", "endfor"});
    --loops_;
    int otherwise = -1;
    if (word("else")) {
      otherwise = body("endfor");
    } else {
      ++at_;
    }
    end_tag();
    return make(Op::loop, at, {target, items, condition, block, otherwise});
  }
  int set(std::size_t at) {
    const int target = targets();
    if (sign("=")) {
      const int kid = make(Op::set, at, {target, tuple_or_one()});
      end_tag();
      return kid;
    }
    int filters = make(Op::argument, now().at);
    while (now().is(Kind::sign, "|")) filters = filter(filters);
    const int block = body("endset");
    end_tag();
    return make(Op::set_block, at, {target, block, filters});
  }
  // A parameter list after "(": names, and defaults for the last ones. Returns the defaults.
  std::vector<int> parameters(std::vector<int>& names) {
    std::vector<int> defaults;
    while (!sign(")")) {
      if (!names.empty()) need(",");
      if (sign(")")) break;
      names.push_back(name());
      if (sign("=")) {
        defaults.push_back(expression());
      } else if (!defaults.empty()) {
        wrong("a parameter without a default must stand before those with one");
      }
    }
    return defaults;
  }
  int macro(std::size_t at) {
    const int called = name();
    need("(");
    std::vector<int> names;
    std::vector<int> kids = parameters(names);
    const int outer = std::exchange(loops_, 0);
    kids.push_back(body("endmacro"));
    loops_ = outer;
    end_tag();
    return make(Op::macro, at, std::move(kids), called, std::move(names));
  }
  int call_block(std::size_t at) {
    std::vector<int> names, kids;
    if (sign("(")) kids = parameters(names);
    const int call = expression();
    if (out_.node(call).op != Op::call) wrong("a call must stand here");
    const int outer = std::exchange(loops_, 0);
    kids.push_back(body("endcall"));
    loops_ = outer;
    end_tag();
    const int caller = make(Op::macro, at, std::move(kids), intern("caller"), std::move(names));
    return make(Op::call_block, at, {caller, call});
  }
  int filter_block(std::size_t at) {
    int filters = filter_named(make(Op::argument, now().at));
    while (now().is(Kind::sign, "|")) filters = filter(filters);
    const int block = body("endfilter");
    end_tag();
    return make(Op::filter_block, at, {block, filters});
  }
  int with(std::size_t at) {
    std::vector<int> kids;
    while (now().kind != Kind::tag_end) {
      if (!kids.empty()) need(",");
      kids.push_back(targets());
      need("=");
      kids.push_back(expression());
    }
    kids.push_back(body("endwith"));
    end_tag();
    return make(Op::with, at, std::move(kids));
  }

  int loops_ = 0;  // around the current statement
};

}  // namespace detail

TENON_INLINE Syntax parse(const Source& source) {
  return detail::Parser(source).run();
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
