// Every file of ../shared/models/zoo of a family that the zoo has, against an independent
// implementation.
#include "golden/zoo.hpp"

TEST_CASE("zoo: logits and greedy ids", "[golden]") {
  const std::string name =
      GENERATE(as<std::string>{}, "llama-mha", "llama-mqa", "llama3-ropefreqs", "qwen2", "qwen3",
               "llada", "mixtral", "qwen3moe", "gpt-oss", "gemma2", "gemma3", "gemma4",
               "deepseek2-lite", "deepseek2-full");
  golden::check_zoo(name);
}
