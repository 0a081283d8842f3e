#pragma once
// A GGUF checkpoint in several files, NAME-00001-of-00003.gguf and so on.
// Source: llama.cpp's gguf-split.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf.hpp"
#include "tensor_source.hpp"

namespace tenon::inline TENON_ABI {

// All files of such a checkpoint as one: the metadata of the first without the keys split.*, the
// tensors of all in their order. A file of several that were merged again (split.count 0, or 1) is
// one of these too.
class SplitGguf final : public TensorSource {
 public:
  // Whether a file is or was one of several by its key split.count.
  static bool is_part(const Gguf& file);
  // `path` names any of them, `file` is that one, open. LoadError names the file that is missing,
  // or is not the part that its name and its keys split.no, split.count and split.tensors.count
  // say.
  static SplitGguf open(const std::filesystem::path& path, Gguf file);

  std::string_view origin() const override { return origin_; }
  const Metadata& metadata() const override { return metadata_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override { return index_.find(name); }
  void done_with(std::span<const std::byte> part) const override;
  std::shared_ptr<const void> keep_alive() const override;
  int parts() const { return static_cast<int>(files_.size()); }

 private:
  SplitGguf() = default;
  void add_merged(const std::filesystem::path& path, Gguf file);
  void add_parts(const std::filesystem::path& path, Gguf file, std::int64_t count);
  void join();

  std::string origin_;
  std::vector<Gguf> files_;
  // Where the data of each part begins, in the order of addresses, and which part that is.
  std::vector<std::pair<const std::byte*, std::size_t>> begins_;
  Metadata metadata_;
  std::vector<TensorInfo> tensors_;
  TensorIndex index_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "split_gguf.inl"
#endif
