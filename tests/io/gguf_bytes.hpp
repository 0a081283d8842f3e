#pragma once
// Builds GGUF files byte by byte for tests, well-formed or not: every count, offset and type can be
// made to lie.
#include <tenon/core/metadata.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <ios>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace test {

// The bytes of numbers, little-endian, one after the other.
template <class... T>
std::string raw(T... values) {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&values), sizeof(T)), ...);
  return bytes;
}
// A GGUF string: 64-bit length, bytes.
inline std::string raw_text(std::string_view text) {
  return raw(std::uint64_t{text.size()}) + std::string(text);
}

struct GgufBytes {
  using MetaType = tenon::MetaType;

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // of the data; also written as a key when it is not 32
  std::optional<std::uint64_t> claimed_keys;  // instead of the true counts
  std::optional<std::uint64_t> claimed_tensors;

  // One key with the bytes of its value.
  GgufBytes& key(std::string_view name, std::uint32_t type, const std::string& value) {
    entries += raw_text(name) + raw(type) + value;
    ++keys;
    return *this;
  }
  GgufBytes& key(std::string_view name, MetaType type, const std::string& value) {
    return key(name, static_cast<std::uint32_t>(type), value);
  }
  GgufBytes& text(std::string_view name, std::string_view value) {
    return key(name, MetaType::string, raw_text(value));
  }
  GgufBytes& u32(std::string_view name, std::uint32_t value) {
    return key(name, MetaType::u32, raw(value));
  }
  GgufBytes& f32(std::string_view name, float value) {
    return key(name, MetaType::f32, raw(value));
  }
  GgufBytes& flag(std::string_view name, bool value) {
    return key(name, MetaType::boolean, raw(std::uint8_t{value}));
  }
  // An array of `count` items whose bytes are given.
  GgufBytes& array(std::string_view name, MetaType item, std::uint64_t count,
                   const std::string& items) {
    return key(name, MetaType::array, raw(static_cast<std::uint32_t>(item), count) + items);
  }
  GgufBytes& texts(std::string_view name, const std::vector<std::string>& values) {
    std::string items;
    for (const std::string& value : values) items += raw_text(value);
    return array(name, MetaType::string, values.size(), items);
  }
  GgufBytes& f32s(std::string_view name, const std::vector<float>& values) {
    std::string items;
    for (const float value : values) items += raw(value);
    return array(name, MetaType::f32, values.size(), items);
  }
  GgufBytes& i32s(std::string_view name, const std::vector<std::int32_t>& values) {
    std::string items;
    for (const std::int32_t value : values) items += raw(value);
    return array(name, MetaType::i32, values.size(), items);
  }

  // A tensor whose data follows that of the one before; `sizes` in the order of the file,
  // contiguous axis first.
  GgufBytes& tensor(std::string_view name, std::int32_t type,
                    const std::vector<std::uint64_t>& sizes, const std::string& bytes) {
    tensor_at(name, type, sizes, data.size());
    data += bytes;
    data.resize((data.size() + alignment - 1) / alignment * alignment, '\0');
    return *this;
  }
  GgufBytes& f32_tensor(std::string_view name, const std::vector<std::uint64_t>& sizes,
                        const std::vector<float>& values) {
    return tensor(name, 0, sizes,
                  {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  // Only the entry of a tensor, with any offset.
  GgufBytes& tensor_at(std::string_view name, std::int32_t type,
                       const std::vector<std::uint64_t>& sizes, std::uint64_t offset) {
    infos += raw_text(name) + raw(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) infos += raw(size);
    infos += raw(type, offset);
    ++tensors;
    return *this;
  }

  // Everything before the padding and the data.
  std::string header() const {
    std::string all = magic + raw(version, claimed_tensors.value_or(tensors));
    if (alignment == 32) return all + raw(claimed_keys.value_or(keys)) + entries + infos;
    return all + raw(claimed_keys.value_or(keys + 1)) + raw_text("general.alignment") +
           raw(static_cast<std::uint32_t>(MetaType::u32), static_cast<std::uint32_t>(alignment)) +
           entries + infos;
  }
  std::string file() const {
    std::string all = header();
    if (tensors > 0) all.resize((all.size() + alignment - 1) / alignment * alignment, '\0');
    return all + data;
  }
  std::vector<std::byte> bytes() const { return to_bytes(file()); }

  static std::vector<std::byte> to_bytes(std::string_view text) {
    std::vector<std::byte> bytes(text.size());
    if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
    return bytes;
  }

  std::string entries, infos, data;
  std::uint64_t keys = 0, tensors = 0;
};

}  // namespace test
