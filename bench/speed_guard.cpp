// Short pieces of work whose instructions tests/speed/speed_guard.py counts:
//   bench_speed_guard TASK MODEL
// One thread, given ids, no clock: the counts of two runs are equal. What is counted happens inside
// speed_guard_counted(), by whose name callgrind switches its collection on and off.
#include <cstdio>
#include <random>
#include <vector>

#include "../examples/command_line.hpp"
#include "tenon/cache/contiguous.hpp"
#include "tenon/decode/sequence.hpp"
#include "tenon/io/gguf.hpp"
#include "tenon/kernels/linear.hpp"
#include "tenon/zoo/llama.hpp"

extern "C" [[gnu::noinline]] void speed_guard_counted(void (*work)(void*), void* what) {
  work(what);
  asm volatile("" ::: "memory");  // no tail call: the function must still be there at its end
}

namespace {

using namespace tenon;
using Story = zoo::Llama<Contiguous<F16>, Q8_0>;

template <class Work>
void counted(Work work) {
  speed_guard_counted([](void* what) { (*static_cast<Work*>(what))(); }, &work);
}

std::vector<Token> some_tokens(int count, int vocab) {
  std::minstd_rand generator(1);
  std::vector<Token> tokens(static_cast<std::size_t>(count));
  for (Token& token : tokens) {
    token = static_cast<Token>(generator() % static_cast<unsigned>(vocab));
  }
  return tokens;
}

// Processes `count` tokens, in one step or one by one.
void process(const std::string& path, int count, bool one_by_one) {
  SerialExecutor serial;
  const auto model = Story::bind(Gguf::open(path), serial);
  auto session =
      model.open({.seqs = 1, .context = 2 * count, .step_tokens = count}, {.executor = &serial});
  const SeqId seq = session.open();
  const std::vector<Token> tokens = some_tokens(count, model.vocab());
  std::vector<float> logits(static_cast<std::size_t>(model.vocab()));
  const auto give = [&](std::size_t each) {
    for (std::size_t i = 0; i < tokens.size(); i += each) {
      prefill(session, seq, std::span(tokens).subspan(i, each), std::span(logits));
    }
  };
  const std::size_t each = one_by_one ? 1 : tokens.size();
  give(each);  // whatever is done only once
  counted([&] { give(each); });
}

template <class F>
void multiply(Dim tokens) {
  constexpr Dim out = 256, in = 1024;
  SerialExecutor serial;
  std::minstd_rand generator(1);
  const auto draw = [&] { return static_cast<float>(generator() % 2001) * 0.001f - 1; };
  std::vector<float> row(static_cast<std::size_t>(in));
  std::vector<std::byte> rows(static_cast<std::size_t>(out) * row_bytes<F>(in));
  for (Dim r = 0; r < out; ++r) {
    for (float& value : row) value = draw();
    encode_row<F>(row.data(), in, rows.data() + static_cast<std::size_t>(r) * row_bytes<F>(in));
  }
  const auto weights = PackedMatrix<F>::pack(0, rows, out, in, serial);
  std::vector<float> x(static_cast<std::size_t>(tokens * in));
  std::vector<float> y(static_cast<std::size_t>(tokens * out));
  for (float& value : x) value = draw();
  AlignedBuffer scratch(static_cast<std::size_t>(QuantizedRows::bytes(tokens, in)));
  const QuantizedRows quantized = QuantizedRows::carve(scratch.data(), tokens, in);
  const LinearOutput<F> output{&weights, matrix(y.data(), tokens, out)};
  const auto product = [&] {
    linear<F>(serial, choose_isa(), matrix<const float>(x.data(), tokens, in),
              std::span(&output, 1), Activations::int8, quantized);
  };
  product();
  counted(product);
}

void run(std::string_view task, const std::string& model) {
  if (task == "compiler") {
#if defined(__clang__)
    std::printf("clang-%d\n", __clang_major__);
#elif defined(__GNUC__)
    std::printf("gcc-%d\n", __GNUC__);
#else
    std::printf("unknown\n");
#endif
  } else if (task == "decode") {
    process(model, 16, true);
  } else if (task == "prefill") {
    process(model, 64, false);
  } else if (task == "q8_0") {
    multiply<Q8_0>(16);
  } else if (task == "q4_0") {
    multiply<Q4_0>(16);
  } else if (task == "q8_0_vector") {
    multiply<Q8_0>(1);
  } else if (task == "q4_0_vector") {
    multiply<Q4_0>(1);
  } else {
    fail<RequestError>(
        "TASK must be one of compiler, decode, prefill, q8_0, q4_0, q8_0_vector, q4_0_vector, it "
        "is \"",
        printable(task), "\"; choose one of these");
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::string task, model;
  CLI::App app("Work whose instructions are counted.", "bench_speed_guard");
  app.add_option("TASK", task, "what to do")->required();
  app.add_option("MODEL", model, "a Llama checkpoint in q8_0, for decode and prefill");
  return run_program(app, argc, argv, [&] { run(task, model); });
}
