// Rewrites the matrices of a model file in other formats.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <optional>
#include <span>
#include <tenon/core/thread_team.hpp>
#include <tenon/io/checkpoint.hpp>
#include <tenon/io/gguf_writer.hpp>
#include <tenon/io/importance_matrix.hpp>
#include <tenon/io/replace_file.hpp>
#include <tenon/io/tensor_makers.hpp>
#include <tenon/quant/gguf_formats.hpp>
#include <tenon/quant/importance.hpp>
#include <utility>
#include <vector>

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

// Room for one row at each step, for as many threads as encode at once.
class RowScratch {
 public:
  struct Row {
    std::vector<float> values;
    std::vector<std::byte> stored, encoded;
  };
  // Rows of `columns` values, which no format stores in more than four bytes each.
  RowScratch(int threads, tenon::Dim columns) {
    const auto count = static_cast<std::size_t>(columns);
    rows_.resize(static_cast<std::size_t>(threads),
                 {std::vector<float>(count), std::vector<std::byte>(4 * count),
                  std::vector<std::byte>(4 * count)});
    for (Row& row : rows_) free_.push_back(&row);
  }
  Row* take() {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return !free_.empty(); });
    Row* row = free_.back();
    free_.pop_back();
    return row;
  }
  void give_back(Row* row) {
    {
      const std::lock_guard lock(mutex_);
      free_.push_back(row);
    }
    returned_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Row> rows_;
  std::vector<Row*> free_;
};

// A tensor in its new format, row by row: some encoders look at whole rows.
class EncodedRows final : public tenon::ByteMaker {
 public:
  // `important`: of the columns of each matrix, or empty.
  EncodedRows(const Job& job, tenon::MakerInput from, std::vector<std::span<const float>> important,
              RowScratch& scratch)
      : job_(job),
        from_(std::move(from)),
        important_(std::move(important)),
        scratch_(scratch),
        columns_(job.from->shape.back()),
        each_(static_cast<std::size_t>(job.from->shape[job.from->shape.size() - 2])),
        from_bytes_(row_bytes(job.source)),
        to_bytes_(row_bytes(job.target)) {}
  // Of all rows.
  std::size_t size() const { return from_.bytes.size() / from_bytes_ * to_bytes_; }

  void make(std::size_t first, std::span<std::byte> to) const noexcept override {
    RowScratch::Row* row = scratch_.take();
    tenon::make_units(first, to, to_bytes_, 1, row->encoded.data(),
                      [&](std::size_t r, std::size_t, std::byte* at) { encode(r, *row, at); });
    scratch_.give_back(row);
  }
  void done(std::size_t first, std::size_t count) const noexcept override {
    const std::size_t from = first / to_bytes_, to = (first + count) / to_bytes_;
    if (from < to) from_.done(from * from_bytes_, (to - from) * from_bytes_);
  }

 private:
  std::size_t row_bytes(int tag) const {
    return tenon::FormatList<Formats>::visit(
        tag, [&]<class F>(F) { return tenon::row_bytes<F>(columns_); });
  }
  void encode(std::size_t r, RowScratch::Row& row, std::byte* at) const {
    const auto stored = from_.bytes.read(r * from_bytes_, std::span(row.stored).first(from_bytes_));
    tenon::FormatList<Formats>::visit(job_.source, [&]<class From>(From) {
      From::decode(stored.data(), columns_, row.values.data());
    });
    const auto important = important_.empty() ? std::span<const float>() : important_[r / each_];
    tenon::FormatList<Formats>::visit(job_.target, [&]<class To>(To) {
      if (important.empty()) {
        To::encode(row.values.data(), columns_, at);
      } else {
        tenon::encode_important<To>(row.values.data(), columns_, at, important.data());
      }
    });
  }

  Job job_;
  tenon::MakerInput from_;
  std::vector<std::span<const float>> important_;
  RowScratch& scratch_;
  tenon::Dim columns_;
  std::size_t each_, from_bytes_, to_bytes_;  // rows of a matrix, bytes of a row
};

// The importance of the columns of every matrix in a tensor [..., rows, columns].
std::vector<std::span<const float>> columns_of(const tenon::ImportanceMatrix& importance,
                                               const tenon::TensorInfo& tensor) {
  tenon::Dim matrices = 1;
  for (std::size_t axis = 0; axis + 2 < tensor.shape.size(); ++axis) matrices *= tensor.shape[axis];
  std::vector<std::span<const float>> all;
  for (tenon::Dim m = 0; m < matrices; ++m) {
    all.push_back(importance.find(tensor.name, matrices, tensor.shape.back(), m));
  }
  return all;
}

void run(const Options& options) {
  std::error_code ignored;
  if (std::filesystem::equivalent(options.in, options.out, ignored)) {
    tenon::fail<tenon::RequestError>(options.out,
                                     ": OUT must be another file than IN, it is the same; what "
                                     "rounding takes away would be lost, name another one");
  }
  const auto checkpoint = tenon::open_checkpoint(options.in);
  tenon::check_replaceable(options.out);
  const tenon::TensorSource& file = *checkpoint;
  std::optional<tenon::ImportanceMatrix> importance;
  if (!options.importance.empty()) {
    importance = tenon::ImportanceMatrix::open(options.importance);
    importance->check_made_with(file);
  }
  const Recipe recipe(file, options.format, options.pure, importance.has_value(),
                      options.overrides);
  tenon::ThreadTeam team(options.threads);
  std::vector<Job> jobs;
  tenon::Dim columns = 0;
  for (const tenon::TensorInfo& tensor : file.tensors()) {
    jobs.push_back(job_of(tensor, recipe, options));
    if (jobs.back().source != jobs.back().target) {
      columns = (std::max)(columns, tensor.shape.back());
    }
  }
  RowScratch scratch(team.threads(), columns);
  std::deque<EncodedRows> encoded;
  std::vector<tenon::TensorInfo> tensors(file.tensors().begin(), file.tensors().end());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (jobs[i].source == jobs[i].target) continue;
    tenon::MakerInput from{tensors[i].data,
                           [&](std::span<const std::byte> part) { file.done_with(part); }};
    encoded.emplace_back(
        jobs[i], std::move(from),
        importance ? columns_of(*importance, tensors[i]) : std::vector<std::span<const float>>(),
        scratch);
    tensors[i].data = tenon::StoredBytes(encoded.back(), encoded.back().size());
    tensors[i].ggml_type = tenon::FormatList<Formats>::visit(
        jobs[i].target, []<class To>(To) { return int{To::ggml_type}; });
  }
  tenon::Metadata metadata = file.metadata();
  metadata.set("general.file_type", recipe.file_type());
  metadata.set("general.quantization_version", std::uint32_t{2});
  tenon::write_gguf(options.out, metadata, tensors, &team);
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
