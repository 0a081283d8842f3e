// expect: tenon: an Entry takes the name of an architecture and complete model types
#include <tenon/zoo/registry.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
static_assert(Entry<"llama", zoo::LlamaLayer<Contiguous<F32>>>::architecture == "llama");
#else
static_assert(Entry<"llama", zoo::Llama<>>::architecture == "llama");
#endif
