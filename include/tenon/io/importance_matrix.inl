#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "../core/error.hpp"
#include "byte_reader.hpp"
#include "gguf.hpp"
#include "importance_matrix.hpp"
#include "mapped_file.hpp"

namespace tenon::inline TENON_ABI {

namespace detail {
inline std::vector<float> floats_of(const TensorInfo& tensor, std::string_view origin) {
  if (tensor.ggml_type != 0) {
    fail<LoadError>(origin, ": tensor ", printable(tensor.name),
                    " of an importance matrix must be f32, it has ggml type ", tensor.ggml_type,
                    "; make the file again");
  }
  std::vector<float> values(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}
}  // namespace detail

TENON_INLINE ImportanceMatrix ImportanceMatrix::open(const std::filesystem::path& path) {
  ImportanceMatrix matrix;
  matrix.origin_ = path.string();
  const MappedFile file(path);
  if (is_gguf(file.bytes())) {
    matrix.read(Gguf::open(path));
  } else {
    matrix.read_binary(file.bytes());
  }
  matrix.refuse_empty();
  return matrix;
}

TENON_INLINE ImportanceMatrix ImportanceMatrix::from_bytes(std::vector<std::byte> bytes,
                                                           std::string origin) {
  ImportanceMatrix matrix;
  matrix.origin_ = std::move(origin);
  if (is_gguf(bytes)) {
    matrix.read(Gguf::from_bytes(std::move(bytes), matrix.origin_));
  } else {
    matrix.read_binary(bytes);
  }
  matrix.refuse_empty();
  return matrix;
}

TENON_INLINE bool ImportanceMatrix::is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

TENON_INLINE void ImportanceMatrix::refuse_empty() const {
  if (!weights_.empty()) return;
  fail<LoadError>(origin_, ": an importance matrix must have an entry for some weight, it has ",
                  "none; make it from a text with llama.cpp's imatrix program");
}

TENON_INLINE void ImportanceMatrix::read(const Gguf& file) {
  constexpr std::string_view sums_end = ".in_sum2", counts_end = ".counts";
  for (const TensorInfo& tensor : file.tensors()) {
    if (!tensor.name.ends_with(sums_end)) continue;
    const std::string name = tensor.name.substr(0, tensor.name.size() - sums_end.size());
    const TensorInfo* counts = file.find(name + std::string(counts_end));
    const Dim columns = tensor.shape.back();
    std::vector<float> sums = detail::floats_of(tensor, origin_);
    const auto matrices = static_cast<Dim>(sums.size()) / columns;
    if (counts == nullptr || counts->data.size() != static_cast<std::size_t>(matrices) * 4) {
      fail<LoadError>(origin_, ": tensor ", printable(name), counts_end, " must have ", matrices,
                      " counts, ", counts == nullptr ? "it is missing" : "it has others",
                      "; make the importance matrix again");
    }
    add(name, matrices, columns, std::move(sums), detail::floats_of(*counts, origin_));
  }
}

// i32 entries; for each: i32 length and that many letters, i32 calls, i32 columns, f32 [columns]:
// means times calls. Then, in files that are not of the oldest kind, a trailer.
TENON_INLINE void ImportanceMatrix::read_binary(std::span<const std::byte> bytes) {
  ByteReader reader(bytes, origin_);
  const auto number = [&](std::string_view what, std::int32_t least, std::int32_t most) {
    const auto value = reader.number<std::int32_t>({what});
    if (value < least || value > most) {
      fail<LoadError>(origin_, ": ", what, " of an importance matrix must be ", least, " to ", most,
                      ", it is ", value, "; the file is damaged, or of another kind");
    }
    return value;
  };
  const std::int32_t entries = number("the number of entries", 1, 1 << 20);
  for (std::int32_t i = 0; i < entries; ++i) {
    const std::int32_t length = number("the length of a name", 1, 65535);
    const auto text = reader.take(static_cast<std::uint64_t>(length), {"a name"});
    const std::string name(reinterpret_cast<const char*>(text.data()), text.size());
    const std::int32_t calls = number("the number of calls", 1, 1 << 30);
    const std::int32_t columns = number("the number of columns", 1, 1 << 28);
    const auto data =
        reader.take(static_cast<std::uint64_t>(columns) * sizeof(float), {"the values", name});
    std::vector<float> sums(static_cast<std::size_t>(columns));
    std::memcpy(sums.data(), data.data(), data.size());
    const auto count = static_cast<float>(calls);
    add(name, 1, columns, std::move(sums), {&count, 1});
  }
  if (reader.remaining() > 0) check_trailer(reader);
}

// i32 chunks of the text, i32 length and that many letters: its name. They only inform, but where
// they end too early the file was cut.
TENON_INLINE void ImportanceMatrix::check_trailer(ByteReader& reader) const {
  static_cast<void>(reader.number<std::int32_t>({"the number of chunks"}));
  const auto length = reader.number<std::int32_t>({"the length of the text's name"});
  if (length >= 0 && static_cast<std::uint64_t>(length) == reader.remaining()) return;
  fail<LoadError>(origin_,
                  ": the name of the text of an importance matrix must be all that follows",
                  " its length, which is ", length, ", there are ", reader.remaining(),
                  " bytes; the file is cut short or damaged, make or download it again");
}

TENON_INLINE void ImportanceMatrix::add(const std::string& name, Dim matrices, Dim columns,
                                        std::vector<float> sums, std::span<const float> counts) {
  const auto refuse = [&](const auto&... parts) {
    fail<LoadError>(origin_, ": importance of ", printable(name), " ", parts...,
                    "; make the importance matrix again");
  };
  const auto valid = [](float x) { return x >= 0 && x <= 0x1p100f; };  // false for a NaN
  if (!std::all_of(sums.begin(), sums.end(), valid) ||
      !std::all_of(counts.begin(), counts.end(), valid)) {
    refuse("must be numbers from 0 to 2^100, some are not");
  }
  const auto n = static_cast<std::size_t>(columns);
  if (std::none_of(counts.begin(), counts.end(), [](float x) { return x > 0; })) {
    refuse("must be of at least one vector that it was multiplied with, it is of none");
  }
  for (std::size_t m = 0; m < static_cast<std::size_t>(matrices); ++m) {
    float* row = sums.data() + m * n;
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += static_cast<double>(row[i]);
    if (total > 0 && !(counts[m] > 0)) {
      refuse("must be 0 where a matrix was never used, in matrix ", m, " it is not");
    }
    if (!(total > 0)) {
      std::fill_n(row, n, 1.0f);
      continue;
    }
    const double mean = total / static_cast<double>(n) / static_cast<double>(counts[m]);
    const int shift = -std::ilogb(mean);
    for (std::size_t i = 0; i < n; ++i) {
      const double used = static_cast<double>(row[i]) / static_cast<double>(counts[m]);
      const auto value = static_cast<float>(std::ldexp(used, shift));
      row[i] = (std::max)(value, 1e-6f);
    }
  }
  if (!weights_.emplace(name, Weight{matrices, columns, std::move(sums)}).second) {
    refuse("must be there once, it is there twice");
  }
}

TENON_INLINE std::span<const float> ImportanceMatrix::find(std::string_view name, Dim matrices,
                                                           Dim columns, Dim matrix) const {
  const auto at = weights_.find(std::string(name));
  if (at == weights_.end()) return {};
  const Weight& weight = at->second;
  // The older files hold experts side by side.
  const bool fits =
      (weight.matrices == matrices && weight.columns == columns) ||
      (weight.matrices == 1 && (weight.columns == columns || weight.columns == matrices * columns));
  if (!fits) {
    fail<LoadError>(origin_, ": importance of ", printable(name), " must be of ", matrices, " x ",
                    columns, " columns, it is of ", weight.matrices, " x ", weight.columns,
                    "; it was made with another model");
  }
  const bool shared = weight.matrices == 1 && weight.columns == columns;
  const std::size_t first = shared ? 0 : static_cast<std::size_t>(matrix * columns);
  return std::span(weight.importance).subspan(first, static_cast<std::size_t>(columns));
}

TENON_INLINE void ImportanceMatrix::check_made_with(const TensorSource& model) const {
  for (const auto& [name, weight] : weights_) {
    const TensorInfo* tensor = model.find(name);
    if (tensor == nullptr) {
      fail<LoadError>(origin_, ": importance of ", printable(name), " must be of a tensor of ",
                      model.origin(), ", which has none of that name; it was made with another ",
                      "model, make one with this model");
    }
    Dim matrices = 1;
    for (std::size_t axis = 0; axis + 2 < tensor->shape.size(); ++axis) {
      matrices *= tensor->shape[axis];
    }
    static_cast<void>(find(name, matrices, tensor->shape.back(), 0));
  }
  // Experts that were never chosen and the embedding may be missing, but not all of a layer. Layers
  // that only draft ("nextn") are not run when the text is read.
  struct Layer {
    const std::string* weight = nullptr;
    bool known = false, drafts = false;
  };
  std::map<std::string_view, Layer> layers;
  for (const TensorInfo& tensor : model.tensors()) {
    constexpr std::string_view block = "blk.";
    const std::string_view name = tensor.name;
    if (!name.starts_with(block)) continue;
    Layer& layer = layers[name.substr(0, name.find('.', block.size()))];
    if (name.find(".nextn.") != name.npos) layer.drafts = true;
    if (weights_.contains(tensor.name)) layer.known = true;
    if (tensor.shape.size() > 1 && name.ends_with(".weight")) layer.weight = &tensor.name;
  }
  for (const auto& [number, layer] : layers) {
    if (layer.known || layer.drafts || layer.weight == nullptr) continue;
    fail<LoadError>(origin_, ": an importance matrix must know weights of every layer of ",
                    model.origin(), ", of ", printable(number), " it knows none, not ",
                    printable(*layer.weight),
                    "; it was made with another model, make one with this model");
  }
}

}  // namespace tenon::inline TENON_ABI
