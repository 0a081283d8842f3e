#pragma once
#include "../core/error.hpp"
#include "gguf_formats.hpp"
#include "named_formats.hpp"

namespace tenon::inline TENON_ABI {

TENON_INLINE const WeightFormat& find_weight_format(std::string_view name) {
  const int tag = tag_of_name<StoredFormats>(name);
  if (tag < 0) {
    fail<RequestError>("the format must be one of ", weight_format_names(), ", it is \"",
                       printable(name), "\"; name one of them");
  }
  return FormatList<StoredFormats>::visit(
      tag, []<class F>(F) -> const WeightFormat& { return weight_format<F>; });
}

TENON_INLINE std::string weight_format_names() {
  return FormatList<StoredFormats>::names();
}

}  // namespace tenon::inline TENON_ABI
