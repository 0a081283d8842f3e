// Models of the zoo, packed and mapped again, give the bits of the originals.
#include "golden/reference.hpp"
#include "io/files.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/model/any_model.hpp"
#include "tenon/model/packed_file.hpp"
#include "tenon/zoo/deepseek2.hpp"
#include "tenon/zoo/llama.hpp"
#include "tenon/zoo/mixtral.hpp"

using namespace tenon;

namespace {

template <class M>
void check_packed(const std::string& name) {
  const auto path = shared_file("models/zoo/" + name + ".gguf");
  if (path.empty()) return;
  const test::TemporaryFolder folder;
  SerialExecutor serial;
  PackedLog log;
  const Gguf file = Gguf::open(path);
  const M original = M::bind(file, serial, {.packed = &log});
  write_packed(folder / "packed.gguf", file, log, serial);
  const Gguf packed = Gguf::open(folder / "packed.gguf");
  const M mapped = M::bind(packed, serial, {.verify = true});
  CHECK(mapped.bound()->fingerprint == original.bound()->fingerprint);
  CHECK(mapped.bytes() == original.bytes());
  CHECK(!packed.metadata().texts("tenon.packed.names").empty());
  const std::vector<Token> ids{1, 17, 42, 5, 99, 63, 7, 7, 30};
  const auto run = [&](const M& model) {
    auto session = model.open({.seqs = 1, .context = 16, .step_tokens = 16}, {.threads = 1});
    return reference::logits(session, ids, 16).values;
  };
  const auto want = run(original);
  CHECK(want.size() == ids.size() * static_cast<std::size_t>(original.vocab()));
  CHECK(run(mapped) == want);
}

}  // namespace

TEST_CASE("llama, packed", "[golden]") {
  check_packed<zoo::Llama<>>("llama-mha");
}
TEST_CASE("mixtral, packed", "[golden]") {
  check_packed<zoo::Mixtral<>>("mixtral");
}
TEST_CASE("deepseek2, packed", "[golden]") {
  check_packed<zoo::DeepSeek2<>>("deepseek2-lite");
  check_packed<zoo::DeepSeek2<>>("deepseek2-full");
}
