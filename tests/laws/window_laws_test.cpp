// The laws on windows: contiguous, paged and ring caches hold what a window sees, sinks included.
#include "laws/compositions.hpp"
#include "laws/laws.hpp"

using namespace laws;

TEST_CASE("window: contiguous, paged and ring, up to five windows", "[laws]") {
  for (const int window : {1, 24, 64}) {
    check<WithGqa<SlidingWindow, Plain>, WithGqa<SlidingWindow, Window>,
          WithGqa<SlidingWindow, Pages<16>>>(
        sizes({{"attention.head_count_kv", 2},
               {"attention.sliding_window", static_cast<double>(window)}}));
  }
}

TEST_CASE("window with sinks: contiguous, paged and ring", "[laws]") {
  check<WithGqa<SlidingWindow, Plain>, WithGqa<SlidingWindow, Window>,
        WithGqa<SlidingWindow, Pages<16>>>(sizes({{"attention.head_count_kv", 1},
                                                  {"attention.sliding_window", 20},
                                                  {"attention.sink_count", 4}}));
}
