#pragma once
// A chat template: a bounded subset of Jinja, large enough for those that open models ship with.
#include <memory>
#include <string_view>

#include "interpreter.hpp"

namespace tenon::inline TENON_ABI {
namespace jinja {

struct RenderOptions {
  Limits limits = {};
  Interpreter::Clock clock = {};  // for strftime_now(); by default the machine's local time
};

// A parsed template. Immutable; copies share it; render() may be called from any thread.
//
// Supported: if, for (with else, a condition, break and continue), set, macro, call, filter, with,
// raw and generation blocks; all operators, slices, comparisons and conditional expressions; the
// filters in filters.inl, the tests in tests.inl, the methods in methods.inl; namespace(), range(),
// dict(), raise_exception(), strftime_now(). White space is handled as by Hugging Face (trim_blocks
// and lstrip_blocks on), and as in its sandbox templates change no value but namespaces. Not
// supported, and a LoadError: include, import, extends, block, autoescape, recursive loops, *args.
class Template {
 public:
  // LoadError, with row and column, when `text` is no such template.
  static Template parse(std::string_view text, const Limits& limits = {});

  // The text with the variables filled in. TemplateError when the template refuses the variables
  // (TemplateError::raised), they do not fit, or a limit is reached; nothing is rendered then.
  TaggedText render(const Dict& variables, const RenderOptions& options = {}) const;

 private:
  struct Parsed {
    Source source;
    Syntax syntax;
  };
  explicit Template(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "template.inl"
#endif
