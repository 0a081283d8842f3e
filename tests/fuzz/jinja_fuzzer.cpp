// Hostile templates and messages. Parsing may end in a LoadError and rendering in a TemplateError,
// nothing else; no byte of a user comes out as the template's own.
//
// Input: the text of a template, a NUL byte, and the text that a user says.
#include <tenon/text/chat.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace tenon;

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 16384) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string_view source = input.substr(0, end);
  // A byte that stands in no template text and that no filter makes from another one.
  std::string said(end == input.npos ? std::string_view("hello") : input.substr(end + 1));
  const bool marked = source.find('\x02') == source.npos && source.find("\\x02") == source.npos &&
                      source.find("\\u00") == source.npos && source.find("\\U00") == source.npos &&
                      source.find("\\2") == source.npos && source.find("\\0") == source.npos;
  if (marked) said += '\x02';
  try {
    const ChatTemplate chat(source, {"<s>", "</s>"});
    ChatOptions options;
    options.render.clock = [] { return std::tm{}; };
    options.render.limits.steps = 20'000;
    options.render.limits.made_bytes = std::size_t{1} << 22;
    options.variables = jinja::Dict{{"n", 3}, {"x", 0.5}, {"yes", true}};
    options.tools = jinja::Value::parse_json(R"([{"name":"f","parameters":{"a":[1,"b",null]}}])");
    const std::vector<Message> messages = {{"system", "Be brief."},
                                           {"user", said},
                                           {"assistant", "Yes", jinja::Dict{{"tool_calls", {}}}}};
    for (const TextSegment& segment : chat.render(messages, options)) {
      require(!segment.text.empty(), "no segment is empty");
      if (marked && segment.from_template)
        require(segment.text.find('\x02') == std::string::npos, "a user's text stays a user's");
    }
  } catch (const LoadError&) {
  } catch (const jinja::TemplateError& error) {
    require(error.row() >= 1 && error.column() >= 1, "an error has a place");
  }
  try {
    const jinja::Value value = jinja::Value::parse_json(source);
    const std::string text = value.to_json();
    require(jinja::Value::parse_json(text).to_json() == text,
            "JSON that was written reads the same");
  } catch (const RequestError&) {}
  return 0;
}
