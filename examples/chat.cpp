// Talks with a model, line by line.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <tenon/core/utf8.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/replace_file.hpp>
#include <tenon/tenon.hpp>
#include <tenon/text/chat.hpp>
#include <tenon/zoo/registry.hpp>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "command_line.hpp"
#include "interrupt.hpp"

namespace {

using tenon::jinja::Value;

constexpr std::string_view help =
    "A line is a message to the model. Ctrl-C stops its answer.\n"
    "  /system TEXT  what the model is told first; without TEXT: nothing\n"
    "  /save FILE    write the conversation as JSON\n"
    "  /load FILE    go on with one that was saved\n"
    "  /stats        speed of the last answer, room that is left\n"
    "  /reset        forget the conversation, but not what /system said\n"
    "  /help         this\n"
    "  /quit         end, as the end of the input does\n"
    "A line that starts with // is a message that starts with /.\n";

struct Options {
  std::string model, template_file, system, cache = "f16", activations = "int8";
  std::vector<std::string> variables;
  int max_tokens = 0, threads = 0, context = 0;
  tenon::SamplingOptions sampling{.temperature = 0.7, .top_p = 0.95};
};

constexpr int longest_default_context = 8192;

bool terminal() {
#if defined(__unix__) || defined(__APPLE__)
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
#else
  return false;
#endif
}

std::string read_file(const std::string& path) {
  constexpr std::uintmax_t most = std::uintmax_t{1} << 26;
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  const auto bytes = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || bytes > most || !file) {
    tenon::fail<tenon::RequestError>(
        path, ": must be a file of at most ", most, " bytes that can be read, ",
        !std::filesystem::exists(status)        ? "there is nothing of that name"
        : std::filesystem::is_directory(status) ? "it is a directory"
        : !error && bytes > most                ? tenon::message("it has ", bytes).c_str()
                                                : "it cannot be read",
        "; check the name");
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// NAME=VALUE: the value as JSON where it is some, else as text.
Value variables_of(const std::vector<std::string>& assignments) {
  tenon::jinja::Dict dict;
  for (const std::string& one : assignments) {
    const std::size_t sign = one.find('=');
    if (sign == one.npos || sign == 0) {
      tenon::fail<tenon::RequestError>("--set must be given as NAME=VALUE, it is \"",
                                       tenon::printable(one), "\"; correct it");
    }
    Value value = one.substr(sign + 1);
    try {
      value = Value::parse_json(one.substr(sign + 1));
    } catch (const tenon::RequestError&) {}
    dict.set(one.substr(0, sign), std::move(value));
  }
  return dict;
}

Value json_of(const std::vector<tenon::Message>& messages) {
  std::vector<Value> list;
  for (const tenon::Message& one : messages)
    list.push_back(tenon::jinja::Dict{{"role", one.role}, {"content", one.content}});
  return tenon::jinja::Dict{{"messages", tenon::jinja::List(std::move(list))}};
}

std::vector<tenon::Message> messages_of(const Value& json) {
  const Value* list = json.is_dict() ? json.dict().find("messages") : nullptr;
  std::vector<tenon::Message> messages;
  bool sound = list != nullptr && list->is_list();
  for (std::size_t i = 0; sound && i < list->list().size(); ++i) {
    const Value& one = list->list().items()[i];
    const Value* role = one.is_dict() ? one.dict().find("role") : nullptr;
    const Value* content = one.is_dict() ? one.dict().find("content") : nullptr;
    sound = role != nullptr && role->is_text() && content != nullptr && content->is_text();
    if (sound) {
      messages.push_back({std::string(role->text().view()), std::string(content->text().view())});
    }
  }
  if (!sound) {
    tenon::fail<tenon::RequestError>(
        "a conversation must be a dict whose \"messages\" are a list of dicts with a text \"role\" "
        "and "
        "a text \"content\", this is none; load a file that /save wrote");
  }
  return messages;
}

// What /load reads. Every error names the file.
std::vector<tenon::Message> loaded(const std::string& path) {
  if (path.empty()) {
    tenon::fail<tenon::RequestError>(
        "/load must be followed by the name of a file that /save wrote, there is none");
  }
  const std::string text = read_file(path);
  try {
    return messages_of(Value::parse_json(text));
  } catch (const tenon::RequestError& error) {
    tenon::fail<tenon::RequestError>(path, ": ", error.what());
  }
}

class Chat {
 public:
  Chat(const Options& o, tenon::AnySession& session, const tenon::Tokenizer& tokenizer,
       tenon::ChatTemplate chat_template)
      : o_(o),
        session_(session),
        tokenizer_(tokenizer),
        template_(std::move(chat_template)),
        sampler_(session.vocab(), o.sampling),
        seq_(session.open()) {
    chat_options_.variables = variables_of(o.variables);
    set_system(o.system);
  }

  // False at the end of the conversation. What a command prints goes to stderr, answers to stdout.
  bool take(const std::string& line) {
    if (line.empty()) return true;
    try {
      if (line.starts_with("//")) {
        answer(line.substr(1));
      } else if (line[0] == '/') {
        return command(line);
      } else {
        answer(line);
      }
    } catch (const tenon::Error& error) {
      std::cerr << error.what() << '\n';
    }
    return true;
  }

 private:
  bool command(const std::string& line) {
    const std::size_t space = (std::min)(line.find(' '), line.size());
    const std::string name = line.substr(1, space - 1);
    const std::size_t start = (std::min)(line.find_first_not_of(' ', space), line.size());
    const std::string rest = line.substr(start);
    if (name == "quit" || name == "exit") return false;
    if (name == "help") {
      std::cerr << help;
    } else if (name == "system") {
      set_system(rest);
    } else if (name == "reset") {
      const bool keeps = !messages_.empty() && messages_[0].role == "system";
      messages_.resize(keeps ? 1 : 0);
    } else if (name == "save") {
      save(rest);
    } else if (name == "load") {
      messages_ = loaded(rest);
      std::cerr << messages_.size() << " messages\n";
    } else if (name == "stats") {
      print_stats();
    } else {
      std::cerr << "there is no command \"/" << tenon::printable(name)
                << "\"; /help lists them, and a message may start with //\n";
    }
    return true;
  }

  void set_system(const std::string& text) {
    if (!messages_.empty() && messages_[0].role == "system") messages_.erase(messages_.begin());
    if (!text.empty()) messages_.insert(messages_.begin(), {"system", text});
  }

  void save(const std::string& path) const {
    if (path.empty())
      tenon::fail<tenon::RequestError>(
          "/save must be followed by the name of a file, there is none");
    const std::string text = json_of(messages_).to_json();
    tenon::replace_file(path, [&](std::ostream& out) { out << text << '\n'; });
    std::cerr << messages_.size() << " messages in " << path << '\n';
  }

  int context() const { return session_.limits().context; }

  // The message stays in the conversation only when an answer, or a part of one, follows it.
  void answer(const std::string& text) {
    messages_.push_back({"user", text});
    try {
      std::string reply = reply_to(messages_);
      if (!reply.empty()) {
        messages_.push_back({"assistant", std::move(reply)});
        return;
      }
    } catch (...) {
      messages_.pop_back();
      throw;
    }
    messages_.pop_back();
  }

  std::string reply_to(const std::vector<tenon::Message>& messages) {
    const auto ids = tenon::chat_ids(tokenizer_, template_.render(messages, chat_options_));
    if (static_cast<int>(ids.size()) >= context()) {
      tenon::fail<tenon::CapacityError>(
          "the conversation must leave room in the context of ", context(), " tokens, it has ",
          ids.size(), " with this message; /reset it, or start with a larger --ctx");
    }
    reused_ = keep_rows(tenon::common_prefix(cached_, ids));
    const auto next = std::span(ids).subspan(reused_);

    tenon::GenerateOptions options;
    if (o_.max_tokens > 0) options.max_tokens = o_.max_tokens;
    options.is_end = [&](tenon::Token token) { return tokenizer_.is_end(token); };
    options.stop = interrupt_.begin();
    tenon::TextStream stream(tokenizer_, {.after = ids});
    std::string reply;
    const auto show = [&](std::string_view piece) {
      reply += piece;
      std::cout << piece << std::flush;
    };
    const auto remember = [&](std::span<const tenon::Token> drawn) {
      cached_ = ids;
      cached_.insert(cached_.end(), drawn.begin(), drawn.end());
      cached_.resize((std::min)(cached_.size(), static_cast<std::size_t>(session_.length(seq_))));
    };
    tenon::Generation result;
    try {
      result = generate(session_, seq_, next, sampler_, options, [&](tenon::Token token) {
        show(stream.push(token));
        return static_cast<bool>(std::cout);
      });
    } catch (...) {
      remember({});
      throw;
    }
    show(stream.finish());
    std::cout << '\n' << std::flush;
    remember(result.ids);
    timings_ = result.timings;
    drawn_ = result.ids.size();
    const bool ended = result.finish == tenon::FinishReason::stop;
    if (ended && reply.empty()) std::cerr << "[no answer: the message is taken back]\n";
    if (result.finish == tenon::FinishReason::cancelled) std::cerr << "[stopped]\n";
    if (result.finish == tenon::FinishReason::length) std::cerr << "[cut at --max-tokens]\n";
    if (result.finish == tenon::FinishReason::context) {
      std::cerr << "[the context of " << context() << " tokens is full: the answer was cut; /reset "
                << "the conversation, or start with a larger --ctx]\n";
    }
    return reply;
  }

  // Takes the sequence back to its first `rows`; to nothing where its cache cannot. Returns the
  // rows that are left.
  std::size_t keep_rows(std::size_t rows) {
    cached_.resize(rows);
    try {
      session_.truncate(seq_, static_cast<int>(rows));
    } catch (const tenon::Error&) {
      session_.close(seq_);
      seq_ = session_.open();
      cached_.clear();
    }
    return cached_.size();
  }

  void print_stats() const {
    const tenon::Timings& t = timings_;
    const auto decoded = static_cast<double>(drawn_) - 1;
    std::fprintf(stderr,
                 "messages %zu, context %d of %d tokens used\n"
                 "prompt   %d tokens, %.1f tokens/s, %zu more reused\n"
                 "answer   %zu tokens, %.1f tokens/s, the first after %.2f ms\n",
                 messages_.size(), session_.length(seq_), context(), t.prompt_tokens,
                 t.prompt_seconds > 0 ? t.prompt_tokens / t.prompt_seconds : 0.0, reused_, drawn_,
                 decoded > 0 && t.decode_seconds > 0 ? decoded / t.decode_seconds : 0.0,
                 t.first_token_seconds * 1e3);
  }

  const Options& o_;
  tenon::AnySession& session_;
  tenon::Tokenizer tokenizer_;
  tenon::ChatTemplate template_;
  tenon::DefaultChain sampler_;
  tenon::ChatOptions chat_options_;
  Interrupt interrupt_;
  tenon::SeqId seq_;
  std::vector<tenon::Message> messages_;
  std::vector<tenon::Token> cached_;  // whose rows the sequence holds
  tenon::Timings timings_;
  std::size_t reused_ = 0, drawn_ = 0;
};

void chat(const Options& o) {
  o.sampling.check();
  if (o.max_tokens < 0)
    tenon::fail<tenon::RequestError>("--max-tokens must be 0 or more, it is ", o.max_tokens,
                                     "; 0 goes on to the end of the answer");
  tenon::ThreadTeam team(o.threads);
  const auto file = tenon::open_checkpoint(o.model);
  const auto tokenizer = tenon::Tokenizer::from(*file);
  auto chat_template =
      o.template_file.empty()
          ? tenon::naming_origin(
                *file, [&] { return tenon::ChatTemplate::from(file->metadata(), tokenizer); })
          : tenon::ChatTemplate(read_file(o.template_file),
                                tenon::ChatTemplate::texts_of(tokenizer));
  const auto model = tenon::zoo::All::load(*file, team);
  const int trained =
      model.trained_context() > 0 ? model.trained_context() : longest_default_context;
  tenon::Limits limits;
  limits.context = o.context != 0 ? o.context : (std::min)(trained, longest_default_context);
  limits.step_tokens = (std::min)(limits.context, 256);
  limits.rollback = (std::min)(limits.context, 64);  // an answer's end may be spelled differently
  auto session = model.open(
      limits,
      {.cache = o.cache, .activations = activations_named(o.activations), .executor = &team});

  Chat conversation(o, session, tokenizer, std::move(chat_template));
  const bool asks = terminal();
  if (asks) std::cerr << "/help lists the commands\n";
  std::string line;
  do {
    if (asks) std::cout << "> " << std::flush;
    if (!std::getline(std::cin, line)) break;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    line = tenon::to_utf8(line);  // what is saved must be JSON, which knows no other bytes
  } while (conversation.take(line) && std::cout);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Talks with a language model, line by line. /help lists the commands.", "chat");
  app.add_option("MODEL", o.model, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("--template", o.template_file, "a file with another chat template (Jinja)");
  app.add_option("--system", o.system, "what the model is told first");
  app.add_option("--set", o.variables, "NAME=VALUE for the template: enable_thinking=false");
  app.add_option("--max-tokens", o.max_tokens, "tokens of an answer at most; 0: no limit")
      ->capture_default_str();
  add_sampling(app, o.sampling);
  app.add_option("--threads", o.threads, "0: as many as this process may use")
      ->capture_default_str();
  app.add_option("--ctx", o.context,
                 "tokens of context; 0: what the model was trained for, up to 8192")
      ->check(from_to(0, most_context))
      ->capture_default_str();
  app.add_option("--cache", o.cache, "format of cached rows, or of keys/values")
      ->capture_default_str();
  app.add_option("--activations", o.activations,
                 "with block-quantized weights: int8 or f32 (exact)")
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { chat(o); });
}
