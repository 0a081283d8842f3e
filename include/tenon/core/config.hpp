#pragma once
// What a checkpoint says about its model, as plain numbers: a literal view of GGUF-keyed metadata
// with the architecture prefix removed. Each policy reads its own keys from it.
#include <cmath>
#include <span>
#include <string>
#include <string_view>

#include "error.hpp"
#include "types.hpp"

namespace tenon::inline TENON_ABI {

struct ConfigEntry {
  std::string_view key;              // "attention.head_count"
  double number = 0;                 // numbers and bools
  std::span<const double> layers{};  // [layers] when the file has one value per layer
  std::string_view text{};           // strings; of what is neither, the name of its type
  bool is_flag = false;              // the number is a bool
};

struct ModelConfig {
  std::string_view architecture;
  std::span<const ConfigEntry> entries;
  bool* read = nullptr;  // [entries] when set: marks what was asked for, so that bind() can refuse
                         // a key that no policy understood

  constexpr const ConfigEntry* find(std::string_view key) const {
    // Plain pointers: compilers limit the steps of a constant expression.
    const ConfigEntry* const first = entries.data();
    const ConfigEntry* const end = first + entries.size();
    const std::size_t length = key.size();
    for (const ConfigEntry* entry = first; entry != end; ++entry) {
      if (entry->key.size() != length || entry->key != key) continue;
      if (read != nullptr) read[entry - first] = true;
      return entry;
    }
    return nullptr;
  }
  constexpr bool has(std::string_view key) const { return find(key) != nullptr; }

  // The number under `key`, of one layer when the file has one for each. LoadError when missing.
  constexpr double number(std::string_view key, int layer = -1) const {
    const ConfigEntry* entry = find(key);
    if (entry == nullptr) missing(key);
    if (!entry->text.empty()) not_a_number(key, entry->text);
    if (entry->is_flag) not_a_number(key, "bool");
    if (entry->layers.empty()) return entry->number;
    const auto at = static_cast<std::size_t>(layer);
    if (layer < 0 || entry->layers.size() != static_cast<std::size_t>(layers())) {
      not_per_layer(key, layer, entry->layers.size());
    }
    return entry->layers[at];
  }
  // The same where lists of bools serve as well.
  constexpr double number_or_flag(std::string_view key, int layer) const {
    const ConfigEntry* entry = find(key);
    if (entry != nullptr && entry->is_flag && entry->layers.empty()) return entry->number;
    return number(key, layer);
  }
  constexpr double number_or(std::string_view key, double otherwise, int layer = -1) const {
    return has(key) ? number(key, layer) : otherwise;
  }
  constexpr bool flag_or(std::string_view key, bool otherwise) const {
    const ConfigEntry* entry = find(key);
    if (entry == nullptr) return otherwise;
    if (!entry->is_flag) not_a_flag(key);
    return entry->number != 0;
  }
  constexpr std::string_view text_or(std::string_view key, std::string_view otherwise) const {
    const ConfigEntry* entry = find(key);
    if (entry == nullptr) return otherwise;
    if (entry->text.empty()) not_a_text(key);
    return entry->text;
  }
  // A whole number from 1 to 2^31 - 1.
  constexpr Dim size(std::string_view key, int layer = -1) const {
    const double value = number(key, layer);
    if (!(value >= 1 && value <= 2147483647.0) ||
        value != static_cast<double>(static_cast<Dim>(value))) {
      not_a_size(key, value);
    }
    return static_cast<Dim>(value);
  }

  constexpr Dim width() const { return size("embedding_length"); }
  constexpr int layers() const { return static_cast<int>(size("block_count")); }
  constexpr Dim vocab() const { return size("vocab_size"); }

 private:
  [[noreturn]] void missing(std::string_view key) const;
  [[noreturn]] void not_a_flag(std::string_view key) const;
  [[noreturn]] void not_a_text(std::string_view key) const;
  [[noreturn]] void not_a_number(std::string_view key, std::string_view found) const;
  [[noreturn]] void not_per_layer(std::string_view key, int layer, std::size_t count) const;
  [[noreturn]] void not_a_size(std::string_view key, double value) const;
};

// A size that a type pins and a checkpoint states.
struct Pin {
  std::string_view key;
  Dim pinned = dyn, found = dyn;
  constexpr bool holds() const { return pinned == dyn || pinned == found; }
};

// Whether a checkpoint asks for this policy: T::fits(config, layer) when it says, else true.
template <class T>
constexpr bool policy_fits(const ModelConfig& config, int layer) {
  if constexpr (requires { T::fits(config, layer); }) {
    return T::fits(config, layer);
  } else {
    return true;
  }
}

// A policy's own reading of the configuration: T::read(config, layer) when it has one, else T{}.
template <class T>
constexpr T read_policy(const ModelConfig& config, int layer) {
  if constexpr (requires { T::read(config, layer); }) {
    return T::read(config, layer);
  } else {
    return T{};
  }
}

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "config.inl"
#endif
