#pragma once
#include <algorithm>
#include <type_traits>
#include <variant>

#include "config_storage.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE ConfigStorage::ConfigStorage(const TensorSource& source)
    : architecture_(source.metadata().text("general.architecture")) {
  const auto plain = [](char c) { return c > ' ' && c <= '~' && c != '"'; };
  if (!std::all_of(architecture_.begin(), architecture_.end(), plain)) {
    fail<LoadError>(source.origin(), ": general.architecture must be a plain name, it is \"",
                    printable(architecture_), "\"; the file is damaged");
  }
  const std::string prefix = architecture_ + ".";
  for (const Metadata::Entry& entry : source.metadata().entries()) {
    if (entry.key.starts_with(prefix)) add(entry.key.substr(prefix.size()), entry.value);
  }
  complete_vocabulary(source);
  check_layers(source);
  read_ = std::make_unique<bool[]>(entries_.size());
}

TENON_INLINE void ConfigStorage::refuse_unread(std::string_view origin) const {
  constexpr std::string_view informative[] = {"context_length", "vocab_size",
                                              "rope.scaling.finetuned",
                                              "rope.scaling.original_context_length"};
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const ConfigEntry& entry = entries_[i];
    const bool unused = entry.number == 0 && entry.text.empty() && entry.layers.empty();
    const bool informs = std::find(std::begin(informative), std::end(informative), entry.key) !=
                         std::end(informative);
    if (read_[i] || unused || informs) continue;
    fail<LoadError>(origin, ": metadata key \"", architecture_, ".", printable(entry.key),
                    "\" is set, but this model type does not implement what it asks for, so the "
                    "result would be wrong; compose a type that reads it");
  }
}

TENON_INLINE void ConfigStorage::add(std::string key, const MetaValue& value) {
  ConfigEntry entry;
  entry.key = names_.emplace_back(std::move(key));
  if (const auto* text = std::get_if<std::string>(&value.data)) {
    entry.text = names_.emplace_back(*text);
  } else if (!std::visit([&](const auto& data) { return take(entry, data); }, value.data)) {
    entry.text = names_.emplace_back(value.type_name());  // nothing that a model could use
  }
  entries_.push_back(entry);
}

template <class T>
bool ConfigStorage::take(ConfigEntry& entry, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    entry.number = static_cast<double>(value);
    entry.is_flag = std::is_same_v<T, bool>;
    return true;
  } else {
    return false;
  }
}

template <class T>
bool ConfigStorage::take(ConfigEntry& entry, const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, std::string>) {
    return false;
  } else {
    std::vector<double>& numbers = layers_.emplace_back();
    for (const T value : values) numbers.push_back(static_cast<double>(value));
    entry.layers = numbers;
    return !numbers.empty();
  }
}

TENON_INLINE void ConfigStorage::complete_vocabulary(const TensorSource& source) {
  Dim stated = 0, listed = 0;
  for (const ConfigEntry& entry : entries_) {
    if (entry.key == "vocab_size") stated = view_without_marks().vocab();
  }
  if (const MetaValue* tokens = source.metadata().find("tokenizer.ggml.tokens")) {
    if (const auto* list = std::get_if<std::vector<std::string>>(&tokens->data)) {
      listed = static_cast<Dim>(list->size());
    }
  }
  if (stated != 0 && listed != 0 && stated != listed) {
    fail<LoadError>(source.origin(), ": the vocabulary must have one size, ", architecture_,
                    ".vocab_size says ", stated, " and tokenizer.ggml.tokens lists ", listed,
                    "; convert the checkpoint again");
  }
  if (stated != 0) return;
  if (listed == 0) {
    const TensorInfo* embedding = source.find("token_embd.weight");
    if (embedding != nullptr && !embedding->shape.empty()) listed = embedding->shape[0];
  }
  if (listed != 0) entries_.push_back({"vocab_size", static_cast<double>(listed), {}, {}, false});
}

TENON_INLINE void ConfigStorage::check_layers(const TensorSource& source) const {
  const ModelConfig config = view_without_marks();
  if (!config.has("block_count")) return;
  const auto tensors = static_cast<Dim>(source.tensors().size());
  const Dim layers = config.size("block_count");
  constexpr Dim most = 4096;  // plans and policies look keys up for every layer
  if (layers > most) {
    fail<LoadError>(source.origin(), ": metadata key \"", architecture_,
                    ".block_count\" must be at most ", most, ", it is ", layers,
                    "; the file is damaged");
  }
  const std::string last = message("blk.", layers - 1, ".");
  const auto in_last = [&](const TensorInfo& tensor) { return tensor.name.starts_with(last); };
  if (layers > tensors || std::none_of(source.tensors().begin(), source.tensors().end(), in_last)) {
    refuse_layers(source, layers);
  }
}

TENON_INLINE void ConfigStorage::refuse_layers(const TensorSource& source, Dim layers) const {
  fail<LoadError>(source.origin(), ": metadata key \"", architecture_,
                  ".block_count\" must count the layers ", "that have tensors, it is ", layers,
                  " and there is no tensor blk.", layers - 1, ".*; the file is damaged");
}

}  // namespace tenon::inline TENON_ABI
