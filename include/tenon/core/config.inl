#pragma once
#include "config.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE void ModelConfig::missing(std::string_view key) const {
  fail<LoadError>(
      "metadata key \"", architecture, ".", key,
      "\" is missing; the model cannot be built without it; convert the checkpoint again");
}

TENON_INLINE void ModelConfig::not_a_flag(std::string_view key) const {
  fail<LoadError>("metadata key \"", architecture, ".", key,
                  "\" must be a bool, it is something else; the file is damaged");
}

TENON_INLINE void ModelConfig::not_a_text(std::string_view key) const {
  fail<LoadError>("metadata key \"", architecture, ".", key,
                  "\" must be a text that is not empty, it is something else; the file is damaged");
}

TENON_INLINE void ModelConfig::not_a_number(std::string_view key, std::string_view found) const {
  fail<LoadError>("metadata key \"", architecture, ".", key, "\" must be a number, it is \"",
                  printable(found), "\"; the file is damaged");
}

TENON_INLINE void ModelConfig::not_per_layer(std::string_view key, int layer,
                                             std::size_t count) const {
  if (layer < 0) {
    fail<LoadError>("metadata key \"", architecture, ".", key, "\" must be one number, it holds ",
                    count, "; the file is damaged or of another model type");
  }
  fail<LoadError>("metadata key \"", architecture, ".", key,
                  "\" must hold one value for every layer, there are ", layers(), " layers and ",
                  count, " values; convert the checkpoint again");
}

TENON_INLINE void ModelConfig::not_a_size(std::string_view key, double value) const {
  fail<LoadError>("metadata key \"", architecture, ".", key,
                  "\" must be a whole number from 1 to 2147483647, it is ", value,
                  "; the file is damaged");
}

}  // namespace tenon::inline TENON_ABI
