#pragma once
// Ctrl-C as a std::stop_token.
#include <mutex>
#include <stop_token>
#include <thread>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>

#include <cerrno>
#include <csignal>
#endif

// While one lives, Ctrl-C (SIGINT) stops what begin() was called for and not the program. A signal
// handler may do next to nothing, so it writes a byte into a pipe, and a thread that waits there
// asks to stop. Make one at most. Elsewhere than on POSIX systems Ctrl-C ends the program as usual.
class Interrupt {
 public:
  // A token for the work that begins now.
  std::stop_token begin() {
    const std::lock_guard lock(mutex_);
    stop_ = std::stop_source();
    return stop_.get_token();
  }

  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

#if defined(__unix__) || defined(__APPLE__)
  Interrupt() {
    if (::pipe(pipe_) != 0) return;
    write_end = pipe_[1];
    watcher_ = std::thread([this] { watch(); });
    struct sigaction action {};
    action.sa_handler = [](int) {
      const int kept = errno;
      const char byte = 0;
      [[maybe_unused]] const auto written = ::write(write_end, &byte, 1);
      errno = kept;
    };
    action.sa_flags = SA_RESTART;  // reading a line goes on
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGINT, &action, &before_);
  }
  ~Interrupt() {
    if (!watcher_.joinable()) return;
    ::sigaction(SIGINT, &before_, nullptr);
    ::close(pipe_[1]);  // ends the watcher's wait
    watcher_.join();
    ::close(pipe_[0]);
  }

 private:
  void watch() {
    char byte = 0;
    for (;;) {
      const auto got = ::read(pipe_[0], &byte, 1);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      const std::lock_guard lock(mutex_);
      stop_.request_stop();
    }
  }

  static inline int write_end = -1;
  int pipe_[2] = {-1, -1};
  std::thread watcher_;
  struct sigaction before_ {};
#else
  Interrupt() = default;

 private:
#endif
  std::mutex mutex_;
  std::stop_source stop_;
};
