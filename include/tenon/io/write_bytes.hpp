#pragma once
// Writing the bytes of a tensor to a stream, part by part where they have to be made.
#include <algorithm>
#include <cstddef>
#include <ostream>
#include <span>
#include <vector>

#include "../core/executor.hpp"
#include "../core/stored_bytes.hpp"
#include "../core/types.hpp"

namespace tenon::inline TENON_ABI {

// Writes all of `bytes`, or as many as the stream takes: its state says so. Bytes that lie in
// memory go out as they are; others are made 4 MiB a thread at a time, by all threads of the team,
// and their maker is told what is done with.
inline void write_bytes(std::ostream& out, const StoredBytes& bytes, Executor& team) {
  const auto put = [&](std::span<const std::byte> part) {
    out.write(reinterpret_cast<const char*>(part.data()),
              static_cast<std::streamsize>(part.size()));
  };
  if (!bytes.made()) return put(bytes);
  const std::size_t part = (std::size_t{4} << 20) * static_cast<std::size_t>(team.threads());
  std::vector<std::byte> made((std::min)(part, bytes.size()));
  for (std::size_t at = 0; at < bytes.size() && out;) {
    const std::size_t some = (std::min)(part, bytes.size() - at);
    team.run([&](Worker worker) {
      const Range mine = share(static_cast<Dim>(some), worker, 64);
      if (mine.empty()) return;
      const auto from = static_cast<std::size_t>(mine.begin);
      bytes.copy(at + from, {made.data() + from, static_cast<std::size_t>(mine.end) - from});
    });
    put({made.data(), some});
    bytes.done(at, some);
    at += some;
  }
}
inline void write_bytes(std::ostream& out, const StoredBytes& bytes) {
  SerialExecutor alone;
  write_bytes(out, bytes, alone);
}

}  // namespace tenon::inline TENON_ABI
