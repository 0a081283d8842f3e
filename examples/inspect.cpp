// Says what is in a model file and what running it will take.
#include <cstdio>
#include <iostream>
#include <tenon/core/physical_memory.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/ggml_types.hpp>
#include <tenon/io/hugging_face.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/registry.hpp>

#include "command_line.hpp"

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;

std::string value_text(const tenon::MetaValue& value) {
  return std::visit(
      [&](const auto& data) -> std::string {
        using Data = std::decay_t<decltype(data)>;
        if constexpr (std::is_same_v<Data, std::string>) {
          return '"' + tenon::printable(data) + '"';
        } else if constexpr (std::is_same_v<Data, bool>) {
          return data ? "true" : "false";
        } else if constexpr (std::is_arithmetic_v<Data>) {
          return tenon::message(data);
        } else {
          return tenon::message(data.size(), " x ", name_of(value.item));
        }
      },
      value.data);
}

// What of a folder changes no result.
void print_ignored(const tenon::TensorSource& file) {
  const auto* folder = dynamic_cast<const tenon::HuggingFaceFolder*>(&file);
  if (folder == nullptr) return;
  const auto print = [](const char* what, std::span<const std::string> names) {
    if (names.empty()) return;
    std::printf("%s that change nothing (%zu):", what, names.size());
    for (const std::string& name : names) std::printf(" %s", tenon::printable(name).c_str());
    std::printf("\n");
  };
  print("keys", folder->ignored_keys());
  print("tensors", folder->ignored_tensors());
}

void print_tensors(const tenon::TensorSource& file) {
  std::size_t total = 0;
  std::printf("tensors (%zu)\n", file.tensors().size());
  for (const tenon::TensorInfo& tensor : file.tensors()) {
    const tenon::GgmlType* type = tenon::find_ggml_type(tensor.ggml_type);
    std::printf("  %-32s %-7s %-16s %12zu\n", tenon::printable(tensor.name).c_str(),
                type == nullptr ? "?" : std::string(type->name).c_str(),
                tenon::shape_text(tensor.shape).c_str(), tensor.data.size());
    total += tensor.data.size();
  }
  std::printf("  %-57s %12zu bytes\n", "all", total);
}

void print_tokenizer(const tenon::TensorSource& file) {
  const char* kinds[][2] = {{"tokenizer.ggml.model", ""},
                            {"tokenizer.huggingface.json", "tokenizer.json"},
                            {"tokenizer.sentencepiece.model", "tokenizer.model"}};
  std::string kind;
  for (const auto& [key, name] : kinds) {
    if (!kind.empty() || !file.metadata().contains(key)) continue;
    kind = *name == '\0' ? tenon::printable(file.metadata().text(key)) : name;
  }
  if (kind.empty()) {
    std::printf("tokenizer: none in this checkpoint\n");
    return;
  }
  try {
    const auto tokenizer = tenon::Tokenizer::from(file);
    const auto id = [](const std::optional<tenon::Token>& token) {
      return token ? std::to_string(*token) : std::string("none");
    };
    std::printf("tokenizer: %s, %d pieces, bos %s, eos %s, unknown %s\n", kind.c_str(),
                tokenizer.vocab(), id(tokenizer.bos()).c_str(), id(tokenizer.eos()).c_str(),
                id(tokenizer.unknown()).c_str());
  } catch (const tenon::Error& error) {
    std::printf("tokenizer: cannot be used: %s\n", error.what());
  }
}

// A check for --memory. The range of the command line's library lets nan pass.
std::string memory_size(const std::string& text) {
  constexpr int most = 1'000'000;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool number = error == std::errc{} && end == text.data() + text.size();
  if (number && value >= 0 && value <= most) return {};
  return tenon::message("must be a number from 0 to ", most, ", it is \"", tenon::printable(text),
                        "\"");
}

struct Wanted {
  int context = 0, sequences = 1, threads = 0;
  std::string cache = "f16";
  double memory = 0;
};

// What loading the model and opening a session would hold; only headers are read for that.
void print_memory(const tenon::TensorSource& file, const Wanted& wanted) {
  try {
    const auto model = tenon::zoo::All::outline(file);
    tenon::Limits limits;
    limits.seqs = wanted.sequences;
    limits.context = wanted.context != 0           ? wanted.context
                     : model.trained_context() > 0 ? model.trained_context()
                                                   : 512;
    limits.step_tokens = (std::min)(limits.context, 256);
    const tenon::SessionOptions options{.cache = wanted.cache, .threads = wanted.threads};
    const tenon::MemoryPlan plan = model.memory(limits, options);
    std::printf("memory for --ctx %d --batch %d, cache %s\n", limits.context, limits.seqs,
                wanted.cache.c_str());
    std::printf("  weights %14zu bytes\n  cache   %14zu bytes\n", plan.weights + plan.vectors,
                plan.cache);
    for (const tenon::KindPlan& kind : plan.kinds) {
      const std::string rows =
          kind.rows_back == 0 ? "all rows" : tenon::message("the last ", kind.rows_back, " rows");
      std::printf("          %14zu bytes of them for %d layer%s that see%s %s\n", kind.bytes,
                  kind.layers, kind.layers == 1 ? "" : "s", kind.layers == 1 ? "s" : "",
                  rows.c_str());
    }
    std::printf("  scratch %14zu bytes\n  all     %14zu bytes\n", plan.workspace, plan.total());
    const double machine = static_cast<double>(tenon::physical_memory()) / gib;
    const double memory = wanted.memory > 0 ? wanted.memory : machine;
    if (memory <= 0) return;
    const int longest =
        longest_context(model, static_cast<std::size_t>(memory * gib), limits, options);
    std::printf("longest --ctx in %.2f GiB: %d%s\n", memory, longest,
                longest == 1 << 20 ? " or more" : "");
  } catch (const tenon::LoadError& error) {
    std::printf("memory: this program cannot run the model: %s\n", error.what());
  } catch (const tenon::ShapeError& error) {
    std::printf("memory: this program cannot run the model: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  Wanted wanted;
  CLI::App app("Shows what a model file holds and the memory it will need.", "inspect");
  app.add_option("MODEL", path, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("--ctx", wanted.context, "tokens of context; 0: what the model was trained for")
      ->check(from_to(0, most_context))
      ->capture_default_str();
  app.add_option("--batch", wanted.sequences, "sequences at once, each with that context")
      ->check(from_to(1, most_sequences))
      ->capture_default_str();
  app.add_option("--memory", wanted.memory,
                 "GiB there are, for the longest context that fits; 0: this machine's")
      ->capture_default_str()
      ->check(memory_size);
  app.add_option("--cache", wanted.cache, "format of cached keys and values: f32, f16 or q8_0")
      ->capture_default_str();
  app.add_option("--threads", wanted.threads, "0: as many as this process may use")
      ->capture_default_str()
      ->check(CLI::Range(0, tenon::ThreadTeam::most));
  return run_program(app, argc, argv, [&] {
    const auto checkpoint = tenon::open_checkpoint(path);
    const tenon::TensorSource& file = *checkpoint;
    std::printf(
        "architecture: %s\n",
        tenon::printable(file.metadata().text_or("general.architecture", "not stated")).c_str());
    std::printf("metadata (%zu)\n", file.metadata().entries().size());
    for (const auto& [key, value] : file.metadata().entries()) {
      std::printf("  %-42s %-10s %s\n", tenon::printable(key).c_str(), value.type_name().c_str(),
                  value_text(value).c_str());
    }
    print_ignored(file);
    print_tensors(file);
    print_tokenizer(file);
    print_memory(file, wanted);
  });
}
