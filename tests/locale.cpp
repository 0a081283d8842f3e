// Part of every test program: adopts the locale that TENON_TEST_LOCALE names before main() runs, so
// that a test can be run again where the decimal point is a comma. Without the variable: nothing.
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <stdexcept>

namespace {
const bool adopted = [] {
  const char* name = std::getenv("TENON_TEST_LOCALE");
  if (name == nullptr) return false;
  try {
    std::locale::global(std::locale(name));
  } catch (const std::runtime_error&) {
    std::printf("SKIPPED: the locale %s is not installed\n", name);
    std::exit(77);
  }
  return true;
}();
}  // namespace
