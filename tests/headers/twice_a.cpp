// Every header twice, here and in twice_b.cpp: guards hold, and nothing is defined non-inline.
#include "every_tenon_header.inc"

#include "every_tenon_header.inc"

int other_unit();

int main() {
  return other_unit() == TENON_VERSION_MINOR ? 0 : 1;
}
