#pragma once
// Tensors of a safetensors file that the reference wrote (trusted data, no checks).
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

// The tensors as the bytes they hold.
class Tensors {
 public:
  explicit Tensors(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::uint64_t header = 0;
    file.read(reinterpret_cast<char*>(&header), 8);
    std::string text(header, ' ');
    file.read(text.data(), static_cast<std::streamsize>(header));
    names_ = nlohmann::json::parse(text);
    data_.assign(std::istreambuf_iterator<char>(file), {});
  }
  bool contains(const std::string& name) const { return names_.contains(name); }
  template <class T>
  std::vector<T> get(const std::string& name) const {
    const auto range = names_.at(name).at("data_offsets").get<std::array<std::size_t, 2>>();
    std::vector<T> values((range[1] - range[0]) / sizeof(T));
    std::memcpy(values.data(), data_.data() + range[0], values.size() * sizeof(T));
    return values;
  }

 private:
  nlohmann::json names_;
  std::vector<char> data_;
};
