#pragma once
// A parsed template: a flat table of nodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lexer.hpp"
#include "value.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

enum class Op : std::uint8_t {
  // Expressions; `kids` in this order, -1 for what is left out.
  constant,  // value
  name,      // name
  list,
  tuple,      // items
  dict,       // key, value, key, value...
  attribute,  // of; name
  item,       // of, index
  slice,      // of, first, last, step
  call,       // callee, arguments..., values of the keywords in `names`
  filter,     // the same for the filter `name`: input, arguments...
  test,       // and for the test `name`
  negate,
  plus,
  logical_not,
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,
  power,
  concat,   // parts
  compare,  // first, then one for each of the signs in `names`
  logical_and,
  logical_or,
  conditional,  // condition, then, else
  // Statements.
  block,         // statements
  data,          // value
  output,        // expression
  branch,        // condition, block, condition, block..., and the block of else
  loop,          // target, items, condition, body, the block of else
  set,           // target, expression
  set_block,     // target, body, filters as expressions on an argument
  space_field,   // target only: field `names[1]` of the namespace `name`
  macro,         // name; defaults of the last parameters in `names`, then the body
  call_block,    // a macro, the call
  filter_block,  // body, filter
  with,          // target, expression, target, expression..., body
  argument,      // what a filter of a block applies to
  break_loop,
  continue_loop
};

struct Node {
  Op op = Op::block;
  std::uint32_t at = 0;    // in the source
  int name = -1;           // in Syntax::names
  std::vector<int> kids;   // in Syntax::nodes
  std::vector<int> names;  // in Syntax::names
  Value value = {};
  int depth = 1;  // levels of nodes below and including this one
};

struct Syntax {
  std::vector<Node> nodes;
  std::vector<std::string> names;  // each once
  int root = -1;

  std::string_view name(int i) const { return names[static_cast<std::size_t>(i)]; }
  const Node& node(int i) const { return nodes[static_cast<std::size_t>(i)]; }
};

// Parses a template. LoadError, with the row and column, where it is none, uses a statement that is
// not supported (include, import, extends, block, autoescape, recursive loops), or nests too
// deeply.
Syntax parse(const Source& source);

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "syntax.inl"
#endif
