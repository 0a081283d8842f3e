#pragma once
// The configuration of an open checkpoint: what ModelConfig is a view of.
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "../core/config.hpp"
#include "../io/tensor_source.hpp"

namespace tenon::inline TENON_ABI {

// Takes the keys "<architecture>.*" of a source. The vocabulary's size, which not every file
// states, is completed from the tokenizer's list or the embedding; where they disagree it is a
// LoadError.
class ConfigStorage {
 public:
  explicit ConfigStorage(const TensorSource& source);

  ModelConfig view() const { return {architecture_, entries_, read_.get()}; }

  // LoadError naming the first key that would change the result and that nothing asked for. Zero,
  // false and empty values mean "not used" and pass; so do the keys that only inform.
  void refuse_unread(std::string_view origin) const;

 private:
  void add(std::string key, const MetaValue& value);
  template <class T>
  bool take(ConfigEntry& entry, const T& value);
  template <class T>
  bool take(ConfigEntry& entry, const std::vector<T>& values);
  void complete_vocabulary(const TensorSource& source);
  // Every layer has a tensor, so a count beyond them is refused before anybody loops over it.
  void check_layers(const TensorSource& source) const;
  [[noreturn]] void refuse_layers(const TensorSource& source, Dim layers) const;
  ModelConfig view_without_marks() const { return {architecture_, entries_}; }

  std::string architecture_;
  std::vector<ConfigEntry> entries_;
  std::deque<std::string> names_;  // deques: views into them stay valid
  std::deque<std::vector<double>> layers_;
  std::unique_ptr<bool[]> read_;
};

}  // namespace tenon::inline TENON_ABI

#if !defined(TENON_COMPILED)
#include "config_storage.inl"
#endif
