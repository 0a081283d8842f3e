#pragma once
#include <ctime>

#include "template.hpp"
#include "tests.inl"

namespace tenon::inline TENON_ABI {
namespace jinja {

namespace detail {
inline std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm out{};
#if defined(_WIN32)
  ::localtime_s(&out, &now);
#else
  ::localtime_r(&now, &out);
#endif
  return out;
}
}  // namespace detail

TENON_INLINE Template Template::parse(std::string_view text, const Limits& limits) {
  Source source(text, limits.template_bytes);
  Syntax syntax = jinja::parse(source);
  return Template(std::make_shared<const Parsed>(Parsed{std::move(source), std::move(syntax)}));
}

TENON_INLINE TaggedText Template::render(const Dict& variables,
                                         const RenderOptions& options) const {
  Interpreter interpreter(parsed_->source, parsed_->syntax, options.limits,
                          options.clock ? options.clock : detail::local_time);
  return interpreter.run(variables);
}

}  // namespace jinja
}  // namespace tenon::inline TENON_ABI
