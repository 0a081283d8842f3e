#pragma once
// Runs a parsed template.
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators.hpp"
#include "syntax.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

// A template could not be rendered with these values. Rows and columns count from 1.
class TemplateError : public RequestError {
 public:
  TemplateError(const std::string& what, Source::Place place, bool raised, std::string reason)
      : RequestError(what), place_(place), raised_(raised), reason_(std::move(reason)) {}
  int row() const { return place_.row; }
  int column() const { return place_.column; }
  // Whether the template itself said so, by raise_exception(reason()).
  bool raised() const { return raised_; }
  const std::string& reason() const { return reason_; }

 private:
  Source::Place place_;
  bool raised_;
  std::string reason_;
};

// What is given to a filter, test, function or macro.
struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string_view, Value>> named = {};

  // The value at `place` or of that name, or null. ValueError when both are there.
  const Value* find(std::size_t place, std::string_view name) const;
  const Value& need(std::size_t place, std::string_view name) const;
  // ValueError unless there are at most `most` values, and only these names.
  void only(std::size_t most, std::initializer_list<std::string_view> names = {}) const;
};

// Names and their values. Names are numbers of Syntax::names.
struct Scope {
  Scope* outer = nullptr;
  bool kept = false;  // a macro was made in it, which may be called when it is over
  std::vector<std::pair<int, Value>> values = {};
};

struct MacroEntry {
  int node = -1;
  Scope* scope = nullptr;
};

class Interpreter {
 public:
  using Clock = std::function<std::tm()>;

  Interpreter(const Source& source, const Syntax& syntax, const Limits& limits, Clock clock);
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
  ~Interpreter();

  // TemplateError, with the place, for whatever goes wrong.
  TaggedText run(const Dict& variables);

  // What filters, tests and methods need of the interpreter. ValueError.
  Budget& budget() { return budget_; }
  Value filter(std::string_view name, const Value& input, const Arguments& arguments);
  bool test(std::string_view name, const Value& input, const Arguments& arguments);
  Value attribute(const Value& value, std::string_view name);
  // The time when it was first asked for.
  const std::tm& now();

 private:
  enum class Flow { normal, break_loop, continue_loop };
  struct Raised {
    std::string reason;
  };
  struct Level;
  struct Deeper;

  Flow execute(int node, Scope& scope, TaggedText& out);
  Flow execute_loop(const Node& node, Scope& scope, TaggedText& out);
  Flow execute_branch(const Node& node, Scope& scope, TaggedText& out);
  Flow execute_with(const Node& node, Scope& scope, TaggedText& out);
  void execute_block_of(const Node& node, Scope& scope, TaggedText& out);
  void emit(const Value& value, TaggedText& out);
  void assign(int target, const Value& value, Scope& scope);
  TaggedText captured(int body, Scope& scope);
  void define_macro(int node, Scope& scope);
  void leave(std::unique_ptr<Scope> scope);

  Value evaluate(int node, Scope& scope);
  Value lookup(int name, Scope& scope);
  Value global(std::string_view name);
  Value evaluate_compare(const Node& node, Scope& scope);
  Value evaluate_sequence(const Node& node, Scope& scope);
  Value evaluate_concat(const Node& node, Scope& scope);
  Value evaluate_binary(const Node& node, Scope& scope);
  Value evaluate_slice(const Node& node, Scope& scope);
  Value evaluate_call(const Node& node, Scope& scope, const Value* caller);
  Arguments evaluate_arguments(const Node& node, Scope& scope);
  Value call(const Value& callee, const Arguments& arguments);
  Value call_macro(const Object& object, const Arguments& arguments);
  Value call_function(std::string_view name, const Arguments& arguments);
  Value object_of(Object::Type type, std::string_view name, Value self = {});
  Value call_loop(Object& loop, std::string_view name, const Arguments& arguments);
  Value loop_field(const Value& loop, std::string_view name);

  static constexpr std::size_t most_input = std::size_t{1} << 22;  // that adds to the budget

  const Source& source_;
  const Syntax& syntax_;
  Budget budget_;
  Clock clock_;
  std::optional<std::tm> now_;
  int loop_name_ = -1, caller_name_ = -1;
  int depth_ = 0;
  std::size_t at_ = 0;  // of the innermost node where an error was seen first
  bool located_ = false;
  std::vector<std::pair<std::string, Value>> variables_;
  std::vector<std::unique_ptr<Scope>> scopes_;  // kept for their macros
  std::vector<MacroEntry> macros_;
  std::vector<std::weak_ptr<Object>> spaces_;  // may hold themselves
  Value argument_;                             // of the filters of a block
};

// The tables of filters, tests and methods; null, or undefined, for a name that is none.
using Filter = Value (*)(Interpreter&, const Value& input, const Arguments&);
using Test = bool (*)(Interpreter&, const Value& input, const Arguments&);
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);
// Whether a text, dict or list has that method; none would change its object.
bool has_method(const Value& self, std::string_view name);
// Why there is no attribute of that name.
std::string why_no_attribute(const Value& self, std::string_view name);
Value call_method(Interpreter& interpreter, const Value& self, std::string_view name,
                  const Arguments& arguments);
// strftime in the C locale. ValueError for a code that is not known.
TaggedText time_text(const TaggedText& format, const std::tm& time, Budget& budget);

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "interpreter.inl"
#endif
