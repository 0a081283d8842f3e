// Says what is in a model file and what running it will take.
#include <cstdio>
#include <iostream>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/ggml_types.hpp>
#include <tenon/io/hugging_face.hpp>
#include <tenon/tenon.hpp>
#include <tenon/zoo/registry.hpp>

#include "command_line.hpp"

namespace {

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
  if (!file.metadata().contains("tokenizer.ggml.model")) {
    std::printf("tokenizer: none in this file\n");
    return;
  }
  try {
    const auto tokenizer = tenon::Tokenizer::from(file.metadata());
    const auto id = [](const std::optional<tenon::Token>& token) {
      return token ? std::to_string(*token) : std::string("none");
    };
    std::printf("tokenizer: %s, %d pieces, bos %s, eos %s, unknown %s\n",
                tenon::printable(file.metadata().text("tokenizer.ggml.model")).c_str(),
                tokenizer.vocab(), id(tokenizer.bos()).c_str(), id(tokenizer.eos()).c_str(),
                id(tokenizer.unknown()).c_str());
  } catch (const tenon::Error& error) {
    std::printf("tokenizer: cannot be used: %s\n", error.what());
  }
}

// Opens a session and reports what it holds; the weights are packed for that, not only counted.
void print_memory(const tenon::TensorSource& file, int context, const std::string& cache,
                  int threads) {
  try {
    tenon::ThreadTeam team(threads);
    const auto model = tenon::zoo::All::load(file, team);
    tenon::Limits limits;
    limits.context = context != 0                  ? context
                     : model.trained_context() > 0 ? model.trained_context()
                                                   : 512;
    limits.step_tokens = (std::min)(limits.context, 256);
    const auto session = model.open(limits, {.cache = cache, .executor = &team});
    std::printf("memory for --ctx %d, one sequence, cache %s\n", limits.context, cache.c_str());
    std::printf(
        "  weights %14zu bytes\n  cache   %14zu bytes\n  scratch %14zu bytes\n  all     %14zu "
        "bytes\n",
        model.bytes(), session.cache_bytes(), session.workspace_bytes(),
        model.bytes() + session.cache_bytes() + session.workspace_bytes());
  } catch (const tenon::LoadError& error) {
    std::printf("memory: this program cannot run the model: %s\n", error.what());
  } catch (const tenon::ShapeError& error) {
    std::printf("memory: this program cannot run the model: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, cache = "f16";
  int context = 0, threads = 0;
  CLI::App app("Shows what a model file holds and the memory it will need.", "inspect");
  app.add_option("MODEL", path, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("--ctx", context, "tokens of context; 0: what the model was trained for")
      ->capture_default_str();
  app.add_option("--cache", cache, "format of cached keys and values: f32, f16 or q8_0")
      ->capture_default_str();
  app.add_option("--threads", threads, "0: as many as this process may use")->capture_default_str();
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
    print_memory(file, context, cache, threads);
  });
}
