// Rewrites the matrices of a model file in other formats.
#include <filesystem>
#include <iostream>
#include <optional>
#include <tenon/core/thread_team.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/io/importance_matrix.hpp>
#include <tenon/quant/gguf_formats.hpp>
#include <tenon/quant/importance.hpp>

#include "command_line.hpp"
#include "quantize_recipe.hpp"

namespace {

using quantize::Formats, quantize::Recipe, quantize::name_of;

struct Options {
  std::string in, out, format, importance;
  std::vector<std::string> overrides;
  bool pure = false, requantize = false;
  int threads = 0;
};

// One tensor: what it is, and the tags of what it is stored as and becomes.
struct Job {
  const tenon::TensorInfo* from;
  int source, target;  // equal: the bytes stay
};

Job job_of(const tenon::TensorInfo& tensor, const Recipe& recipe, const Options& options) {
  const int source = tenon::tag_of_ggml_type<Formats>(tensor.ggml_type);
  const int wanted = recipe.wanted(tensor);
  if (wanted < 0 || wanted == source) return {&tensor, source, source};
  const int target = Recipe::fallback(wanted, tensor.shape.back());
  if (target != wanted) {
    std::cout << tensor.name << ": " << name_of(wanted) << " must have rows of a multiple of "
              << quantize::block_of(wanted) << " values, they have " << tensor.shape.back()
              << "; stored as " << name_of(target) << '\n';
  }
  if (target == source) return {&tensor, source, source};
  const auto* type = tenon::find_ggml_type(tensor.ggml_type);
  if (source < 0) {
    std::cout << tensor.name << ": stays " << type->name << ", which cannot be read\n";
    return {&tensor, -1, -1};
  }
  if (quantize::block_of(source) > 1 && !options.requantize) {
    tenon::fail<tenon::RequestError>(
        options.in, ": tensor ", tenon::printable(tensor.name),
        " must be stored as f32, f16 or bf16, it is ", type->name,
        "; quantize the original file, or pass --requantize to lose more");
  }
  return {&tensor, source, target};
}

// The tensor in its new format; threads share its rows.
tenon::StoredBytes convert(const Job& job, const tenon::ImportanceMatrix* importance,
                           tenon::Executor& team, std::vector<std::byte>& to) {
  const tenon::TensorInfo& tensor = *job.from;
  if (job.source == job.target) return tensor.data;
  const tenon::Dim columns = tensor.shape.back();
  tenon::Dim rows = 1;
  for (std::size_t axis = 0; axis + 1 < tensor.shape.size(); ++axis) rows *= tensor.shape[axis];
  const tenon::Dim each = tensor.shape[tensor.shape.size() - 2], matrices = rows / each;
  std::vector<std::span<const float>> columns_of(static_cast<std::size_t>(matrices));
  for (tenon::Dim m = 0; m < matrices && importance != nullptr; ++m) {
    columns_of[static_cast<std::size_t>(m)] = importance->find(tensor.name, matrices, columns, m);
  }
  tenon::FormatList<Formats>::visit(job.target, [&]<class To>(To) {
    to.resize(static_cast<std::size_t>(rows) * tenon::row_bytes<To>(columns));
  });
  const std::size_t workers = static_cast<std::size_t>(team.threads());
  std::vector<std::vector<float>> scratch(workers,
                                          std::vector<float>(static_cast<std::size_t>(columns)));
  team.run([&](tenon::Worker worker) {
    std::vector<float>& row = scratch[static_cast<std::size_t>(worker.index)];
    std::vector<std::byte> stored;  // a row, where the source makes it
    const tenon::Range mine = tenon::share(rows, worker);
    for (tenon::Dim r = mine.begin; r < mine.end; ++r) {
      tenon::FormatList<Formats>::visit(job.source, [&]<class From>(From) {
        const std::size_t bytes = tenon::row_bytes<From>(columns);
        stored.resize(bytes);
        const auto at = tensor.data.read(static_cast<std::size_t>(r) * bytes, stored);
        From::decode(at.data(), columns, row.data());
      });
      const auto important = columns_of[static_cast<std::size_t>(r / each)];
      tenon::FormatList<Formats>::visit(job.target, [&]<class To>(To) {
        std::byte* at = to.data() + static_cast<std::size_t>(r) * tenon::row_bytes<To>(columns);
        if (important.empty()) {
          To::encode(row.data(), columns, at);
        } else {
          tenon::encode_important<To>(row.data(), columns, at, important.data());
        }
      });
    }
  });
  return to;
}

void done_with(const tenon::TensorSource& source, const tenon::StoredBytes& data) {
  if (data.made()) {
    data.done(0, data.size());
  } else {
    source.done_with(data);
  }
}

void run(const Options& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.in, options.out, ignored)) {
    tenon::fail<tenon::RequestError>(options.out,
                                     ": OUT must be another file than IN, it is the same; what "
                                     "rounding takes away would be lost, name another one");
  }
  const auto checkpoint = tenon::open_checkpoint(options.in);
  const tenon::TensorSource& file = *checkpoint;
  std::optional<tenon::ImportanceMatrix> importance;
  if (!options.importance.empty()) {
    importance = tenon::ImportanceMatrix::open(options.importance);
  }
  const Recipe recipe(file, options.format, options.pure, importance.has_value(),
                      options.overrides);
  tenon::ThreadTeam team(options.threads);
  std::vector<Job> jobs;
  std::vector<tenon::TensorInfo> tensors(file.tensors().begin(), file.tensors().end());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    jobs.push_back(job_of(file.tensors()[i], recipe, options));
    if (jobs[i].source == jobs[i].target) continue;
    tensors[i].ggml_type = tenon::FormatList<Formats>::visit(
        jobs[i].target, []<class To>(To) { return int{To::ggml_type}; });
  }
  tenon::Metadata metadata = file.metadata();
  metadata.set("general.file_type", recipe.file_type());
  metadata.set("general.quantization_version", std::uint32_t{2});
  std::vector<std::byte> converted;
  tenon::write_gguf(options.out, metadata, tensors, [&](std::size_t i) {
    if (i > 0) done_with(file, jobs[i - 1].from->data);
    return convert(jobs[i], importance ? &*importance : nullptr, team, converted);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Rewrites the matrices of a model file in other formats.", "quantize");
  app.add_option("IN", options.in, "a .gguf file or a Hugging Face folder")->required();
  app.add_option("OUT", options.out, "the .gguf file to write")->required();
  app.add_option("FORMAT", options.format, "one of " + quantize::all_names())->required();
  app.add_option("--imatrix", options.importance,
                 "an importance matrix of the model, made by llama.cpp's imatrix program");
  app.add_option("--tensor", options.overrides,
                 "PATTERN=FORMAT: the format of the tensors whose names match, * standing for any "
                 "letters and ? for one; may be repeated, the last match wins")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--pure", options.pure, "no mixture: every matrix in the one format");
  app.add_flag("--requantize", options.requantize, "take matrices that are quantized already");
  app.add_option("--threads", options.threads, "0: as many as this process may use")
      ->capture_default_str();
  return run_program(app, argc, argv, [&] { run(options); });
}
