#pragma once
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include "physical_memory.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE std::size_t physical_memory() {
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
  const long pages = ::sysconf(_SC_PHYS_PAGES), page = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0)
    return static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
#endif
  return 0;
}

}  // namespace tenon::inline TENON_ABI
