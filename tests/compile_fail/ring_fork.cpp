// expect: tenon: a cache of this model cannot fork (a Ring overwrites the rows that a copy would
// share)
#include <tenon/cache/paged.hpp>
#include <tenon/cache/ring.hpp>
#include <tenon/zoo/mistral.hpp>
using namespace tenon;

#ifdef TENON_EXPECT_FAIL
using Cache = Ring<F16>;
#else
using Cache = Paged<F16>;
#endif
using Windowed = zoo::Mistral<Cache, F32>;
SeqId copy(Windowed::Session& session) {
  return session.fork(SeqId{0});
}
