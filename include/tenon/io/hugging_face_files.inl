#pragma once
// The files of a Hugging Face folder.
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "../core/error.hpp"
#include "../core/json_value.hpp"
#include "safetensors.hpp"

namespace tenon::inline TENON_ABI::detail {

// A tensor of the folder with the file it lies in.
struct FolderTensor {
  const SafeTensor* tensor;
  const SafeTensors* file;
  bool used = false;
};

class FolderFiles {
 public:
  explicit FolderFiles(const std::filesystem::path& folder) : folder_(folder) {}

  std::string origin() const { return folder_.string(); }
  std::string name_of(std::string_view file) const { return (folder_ / file).string(); }
  // Whether there is anything of that name. What is no file that can be read, a link into nothing
  // or to itself, is for whoever opens it to refuse: left out in silence it would be missed later.
  bool has_file(std::string_view file) const {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::symlink_status(folder_ / file, ignored));
  }
  std::string text_file(std::string_view file) const {
    const MappedFile mapped(folder_ / file);
    const auto bytes = mapped.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  JsonValue json_file(std::string_view file) const {
    return JsonValue::parse(text_file(file), name_of(file));
  }

  void open() {
    constexpr std::string_view single = "model.safetensors", index = "model.safetensors.index.json";
    if (has_file(single)) return add_file(single, nullptr);
    if (!has_file(index)) {
      fail<LoadError>(origin(),
                      ": must hold model.safetensors or model.safetensors.index.json, "
                      "it holds neither; download the safetensors files of the checkpoint");
    }
    const JsonValue json = json_file(index);
    const JsonValue* map = json.find("weight_map");
    if (map == nullptr || map->object() == nullptr) {
      fail<LoadError>(name_of(index),
                      ": must hold an object weight_map, it does not; "
                      "download it again");
    }
    std::map<std::string, std::unordered_set<std::string>> files;  // in the order of their names
    for (const auto& [tensor, file] : *map->object()) {
      const std::string name = file.text() == nullptr ? std::string() : *file.text();
      const bool plain = !name.empty() && name.find_first_of("/\\") == std::string::npos &&
                         name.ends_with(".safetensors");
      if (!plain) {
        fail<LoadError>(name_of(index),
                        ": weight_map must name safetensors files of the folder, "
                        "tensor ",
                        printable(tensor), " is said to be in ", printable(file.dump()),
                        "; download the checkpoint again");
      }
      files[name].insert(tensor);
    }
    for (const auto& [file, tensors] : files) add_file(file, &tensors);
  }
  // The file must hold exactly the tensors that the index lists for it.
  void add_file(std::string_view name, const std::unordered_set<std::string>* listed) {
    files_.push_back(std::make_unique<const SafeTensors>(SafeTensors::open(folder_ / name)));
    const SafeTensors& file = *files_.back();
    for (const SafeTensor& tensor : file.tensors()) {
      if (listed != nullptr && !listed->contains(tensor.name)) {
        fail<LoadError>(file.origin(), ": tensor ", printable(tensor.name),
                        " must be listed in model.safetensors.index.json for this file, it is not; "
                        "the files do not belong together, download them again");
      }
      all_.emplace(tensor.name, FolderTensor{&tensor, &file});
    }
    if (listed == nullptr) return;
    for (const std::string& tensor : *listed) {
      if (file.find(tensor) != nullptr) continue;
      fail<LoadError>(file.origin(), ": must hold tensor ", printable(tensor),
                      " as model.safetensors.index.json says, it does not; the files do not belong "
                      "together, download them again");
    }
  }

  // The tensor of that name, or null. It counts as used.
  FolderTensor* take(const std::string& name) {
    const std::string* found = nullptr;
    std::string longer;
    if (all_.contains(name)) found = &name;
    for (std::size_t i = 0; i < prefixes_.size() && found == nullptr; ++i) {
      // "language_model.model.norm" in some files, "model.language_model.norm" in others.
      const bool inside = prefixes_[i].starts_with("model.") && name.starts_with("model.");
      longer = prefixes_[i] + (inside ? name.substr(6) : name);
      if (all_.contains(longer)) found = &longer;
    }
    if (found == nullptr) return nullptr;
    FolderTensor& tensor = all_.at(*found);
    tensor.used = true;
    return &tensor;
  }
  // The model lies inside another, under names that begin with one of these.
  void look_inside(std::vector<std::string> prefixes) { prefixes_ = std::move(prefixes); }
  const std::unordered_map<std::string, FolderTensor>& tensors() const { return all_; }
  std::vector<std::unique_ptr<const SafeTensors>> release() { return std::move(files_); }

 private:
  std::filesystem::path folder_;
  std::vector<std::unique_ptr<const SafeTensors>> files_;
  std::unordered_map<std::string, FolderTensor> all_;
  std::vector<std::string> prefixes_;
};

}  // namespace tenon::inline TENON_ABI::detail
