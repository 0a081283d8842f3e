// expect: tenon: a cache of this model cannot fork (a Ring overwrites the rows that a copy would
// share)
#include <tenon/cache/paged.hpp>
#include <tenon/cache/ring.hpp>
#include <tenon/zoo/llama.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
using Model = zoo::Llama<Ring<F16>, F32>;
#else
using Model = zoo::Llama<Paged<F16>, F32>;
#endif
SeqId copy(Model::Session& session) {
  return session.fork(SeqId{0});
}
