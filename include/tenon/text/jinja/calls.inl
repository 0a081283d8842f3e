#pragma once
// The part of the interpreter that calls macros and functions.
#include <algorithm>
#include <cstdint>

#include "interpreter.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

TENON_INLINE Value Interpreter::call(const Value& callee, const Arguments& arguments) {
  if (callee.is_undefined()) throw ValueError{callee.why_undefined()};
  if (callee.kind() == Value::Kind::object) {
    const std::shared_ptr<Object>& object = callee.object();
    switch (object->type) {
      case Object::Type::macro:
        return call_macro(*object, arguments);
      case Object::Type::function:
        return call_function(object->name, arguments);
      case Object::Type::method:
        if (object->self.kind() == Value::Kind::object) {
          budget_.make_items(arguments.values.size());
          spaces_.push_back(object->self.object());  // what changed may be the loop itself
          return call_loop(*object->self.object(), object->name, arguments);
        }
        return call_method(*this, object->self, object->name, arguments);
      default:
        break;
    }
  }
  throw ValueError{
      message("a macro, function or method can be called, this is ", type_name(callee))};
}

TENON_INLINE Value Interpreter::call_macro(const Object& object, const Arguments& arguments) {
  const MacroEntry entry = macros_[static_cast<std::size_t>(object.macro)];
  const Node& node = syntax_.node(entry.node);
  const std::size_t parameters = node.names.size(), defaults = node.kids.size() - 1;
  if (arguments.values.size() > parameters) {
    throw ValueError{message("the macro \"", object.name, "\" takes at most ", parameters,
                             " arguments, it is given ", arguments.values.size())};
  }
  auto scope = std::make_unique<Scope>();
  scope->outer = entry.scope;
  constexpr std::size_t bytes_of_name = 8;
  budget_.scan(bytes_of_name * (parameters + 1) * (arguments.named.size() + 1));
  std::size_t used = 0;
  for (std::size_t i = 0; i < parameters; ++i) {
    const std::string_view name = syntax_.name(node.names[i]);
    const Value* given = arguments.find(i, name);
    if (given != nullptr && i >= arguments.values.size()) ++used;
    if (given != nullptr) {
      scope->values.emplace_back(node.names[i], *given);
    } else if (i + defaults >= parameters) {
      Value value = evaluate(node.kids[i + defaults - parameters], *scope);
      scope->values.emplace_back(node.names[i], std::move(value));
    } else {
      scope->values.emplace_back(
          node.names[i], undefined(message("parameter \"", name, "\" is not given"), budget_));
    }
  }
  for (const auto& [name, value] : arguments.named) {
    const bool is_caller = name == "caller" && caller_name_ >= 0;
    if (!is_caller || std::count(node.names.begin(), node.names.end(), caller_name_) > 0) continue;
    scope->values.emplace_back(caller_name_, value);
    ++used;
    break;
  }
  if (used != arguments.named.size()) {
    throw ValueError{
        message("the macro \"", object.name, "\" has no parameter of a name given to it")};
  }
  TaggedText out;
  budget_.make(0);
  execute(node.kids.back(), *scope, out);
  leave(std::move(scope));
  return out;
}

TENON_INLINE Value Interpreter::call_function(std::string_view name, const Arguments& arguments) {
  if (name == "raise_exception")
    throw Raised{std::string(TextOf(arguments.need(0, "message"), budget_)->view())};
  if (name == "strftime_now") {
    const Value& format = arguments.need(0, "format");
    if (!format.is_text()) throw ValueError{"strftime_now() needs a format"};
    return time_text(format.text(), now(), budget_);
  }
  if (name == "range") {
    std::int64_t parts[3] = {0, 0, 1};
    const std::size_t count = arguments.values.size();
    if (count < 1 || count > 3) throw ValueError{"range() takes 1 to 3 arguments"};
    for (std::size_t i = 0; i < count; ++i) {
      const auto n = arguments.values[i].as_integer();
      if (!n)
        throw ValueError{
            message("range() takes whole numbers, this is ", type_name(arguments.values[i]))};
      parts[count == 1 ? 1 : i] = *n;
    }
    constexpr std::int64_t bound = std::int64_t{1} << 40;
    constexpr double most = 100'000;  // as in the sandbox of Jinja
    if (parts[2] == 0) throw ValueError{"the step of range() must not be 0"};
    for (std::int64_t& part : parts) part = (std::clamp)(part, -bound, bound);
    if (static_cast<double>(parts[1] - parts[0]) / static_cast<double>(parts[2]) > most)
      throw ValueError{"range() gives at most 100000 numbers"};
    std::vector<Value> items;
    for (std::int64_t i = parts[0]; parts[2] > 0 ? i < parts[1] : i > parts[1]; i += parts[2])
      items.emplace_back(i);
    budget_.make_items(items.size());
    return List(std::move(items));
  }
  Dict dict;
  if (!arguments.values.empty()) {
    if (arguments.values.size() > 1 || !arguments.values[0].is_dict())
      throw ValueError{message(name, "() takes a dict and named values")};
    budget_.make(arguments.values[0].dict().copy_bytes());
    dict = arguments.values[0].dict().copy();
  }
  constexpr std::size_t bytes_of_entry = 256;
  budget_.make(arguments.named.size() * bytes_of_entry);
  for (const auto& [key, value] : arguments.named) dict.set(key, value);
  if (name == "dict") return dict;
  const auto space = std::make_shared<Object>();
  space->fields = std::move(dict);
  constexpr std::size_t bytes_of_one = 512;
  budget_.make(bytes_of_one);
  spaces_.push_back(space);
  return space;
}

TENON_INLINE const std::tm& Interpreter::now() {
  if (!now_) now_ = clock_();
  return *now_;
}

TENON_INLINE Value Interpreter::call_loop(Object& loop, std::string_view name,
                                          const Arguments& arguments) {
  if (name == "cycle") {
    if (arguments.values.empty()) throw ValueError{"loop.cycle() takes values"};
    return arguments.values[loop.index % arguments.values.size()];
  }
  bool same = loop.changed.size() == arguments.values.size();
  for (std::size_t i = 0; same && i < loop.changed.size(); ++i)
    same = equal(loop.changed[i], arguments.values[i], budget_);
  loop.changed = arguments.values;
  return !same;
}

TENON_INLINE const Value* Arguments::find(std::size_t place, std::string_view name) const {
  const Value* found = place < values.size() ? &values[place] : nullptr;
  for (const auto& [key, value] : named) {
    if (key != name) continue;
    if (found != nullptr) throw ValueError{message("the argument \"", name, "\" is given twice")};
    found = &value;
  }
  return found;
}

TENON_INLINE const Value& Arguments::need(std::size_t place, std::string_view name) const {
  const Value* found = find(place, name);
  if (found == nullptr) throw ValueError{message("the argument \"", name, "\" is missing")};
  return *found;
}

TENON_INLINE void Arguments::only(std::size_t most,
                                  std::initializer_list<std::string_view> names) const {
  if (values.size() > most)
    throw ValueError{
        message("at most ", most, " arguments are taken, ", values.size(), " are given")};
  for (const auto& [key, value] : named) {
    bool known = false;
    for (const std::string_view name : names) known = known || name == key;
    if (!known) throw ValueError{message("there is no argument \"", key, '"')};
  }
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
