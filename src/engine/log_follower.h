#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/result.h"

namespace anvil::engine {

inline constexpr size_t kLogLineLimit = 64 << 10;

// Cuts a byte stream into lines. A line ends at "\n", at "\r\n", or at a "\r" alone (progress
// bars); an empty line that only a "\r" ended is dropped. A line longer than kLogLineLimit is
// delivered once, cut and marked. Bytes are passed on as they are.
class LineSplitter {
 public:
  using Sink = std::function<void(std::string_view)>;
  void feed(std::string_view bytes, const Sink& sink);
  // Delivers a last line that has no end.
  void finish(const Sink& sink);

 private:
  void append(std::string_view bytes, const Sink& sink);

  std::string pending_;
  bool skipping_ = false;  // the rest of a line that was cut
  bool after_cr_ = false;
};

// Follows the two files that an engine writes to, stamps every line with the monotonic clock and
// appends it to the run's log as "<mono_ns> o|e text". What has been copied is given back to the
// file system, so the log takes its space once.
//
// Lifecycle: start() once, stop() once: that copies what is left, then joins. Thread: one of its
// own, which calls the sink; everything else from the owner's.
class LogFollower {
 public:
  using Sink = std::function<void(std::string_view line, Nanos now)>;

  LogFollower() = default;
  ~LogFollower() { stop(); }
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // The files must exist.
  Result<void> start(const std::string& stdout_path, const std::string& stderr_path,
                     const std::string& log_path, Sink sink);
  void stop();

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  // The first failure to write the log, if any.
  std::optional<std::string> error() const;

 private:
  struct Source {
    base::Fd fd;
    char mark = 'o';
    uint64_t offset = 0;
    uint64_t given_back = 0;
    LineSplitter splitter;
  };

  void run();
  void drain();
  void read_source(Source& source);
  void add_line(char mark, std::string_view line);
  void flush();

  Source sources_[2];
  std::optional<base::AppendFile> log_;
  std::string batch_;
  Nanos now_ = 0;
  Sink sink_;
  base::Fd inotify_, wake_;
  std::atomic<uint64_t> bytes_{0};
  mutable std::mutex mutex_;
  std::optional<std::string> error_;
  std::thread thread_;
};

}  // namespace anvil::engine
