#pragma once
// What a program may ask of a bind besides the model: to be told how far it is, and to stop.
#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>

#include "../core/error.hpp"

namespace tenon::inline TENON_ABI {

class PackedLog;
struct WeightFormat;

struct BindOptions {
  // Called with the bytes of tensors read so far, which grow from call to call and reach the total,
  // and those of all tensors; from any thread of the executor, one call at a time: the others may
  // wait for it, so it must not use the executor. When it returns false the bind stops with
  // Cancelled; what it throws comes out of the bind.
  std::function<bool(std::size_t done, std::size_t total)> progress = {};
  // Whether the bytes of a packed file (packed_file.hpp) are compared with their checksums, which
  // reads them all. What such a file says of itself is checked in any case.
  bool verify = false;
  // When set, takes what write_packed() needs.
  PackedLog* packed = nullptr;
  // Whether only the headers are read: the model has no weights. It says what it would hold
  // (memory_plan.hpp) and refuses to open a session.
  bool outline = false;
  // When set, matrices are encoded in this format while they are packed (quantized_source.hpp):
  // &weight_format<Q8_0>, or &find_weight_format("q8_0") (named_formats.hpp). The model is that of
  // a file quantized before, and no more of the original is in memory than the threads are working
  // on.
  const WeightFormat* quantize = nullptr;
};

// Counts the bytes that the threads of a bind are done with.
class BindProgress {
 public:
  BindProgress(std::function<bool(std::size_t, std::size_t)> report, std::size_t total)
      : report_(std::move(report)), total_(total) {}

  // Counts `bytes` of a tensor of which `left` were not counted yet; parts that are read again do
  // not count twice. False when the bind is to stop. Any thread may call it.
  bool add(std::size_t& left, std::size_t bytes) noexcept {
    if (!report_) return true;
    const std::lock_guard lock(mutex_);
    const std::size_t some = (std::min)(left, bytes);
    left -= some;
    if (some > 0) tell(done_ + some);
    return !stopped_;
  }
  // Counts whatever is left.
  void finish() {
    if (report_ && done_ < total_) tell(total_);
    check();
  }
  // Throws when the bind is to stop.
  void check() const {
    if (error_) std::rethrow_exception(error_);
    if (stopped_) {
      fail<Cancelled>(
          "binding a model goes on while its progress callback returns true, it "
          "returned false after ",
          done_, " of ", total_, " bytes; bind again to get the model");
    }
  }

 private:
  void tell(std::size_t done) noexcept {
    if (stopped_) return;
    done_ = done;
    try {
      stopped_ = !report_(done_, total_);
    } catch (...) {
      error_ = std::current_exception();
      stopped_ = true;
    }
  }

  std::function<bool(std::size_t, std::size_t)> report_;
  std::size_t done_ = 0, total_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
  std::mutex mutex_;
};

}  // namespace tenon::inline TENON_ABI
