// Buffers of weights that share runs of pages.
#include "tenon/core/shared_pages.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include "catch.hpp"

using tenon::SharedPages;

namespace {

constexpr std::size_t kilobyte = 1024, megabyte = 1024 * kilobyte;

void fill(const SharedPages::Buffer& buffer, int value) {
  std::fill(buffer.bytes.begin(), buffer.bytes.end(), static_cast<std::byte>(value));
}
bool holds(const SharedPages::Buffer& buffer, int value) {
  return std::all_of(buffer.bytes.begin(), buffer.bytes.end(),
                     [&](std::byte b) { return b == static_cast<std::byte>(value); });
}

}  // namespace

TEST_CASE("buffers are as large as asked for, on cache lines and apart", "[core]") {
  std::vector<SharedPages::Buffer> buffers;
  const std::size_t sizes[] = {1,
                               100,
                               32 * kilobyte - 1,
                               32 * kilobyte,
                               32 * kilobyte + 1,
                               5 * megabyte,
                               40 * megabyte,
                               40 * megabyte,
                               64 * megabyte,
                               0};
  for (const std::size_t size : sizes) {
    buffers.push_back(SharedPages::take(size));
    REQUIRE(buffers.back().bytes.size() == size);
    CHECK(reinterpret_cast<std::uintptr_t>(buffers.back().bytes.data()) % tenon::cache_line == 0);
    fill(buffers.back(), static_cast<int>(buffers.size()));
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    INFO("buffer " << i);
    CHECK(holds(buffers[i], static_cast<int>(i + 1)));
  }
}

TEST_CASE("neighbours share a run, which goes with the last of them", "[core]") {
  auto first = SharedPages::take(megabyte), second = SharedPages::take(megabyte);
  CHECK(first.owner == second.owner);
  CHECK(second.bytes.data() == first.bytes.data() + megabyte);
  const auto small = SharedPages::take(32 * kilobyte - 1);
  const auto large = SharedPages::take(64 * megabyte);
  CHECK(SharedPages::take(32 * kilobyte).owner == first.owner);
  CHECK(small.owner != first.owner);
  CHECK(large.owner != first.owner);

  const std::weak_ptr<void> run = first.owner;
  fill(second, 7);
  first = {};
  CHECK_FALSE(run.expired());
  CHECK(holds(second, 7));
  second = {};
  CHECK(run.expired());
}

TEST_CASE("a run that is full is followed by another", "[core]") {
  const auto first = SharedPages::take(48 * megabyte), second = SharedPages::take(48 * megabyte);
  CHECK(first.owner != second.owner);
  CHECK(SharedPages::take(8 * megabyte).owner == second.owner);
}

TEST_CASE("threads that take buffers at once get different ones", "[core]") {
  std::vector<SharedPages::Buffer> buffers(64);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < buffers.size(); i += 4) {
        buffers[i] = SharedPages::take(256 * kilobyte + i);
        fill(buffers[i], static_cast<int>(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < buffers.size(); ++i) CHECK(holds(buffers[i], static_cast<int>(i)));
}

TEST_CASE("more memory than there is", "[core]") {
  CHECK_THROWS_AS(SharedPages::take(std::size_t{1} << 60), tenon::CapacityError);
}
