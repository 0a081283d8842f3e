// The memory plan of every family of the zoo, from the file's headers, against the loaded model.
#include <filesystem>
#include <string>

#include "catch.hpp"
#include "shared_data.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/zoo/registry.hpp"

using namespace tenon;

TEST_CASE("zoo: an outline knows what loading will take") {
  int seen = 0;
  for (const char* name :
       {"deepseek2-full", "deepseek2-lite", "gemma2", "gemma3", "gemma4", "gpt-oss", "llada",
        "llama-mha", "llama-mqa", "llama3-ropefreqs", "mixtral", "qwen2", "qwen3", "qwen3moe"}) {
    const auto path = shared_file("models/zoo/" + std::string(name) + ".gguf");
    if (path.empty()) return;
    INFO(name);
    const Gguf file = Gguf::open(path);
    SerialExecutor serial;
    const Limits limits{.seqs = 2, .context = 100, .step_tokens = 30};
    const SessionOptions options{.executor = &serial};
    const MemoryPlan plan = zoo::All::outline(file).memory(limits, options);
    const AnyModel model = zoo::All::load(file, serial);
    const AnySession session = model.open(limits, options);
    CHECK(plan.weights == model.bytes());
    CHECK(plan.cache == session.cache_bytes());
    CHECK(plan.workspace == session.workspace_bytes());
    CHECK(plan.vectors > 0);
    std::size_t kinds = 0;
    for (const KindPlan& kind : plan.kinds) kinds += kind.bytes;
    CHECK(kinds == plan.cache);
    ++seen;
  }
  CHECK(seen == 14);
}
