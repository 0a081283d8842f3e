#include "every_tenon_header.inc"

#include "every_tenon_header.inc"

int other_unit();

int other_unit() {
  return TENON_VERSION_MINOR;
}
