#pragma once
#include "metadata.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::string MetaValue::type_name() const {
  return type == MetaType::array ? message("array of ", name_of(item)) : std::string(name_of(type));
}

TENON_INLINE const MetaValue* Metadata::find(std::string_view key) const {
  const auto at = index_.find(std::string(key));
  return at == index_.end() ? nullptr : &entries_[at->second].value;
}

TENON_INLINE bool Metadata::insert(std::string key, MetaValue value) {
  if (!index_.emplace(key, entries_.size()).second) return false;
  entries_.push_back({std::move(key), std::move(value)});
  return true;
}

TENON_INLINE void Metadata::set(std::string key, MetaValue value) {
  if (const auto at = index_.find(key); at != index_.end()) {
    entries_[at->second].value = std::move(value);
  } else {
    insert(std::move(key), std::move(value));
  }
}

TENON_INLINE void Metadata::set(std::string key, std::string_view text) {
  set(std::move(key), MetaValue{MetaType::string, {}, std::string(text)});
}

TENON_INLINE void Metadata::set(std::string key, bool flag) {
  set(std::move(key), MetaValue{MetaType::boolean, {}, flag});
}

TENON_INLINE void Metadata::set(std::string key, std::uint32_t n) {
  set(std::move(key), MetaValue{MetaType::u32, {}, std::uint64_t{n}});
}

TENON_INLINE void Metadata::set(std::string key, float x) {
  set(std::move(key), MetaValue{MetaType::f32, {}, static_cast<double>(x)});
}

TENON_INLINE const std::string& Metadata::text(std::string_view key) const {
  return as<std::string>(key, need(key, "a string"), "a string");
}

TENON_INLINE std::string Metadata::text_or(std::string_view key, std::string_view fallback) const {
  return contains(key) ? text(key) : std::string(fallback);
}

TENON_INLINE bool Metadata::flag_or(std::string_view key, bool fallback) const {
  return contains(key) ? flag(key) : fallback;
}

TENON_INLINE std::int64_t Metadata::integer(std::string_view key) const {
  const MetaValue& value = need(key, "an integer");
  if (const auto* u = std::get_if<std::uint64_t>(&value.data)) {
    if (*u <= static_cast<std::uint64_t>(INT64_MAX)) return static_cast<std::int64_t>(*u);
    fail<LoadError>("metadata key \"", printable(key), "\" is ", *u,
                    ", which is too large to be meant; the file is damaged or hostile");
  }
  return as<std::int64_t>(key, value, "an integer");
}

TENON_INLINE double Metadata::number(std::string_view key) const {
  const MetaValue& value = need(key, "a number");
  if (const auto* x = std::get_if<double>(&value.data)) return *x;
  if (std::holds_alternative<std::uint64_t>(value.data) ||
      std::holds_alternative<std::int64_t>(value.data)) {
    return static_cast<double>(integer(key));
  }
  wrong_type(key, value, "a number");
}

TENON_INLINE const std::vector<std::string>& Metadata::texts(std::string_view key) const {
  return as<std::vector<std::string>>(key, need(key, "an array of strings"), "an array of strings");
}

TENON_INLINE std::vector<std::int64_t> Metadata::integers(std::string_view key) const {
  const MetaValue& value = need(key, "an array of integers");
  if (const auto* u = std::get_if<std::vector<std::uint64_t>>(&value.data)) {
    for (const std::uint64_t x : *u) {
      if (x > static_cast<std::uint64_t>(INT64_MAX)) {
        fail<LoadError>("metadata array \"", printable(key), "\" holds ", x,
                        ", which is too large to be meant; the file is damaged or hostile");
      }
    }
    return {u->begin(), u->end()};
  }
  return as<std::vector<std::int64_t>>(key, value, "an array of integers");
}

TENON_INLINE const std::vector<double>& Metadata::floats(std::string_view key) const {
  return as<std::vector<double>>(key, need(key, "an array of floats"), "an array of floats");
}

TENON_INLINE const MetaValue& Metadata::need(std::string_view key, std::string_view what) const {
  if (const MetaValue* value = find(key)) return *value;
  fail<LoadError>("metadata key \"", printable(key), "\" is missing; it must be ", what,
                  "; convert the checkpoint again with a current converter");
}

TENON_INLINE void Metadata::wrong_type(std::string_view key, const MetaValue& value,
                                       std::string_view what) {
  fail<LoadError>("metadata key \"", printable(key), "\" must be ", what, ", the file has type ",
                  value.type_name(), "; convert the checkpoint again with a current converter");
}

}  // namespace tenon::inline TENON_ABI
