// Stores the matrices of a model file as they lie in memory, so that it starts at once.
#include <tenon/core/thread_team.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/replace_file.hpp>
#include <tenon/model/packed_file.hpp>
#include <tenon/zoo/registry.hpp>

#include "command_line.hpp"

int main(int argc, char** argv) {
  std::string in, out;
  int threads = 0;
  CLI::App app(
      "Stores the matrices of a model file as they lie in memory, so that it starts at once.",
      "pack");
  app.add_option("IN", in, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("OUT", out, "the .gguf file to write, for this version of tenon only")->required();
  app.add_option("--threads", threads, "0: as many as this process may use")->capture_default_str();
  return run_program(app, argc, argv, [&] {
    tenon::ThreadTeam team(threads);
    const auto file = tenon::open_checkpoint(in);
    tenon::check_replaceable(out);
    tenon::PackedLog log;
    static_cast<void>(tenon::zoo::All::load(*file, team, {.packed = &log}));
    tenon::write_packed(out, *file, log, team);
  });
}
