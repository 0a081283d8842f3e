#pragma once
// Where tests find the reference models and texts, which are not part of the project.
#include <cstdlib>
#include <filesystem>
#include <string>

#include "catch.hpp"

// The file or folder of that name below $TENON_SHARED, or below the folder set at configuration.
// Empty, with a warning in the test's output, when it is absent: the test then has nothing to check
// and returns.
inline std::filesystem::path shared_file(const std::string& name) {
  const char* root = std::getenv("TENON_SHARED");
  const std::filesystem::path file =
      std::filesystem::path(root != nullptr ? root : TENON_SHARED_DIR) / name;
  if (std::filesystem::exists(file)) return file;
  WARN("SKIPPED: " << name << " is absent; set TENON_SHARED to the folder that holds it");
  return {};
}
