#pragma once
// The part of the interpreter that evaluates expressions.
#include <exception>

#include "interpreter.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// Counts a level of recursion.
struct Interpreter::Level {
  explicit Level(Interpreter& owner) : in(owner) {
    in.budget_.step();
    if (in.depth_ >= in.budget_.limits().depth) {
      Budget::exceeded("levels of nodes and macros at once",
                       static_cast<std::size_t>(in.budget_.limits().depth));
    }
    ++in.depth_;
  }
  ~Level() { --in.depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  Interpreter& in;
};

// Counts a node in evaluation, and remembers the innermost one through which an error passes.
struct Interpreter::Deeper {
  Deeper(Interpreter& owner, const Node& node)
      : in(owner), level(owner), at(node.at), exceptions(std::uncaught_exceptions()) {}
  ~Deeper() {
    if (in.located_ || std::uncaught_exceptions() <= exceptions) return;
    in.located_ = true;
    in.at_ = at;
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

  Interpreter& in;
  Level level;
  std::size_t at;
  int exceptions;
};

TENON_INLINE Value Interpreter::evaluate(int index, Scope& scope) {
  const Node& node = syntax_.node(index);
  const Deeper deeper(*this, node);
  const auto kid = [&](std::size_t i) { return evaluate(node.kids[i], scope); };
  switch (node.op) {
    case Op::constant:
      return node.value;
    case Op::argument:
      return argument_;
    case Op::name:
      return lookup(node.name, scope);
    case Op::attribute:
      return attribute(kid(0), syntax_.name(node.name));
    case Op::logical_not:
      return !truth(kid(0));
    case Op::negate:
      return negate(kid(0));
    case Op::plus:
      return negate(negate(kid(0)));
    case Op::logical_and: {
      Value left = kid(0);
      return truth(left) ? kid(1) : left;
    }
    case Op::logical_or: {
      Value left = kid(0);
      return truth(left) ? left : kid(1);
    }
    case Op::conditional:
      if (truth(kid(0))) return kid(1);
      if (node.kids[2] >= 0) return kid(2);
      return undefined("the condition of an \"if\" without \"else\" does not hold", budget_);
    case Op::call:
      return evaluate_call(node, scope, nullptr);
    case Op::filter:
      return filter(syntax_.name(node.name), kid(0), evaluate_arguments(node, scope));
    case Op::test:
      return test(syntax_.name(node.name), kid(0), evaluate_arguments(node, scope));
    case Op::concat:
      return evaluate_concat(node, scope);
    case Op::compare:
      return evaluate_compare(node, scope);
    case Op::slice:
      return evaluate_slice(node, scope);
    case Op::list:
    case Op::tuple:
    case Op::dict:
      return evaluate_sequence(node, scope);
    default:
      return evaluate_binary(node, scope);
  }
}

TENON_INLINE Value Interpreter::evaluate_binary(const Node& node, Scope& scope) {
  const Value a = evaluate(node.kids[0], scope);
  const Value b = evaluate(node.kids[1], scope);
  switch (node.op) {
    case Op::add:
      return add(a, b, budget_);
    case Op::subtract:
      return subtract(a, b);
    case Op::multiply:
      return multiply(a, b, budget_);
    case Op::divide:
      return divide(a, b);
    case Op::floor_divide:
      return floor_divide(a, b);
    case Op::modulo:
      return modulo(a, b, budget_);
    case Op::power:
      return power(a, b);
    default:
      break;
  }
  Value found = item(a, b, budget_);
  if (found.is_undefined() && b.is_text()) return attribute(a, b.text().view());
  return found;
}

TENON_INLINE Value Interpreter::evaluate_slice(const Node& node, Scope& scope) {
  const Value value = evaluate(node.kids[0], scope);
  Value parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.kids[i + 1] >= 0) parts[i] = evaluate(node.kids[i + 1], scope);
  }
  return slice(value, parts[0], parts[1], parts[2], budget_);
}

TENON_INLINE Value Interpreter::evaluate_concat(const Node& node, Scope& scope) {
  TaggedText out;
  budget_.make(0);
  for (const int kid : node.kids) append_text(evaluate(kid, scope), out, budget_);
  return out;
}

TENON_INLINE Value Interpreter::evaluate_compare(const Node& node, Scope& scope) {
  Value left = evaluate(node.kids[0], scope);
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    Value right = evaluate(node.kids[i + 1], scope);
    const std::string_view sign = syntax_.name(node.names[i]);
    const auto same = [&] { return equal(left, right, budget_); };
    const bool holds = sign == "=="   ? same()
                       : sign == "!=" ? !same()
                       : sign == "<"  ? less(left, right, budget_)
                       : sign == ">"  ? less(right, left, budget_)
                       : sign == "<=" ? less(left, right, budget_) || same()
                       : sign == ">=" ? less(right, left, budget_) || same()
                       : sign == "in" ? contains(right, left, budget_)
                                      : !contains(right, left, budget_);
    if (!holds) return false;
    left = std::move(right);
  }
  return true;
}

TENON_INLINE Value Interpreter::evaluate_sequence(const Node& node, Scope& scope) {
  budget_.make_items(node.kids.size());
  if (node.op == Op::dict) {
    Dict dict;
    for (std::size_t i = 0; i + 1 < node.kids.size(); i += 2) {
      Value key = evaluate(node.kids[i], scope);
      constexpr std::size_t bytes_of_entry = 160;
      charge_key(key, budget_);
      budget_.extend(bytes_of_entry);
      dict.set(std::move(key), evaluate(node.kids[i + 1], scope));
    }
    return dict;
  }
  std::vector<Value> items;
  items.reserve(node.kids.size());
  for (const int kid : node.kids) items.push_back(evaluate(kid, scope));
  return List(std::move(items), node.op == Op::list ? ListKind::list : ListKind::tuple);
}

TENON_INLINE Arguments Interpreter::evaluate_arguments(const Node& node, Scope& scope) {
  Arguments arguments;
  const std::size_t named_from = node.kids.size() - node.names.size();
  for (std::size_t i = 1; i < node.kids.size(); ++i) {
    Value value = evaluate(node.kids[i], scope);
    if (i < named_from) {
      arguments.values.push_back(std::move(value));
    } else {
      arguments.named.emplace_back(syntax_.name(node.names[i - named_from]), std::move(value));
    }
  }
  return arguments;
}

TENON_INLINE Value Interpreter::lookup(int name, Scope& scope) {
  for (Scope* s = &scope; s != nullptr; s = s->outer) {
    budget_.scan(1 + s->values.size());
    for (const auto& [key, value] : s->values) {
      if (key == name) return value;
    }
  }
  return global(syntax_.name(name));
}

TENON_INLINE Value Interpreter::global(std::string_view name) {
  budget_.scan(variables_.size());
  for (const auto& [key, value] : variables_) {
    if (key == name) return value;
  }
  constexpr std::string_view functions[] = {"range", "dict", "namespace", "raise_exception",
                                            "strftime_now"};
  for (const std::string_view function : functions) {
    if (function == name) return object_of(Object::Type::function, name);
  }
  return undefined(message('"', name, "\" is undefined"), budget_);
}

TENON_INLINE Value Interpreter::object_of(Object::Type type, std::string_view name, Value self) {
  budget_.make(sizeof(Object) + name.size());
  const auto object = std::make_shared<Object>();
  object->type = type;
  object->name = name;
  object->self = std::move(self);
  return object;
}

TENON_INLINE Value Interpreter::attribute(const Value& value, std::string_view name) {
  if (value.is_undefined()) throw ValueError{value.why_undefined()};
  const auto none = [&] {
    return undefined(message(type_name(value), " has no attribute \"", printable(name), '"'),
                     budget_);
  };
  if (name.starts_with('_')) return none();
  if (value.kind() == Value::Kind::object) {
    const Object& object = *value.object();
    if (object.type == Object::Type::loop) return loop_field(value, name);
    if (object.type == Object::Type::macro && name == "name") {
      budget_.make(object.name.size());
      return object.name;
    }
    if (object.type != Object::Type::space) return none();
    const Value* field = object.fields.find(name);
    return field != nullptr ? *field : none();
  }
  if (has_method(value, name)) return object_of(Object::Type::method, name, value);
  if (value.is_dict()) {
    if (const Value* found = value.dict().find(name)) return *found;
  }
  return undefined(why_no_attribute(value, name), budget_);
}

TENON_INLINE Value Interpreter::loop_field(const Value& value, std::string_view name) {
  const Object& loop = *value.object();
  const auto n = static_cast<std::int64_t>(loop.items->size());
  const auto i = static_cast<std::int64_t>(loop.index);
  const std::vector<Value>& items = loop.items->items();
  if (name == "index") return i + 1;
  if (name == "index0") return i;
  if (name == "first") return i == 0;
  if (name == "last") return i + 1 == n;
  if (name == "length") return n;
  if (name == "revindex") return n - i;
  if (name == "revindex0") return n - i - 1;
  if (name == "depth") return loop.depth;
  if (name == "depth0") return loop.depth - 1;
  if (name == "previtem")
    return i > 0 ? items[loop.index - 1] : undefined("there is no previous item", budget_);
  if (name == "nextitem")
    return i + 1 < n ? items[loop.index + 1] : undefined("there is no next item", budget_);
  if (name == "cycle" || name == "changed") return object_of(Object::Type::method, name, value);
  return undefined(message("a loop has no field \"", printable(name), '"'), budget_);
}

TENON_INLINE Value Interpreter::evaluate_call(const Node& node, Scope& scope, const Value* caller) {
  const Value callee = evaluate(node.kids[0], scope);
  Arguments arguments = evaluate_arguments(node, scope);
  if (caller != nullptr) arguments.named.emplace_back("caller", *caller);
  return call(callee, arguments);
}

TENON_INLINE Value Interpreter::filter(std::string_view name, const Value& input,
                                       const Arguments& arguments) {
  const Level level(*this);  // a filter may apply another one
  const Filter found = find_filter(name);
  if (found == nullptr) throw ValueError{message("there is no filter \"", printable(name), '"')};
  return found(*this, input, arguments);
}

TENON_INLINE bool Interpreter::test(std::string_view name, const Value& input,
                                    const Arguments& arguments) {
  budget_.step();
  const Test found = find_test(name);
  if (found == nullptr) throw ValueError{message("there is no test \"", printable(name), '"')};
  return found(*this, input, arguments);
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
