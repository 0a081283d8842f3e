#pragma once
// Every family of the zoo, for programs that open whatever they are given.
#include "../model/registry.hpp"
#include "llama.hpp"

namespace tenon::inline TENON_ABI::zoo {

using All = Registry<Entry<"llama", Llama<>>>;

}  // namespace tenon::inline TENON_ABI::zoo
