#pragma once
// Importance matrices: how much each column of each weight was used while a model read a text.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../core/types.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

class ByteReader;
class Gguf;

// Reads what llama.cpp's imatrix program writes: GGUF files, with NAME.in_sum2 [matrices, columns]
// and NAME.counts [matrices] for each weight NAME, and the older binary files. LoadError for
// anything else: files that were cut, weights that nothing was multiplied with, and what is
// negative or no number.
class ImportanceMatrix {
 public:
  static ImportanceMatrix open(const std::filesystem::path& path);
  // Takes the bytes of a whole file; `origin` names them in messages.
  static ImportanceMatrix from_bytes(std::vector<std::byte> bytes,
                                     std::string origin = "importance matrix");

  // How many weights it knows.
  std::size_t size() const { return weights_.size(); }
  // Of one weight [matrices, columns] the importance of each column of matrix `matrix`: the mean of
  // squares of what it was multiplied with, times a power of two that brings their mean near 1. Of
  // a matrix that nothing was multiplied with all are 1; a column of which that is true counts a
  // millionth of the mean. Empty when the weight is not known. LoadError when it is known with
  // another number of columns, or of matrices.
  std::span<const float> find(std::string_view weight, Dim matrices, Dim columns, Dim matrix) const;

  // LoadError, naming a weight, when it was made with another model: it knows a weight that `model`
  // does not have or has in other sizes, or none of the weights of a layer that computes one.
  void check_made_with(const TensorSource& model) const;

 private:
  struct Weight {
    Dim matrices = 0, columns = 0;
    std::vector<float> importance;  // [matrices, columns]
  };
  static bool is_gguf(std::span<const std::byte> bytes);
  void refuse_empty() const;
  void read(const Gguf& file);
  void read_binary(std::span<const std::byte> bytes);
  void check_trailer(ByteReader& reader) const;
  void add(const std::string& name, Dim matrices, Dim columns, std::vector<float> sums,
           std::span<const float> counts);

  std::string origin_;
  std::unordered_map<std::string, Weight> weights_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "importance_matrix.inl"
#endif
