// Parts of shares: every step is taken once, and what a slow worker leaves, others take.
#include "tenon/core/shared_parts.hpp"

#include <chrono>
#include <thread>
#include <vector>

#include "backwards.hpp"
#include "catch.hpp"
#include "tenon/core/thread_team.hpp"

using namespace tenon;

namespace {
// How often each of `items` was taken, shared in whole and handed out by `each`.
std::vector<int> counts(Executor& executor, Dim items, Dim each) {
  std::vector<std::atomic<int>> taken(static_cast<std::size_t>(items));
  SharedParts parts;
  executor.run([&](Worker worker) {
    const auto steps = [&](Worker owner) {
      return share(items, owner).end - share(items, owner).begin;
    };
    parts.take(worker, each, steps, [&](Worker owner, Range part) {
      const Dim first = share(items, owner).begin;
      for (Dim i = part.begin; i < part.end; ++i) ++taken[static_cast<std::size_t>(first + i)];
    });
  });
  return {taken.begin(), taken.end()};
}
}  // namespace

TEST_CASE("every step of every share is taken once", "[threads]") {
  for (const int threads : {1, 2, 3, 7, 40}) {
    ThreadTeam team(threads);
    Backwards backwards(threads);
    for (const Dim items : {0, 1, 5, 16, 1000}) {
      for (const Dim each : {1, 3, 1000}) {
        INFO(threads << " threads, " << items << " items by " << each);
        const std::vector<int> once(static_cast<std::size_t>(items), 1);
        CHECK(counts(team, items, each) == once);
        CHECK(counts(backwards, items, each) == once);
      }
    }
  }
}

TEST_CASE("what a worker does not get to, another one takes", "[threads]") {
  ThreadTeam team(2);
  SharedParts parts;
  constexpr Dim steps = 10, each = 2;
  std::atomic<bool> begun{false};
  std::atomic<Dim> done[2][2] = {};  // by worker, of whose share
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const auto wait_until = [&](auto&& there) {
    while (!there() && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
  };
  team.run([&](Worker worker) {
    if (worker.index == 1) wait_until([&] { return begun.load(); });
    parts.take(
        worker, each, [](Worker) { return steps; },
        [&](Worker owner, Range part) {
          if (worker.index == 0 && part.begin == 0) {  // a slow first part
            begun = true;
            wait_until([&] { return done[1][0] + done[1][1] == 2 * steps - each; });
          }
          done[worker.index][owner.index] += part.end - part.begin;
        });
  });
  CHECK(done[0][0] == each);
  CHECK(done[0][1] == 0);
  CHECK(done[1][1] == steps);
  CHECK(done[1][0] == steps - each);
}
