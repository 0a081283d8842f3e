// The smallest program that uses the library as an outsider does.
#include <iostream>
#include <string>
#if __has_include(<tenon/tenon.hpp>)
#include <tenon/tenon.hpp>
#endif
#include <tenon/core/error.hpp>
#include <tenon/quant/blocks.hpp>

std::string works_in_the_second_unit();

int main() {
  // A row of 40 values in blocks of 32 fills two of them.
  std::cout << "tenon " << TENON_VERSION_MAJOR << '.' << TENON_VERSION_MINOR << '.'
            << TENON_VERSION_PATCH << ", " << tenon::row_bytes<tenon::Q8_0>(40) << " bytes\n";
  if (works_in_the_second_unit() != "nothing:") return 2;
  try {
    tenon::fail<tenon::LoadError>("file \"", tenon::printable("a\n"), "\"");
  } catch (const tenon::Error& error) {
    return error.what() == std::string("file \"a\\x0a\"") ? 0 : 1;
  }
}
