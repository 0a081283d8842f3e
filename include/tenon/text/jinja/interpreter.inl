#pragma once
#include <algorithm>

#include "calls.inl"
#include "expressions.inl"
#include "interpreter.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {

// Takes the bytes of a value from `left`, until nothing is left; each value is a few at least.
inline void count_input(const Value& value, std::size_t& left, int level = 0) {
  constexpr std::size_t least = 16;
  const std::size_t bytes = value.is_text() ? value.text().size() + least : least;
  left -= (std::min)(left, bytes);
  if (level > most_levels) return;
  if (value.is_list()) {
    for (const Value& item : value.list().items()) {
      if (left == 0) return;
      count_input(item, left, level + 1);
    }
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.dict().entries()) {
      if (left == 0) return;
      count_input(key, left, level + 1);
      count_input(item, left, level + 1);
    }
  }
}

}  // namespace detail

TENON_INLINE Interpreter::Interpreter(const Source& source, const Syntax& syntax,
                                      const Limits& limits, Clock clock)
    : source_(source), syntax_(syntax), budget_(limits), clock_(std::move(clock)) {
  for (std::size_t i = 0; i < syntax.names.size(); ++i) {
    if (syntax.names[i] == "loop") loop_name_ = static_cast<int>(i);
    if (syntax.names[i] == "caller") caller_name_ = static_cast<int>(i);
  }
}

TENON_INLINE Interpreter::~Interpreter() {
  // Namespaces and the scopes of macros may hold each other.
  for (const std::weak_ptr<Object>& space : spaces_) {
    const auto object = space.lock();
    if (!object) continue;
    const Dict fields = std::exchange(object->fields, Dict());
    const std::vector<Value> changed = std::exchange(object->changed, {});
  }
  for (const auto& scope : scopes_) scope->values.clear();
}

TENON_INLINE TaggedText Interpreter::run(const Dict& variables) {
  std::size_t left = most_input;
  for (const auto& [key, value] : variables.entries()) detail::count_input(value, left);
  budget_.grow(most_input - left);
  for (const auto& [key, value] : variables.entries()) {
    if (key.is_text()) variables_.emplace_back(std::string(key.text().view()), value);
  }
  TaggedText out;
  auto scope = std::make_unique<Scope>();
  const auto fail_here = [&](std::string_view what, bool raised) {
    const Source::Place place = source_.place(at_);
    const std::string where = message("chat template, row ", place.row, ", column ", place.column);
    const std::string text =
        raised
            ? message(where, ": it refuses these messages: ", printable(what),
                      "; change the messages or give another template")
            : message(where, ": ", what,
                      "; give messages and variables that the template has a rule for, or another "
                      "template");
    throw TemplateError(text, place, raised, std::string(what));
  };
  try {
    execute(syntax_.root, *scope, out);
  } catch (const ValueError& error) {
    fail_here(error.what, false);
  } catch (const Raised& raised) {
    fail_here(raised.reason, true);
  }
  leave(std::move(scope));
  return out;
}

TENON_INLINE void Interpreter::leave(std::unique_ptr<Scope> scope) {
  if (scope->kept) scopes_.push_back(std::move(scope));
}

TENON_INLINE void Interpreter::emit(const Value& value, TaggedText& out) {
  append_text(value, out, budget_);
  if (out.size() > budget_.limits().output_bytes)
    Budget::exceeded("bytes of output", budget_.limits().output_bytes);
}

TENON_INLINE Interpreter::Flow Interpreter::execute(int index, Scope& scope, TaggedText& out) {
  const Node& node = syntax_.node(index);
  const Deeper deeper(*this, node);
  switch (node.op) {
    case Op::block:
      for (const int kid : node.kids) {
        const Flow flow = execute(kid, scope, out);
        if (flow != Flow::normal) return flow;
      }
      return Flow::normal;
    case Op::data:
      emit(node.value, out);
      return Flow::normal;
    case Op::output:
      emit(evaluate(node.kids[0], scope), out);
      return Flow::normal;
    case Op::branch:
      return execute_branch(node, scope, out);
    case Op::loop:
      return execute_loop(node, scope, out);
    case Op::with:
      return execute_with(node, scope, out);
    case Op::set:
      assign(node.kids[0], evaluate(node.kids[1], scope), scope);
      return Flow::normal;
    case Op::macro:
      define_macro(index, scope);
      return Flow::normal;
    case Op::break_loop:
      return Flow::break_loop;
    case Op::continue_loop:
      return Flow::continue_loop;
    default:
      execute_block_of(node, scope, out);
      return Flow::normal;
  }
}

TENON_INLINE Interpreter::Flow Interpreter::execute_branch(const Node& node, Scope& scope,
                                                           TaggedText& out) {
  std::size_t i = 0;
  for (; i + 1 < node.kids.size(); i += 2) {
    if (truth(evaluate(node.kids[i], scope))) return execute(node.kids[i + 1], scope, out);
  }
  return i < node.kids.size() ? execute(node.kids[i], scope, out) : Flow::normal;
}

TENON_INLINE Interpreter::Flow Interpreter::execute_loop(const Node& node, Scope& scope,
                                                         TaggedText& out) {
  std::vector<Value> items = iterate(evaluate(node.kids[1], scope), budget_);
  auto inner = std::make_unique<Scope>();
  const auto begin = [&](const Value& item) {
    if (inner->kept) {
      scopes_.push_back(std::move(inner));
      inner = std::make_unique<Scope>();
    }
    inner->outer = &scope;
    inner->values.clear();
    assign(node.kids[0], item, *inner);
  };
  if (node.kids[2] >= 0) {
    std::vector<Value> wanted;
    for (const Value& item : items) {
      begin(item);
      if (truth(evaluate(node.kids[2], *inner))) wanted.push_back(item);
    }
    items = std::move(wanted);
  }
  if (items.empty()) return node.kids[4] >= 0 ? execute(node.kids[4], scope, out) : Flow::normal;

  const auto loop = std::make_shared<Object>();
  loop->type = Object::Type::loop;
  budget_.make(sizeof(Object));
  loop->items = std::make_shared<const List>(std::move(items));
  const std::vector<Value>& all = loop->items->items();
  for (std::size_t i = 0; i < all.size(); ++i) {
    loop->index = i;
    begin(all[i]);
    if (loop_name_ >= 0) inner->values.emplace_back(loop_name_, loop);
    if (execute(node.kids[3], *inner, out) == Flow::break_loop) break;
    budget_.step();
  }
  leave(std::move(inner));
  return Flow::normal;
}

TENON_INLINE Interpreter::Flow Interpreter::execute_with(const Node& node, Scope& scope,
                                                         TaggedText& out) {
  auto inner = std::make_unique<Scope>();
  inner->outer = &scope;
  for (std::size_t i = 0; i + 1 < node.kids.size(); i += 2)
    assign(node.kids[i], evaluate(node.kids[i + 1], scope), *inner);
  const Flow flow = execute(node.kids.back(), *inner, out);
  leave(std::move(inner));
  return flow;
}

// Blocks whose text becomes a value: set, filter and call blocks.
TENON_INLINE void Interpreter::execute_block_of(const Node& node, Scope& scope, TaggedText& out) {
  if (node.op == Op::call_block) {
    define_macro(node.kids[0], scope);
    const Value caller = scope.values.back().second;
    scope.values.pop_back();
    return emit(evaluate_call(syntax_.node(node.kids[1]), scope, &caller), out);
  }
  const bool sets = node.op == Op::set_block;
  Value text = captured(node.kids[sets ? 1 : 0], scope);
  std::swap(argument_, text);
  Value result = evaluate(node.kids[sets ? 2 : 1], scope);
  std::swap(argument_, text);
  if (sets) {
    assign(node.kids[0], result, scope);
  } else {
    emit(result, out);
  }
}

TENON_INLINE TaggedText Interpreter::captured(int body, Scope& scope) {
  auto inner = std::make_unique<Scope>();
  inner->outer = &scope;
  TaggedText text;
  budget_.make(0);
  execute(body, *inner, text);
  leave(std::move(inner));
  return text;
}

TENON_INLINE void Interpreter::define_macro(int index, Scope& scope) {
  const Node& node = syntax_.node(index);
  const auto macro = std::make_shared<Object>();
  macro->type = Object::Type::macro;
  macro->name = syntax_.name(node.name);
  macro->macro = static_cast<int>(macros_.size());
  constexpr std::size_t bytes_of_one = 512;
  budget_.make(bytes_of_one);
  macros_.push_back({index, &scope});
  for (Scope* s = &scope; s != nullptr && !s->kept; s = s->outer) s->kept = true;
  scope.values.emplace_back(node.name, macro);
}

TENON_INLINE void Interpreter::assign(int target, const Value& value, Scope& scope) {
  const Node& node = syntax_.node(target);
  if (node.op == Op::tuple) {
    const std::vector<Value> items = iterate(value, budget_);
    if (value.is_undefined() || items.size() != node.kids.size()) {
      throw ValueError{message(node.kids.size(), " values must be there to be assigned, there are ",
                               items.size())};
    }
    for (std::size_t i = 0; i < items.size(); ++i) assign(node.kids[i], items[i], scope);
  } else if (node.op == Op::space_field) {
    const Value space = lookup(node.name, scope);
    if (space.kind() != Value::Kind::object || space.object()->type != Object::Type::space) {
      throw ValueError{message("fields can be assigned of a namespace only, \"",
                               syntax_.name(node.name), "\" is ", type_name(space))};
    }
    space.object()->fields.set(syntax_.name(node.names[1]), value);
  } else {
    budget_.scan(scope.values.size());
    for (auto& [name, old] : scope.values) {
      if (name != node.name) continue;
      old = value;
      return;
    }
    scope.values.emplace_back(node.name, value);
  }
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
