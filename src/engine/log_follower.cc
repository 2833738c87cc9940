#include "engine/log_follower.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>

namespace anvil::engine {

namespace {

constexpr size_t kChunk = 64 << 10;
constexpr uint64_t kGiveBack = 1 << 20;
// File systems without inotify (network, some overlays) are polled this often.
constexpr int kPollMillis = 100;
constexpr std::string_view kCut = " [cut]";

}  // namespace

void LineSplitter::append(std::string_view bytes, const Sink& sink) {
  if (skipping_) return;
  const size_t room = kLogLineLimit - pending_.size();
  if (bytes.size() <= room) {
    pending_ += bytes;
    return;
  }
  pending_ += bytes.substr(0, room);
  pending_ += kCut;
  sink(pending_);
  pending_.clear();
  skipping_ = true;
}

void LineSplitter::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    if (after_cr_) {
      after_cr_ = false;
      if (bytes[0] == '\n') {
        bytes.remove_prefix(1);
        continue;
      }
    }
    const size_t end = bytes.find_first_of("\r\n");
    append(bytes.substr(0, end), sink);
    if (end == std::string_view::npos) return;
    after_cr_ = bytes[end] == '\r';
    if (!skipping_ && !(pending_.empty() && after_cr_)) sink(pending_);
    pending_.clear();
    skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
}

void LineSplitter::finish(const Sink& sink) {
  if (!pending_.empty()) sink(pending_);
  pending_.clear();
}

Result<void> LogFollower::start(const std::string& stdout_path, const std::string& stderr_path,
                                const std::string& log_path, Sink sink) {
  sink_ = std::move(sink);
  log_ = TRY(base::AppendFile::open(log_path));
  inotify_.reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const std::string paths[2] = {stdout_path, stderr_path};
  for (int i = 0; i < 2; ++i) {
    sources_[i].fd.reset(open(paths[i].c_str(), O_RDWR | O_CLOEXEC));
    if (!sources_[i].fd) return fail(base::from_errno(errno, "open " + paths[i]));
    sources_[i].mark = i == 0 ? 'o' : 'e';
    if (inotify_) inotify_add_watch(inotify_.get(), paths[i].c_str(), IN_MODIFY);
  }
  wake_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return fail(base::from_errno(errno, "eventfd"));
  thread_ = std::thread([this] { run(); });
  return {};
}

void LogFollower::stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.get(), &one, sizeof one);
  thread_.join();
}

std::optional<std::string> LogFollower::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void LogFollower::run() {
  for (bool last = false; !last;) {
    pollfd waits[2] = {{wake_.get(), POLLIN, 0}, {inotify_.get(), POLLIN, 0}};
    poll(waits, 2, kPollMillis);
    // Asked before the last copy, so that nothing written before stop() is missed.
    last = (waits[0].revents & POLLIN) != 0;
    char events[4096];
    while (inotify_ && read(inotify_.get(), events, sizeof events) > 0) {
    }
    drain();
  }
  now_ = mono_now();
  for (Source& source : sources_) {
    source.splitter.finish([&](std::string_view line) { add_line(source.mark, line); });
  }
  flush();
}

void LogFollower::drain() {
  now_ = mono_now();
  for (Source& source : sources_) read_source(source);
  flush();
}

void LogFollower::read_source(Source& source) {
  char buffer[kChunk];
  for (;;) {
    const ssize_t got =
        pread(source.fd.get(), buffer, sizeof buffer, static_cast<off_t>(source.offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    source.offset += static_cast<uint64_t>(got);
    bytes_.fetch_add(static_cast<uint64_t>(got), std::memory_order_relaxed);
    source.splitter.feed({buffer, static_cast<size_t>(got)},
                         [&](std::string_view line) { add_line(source.mark, line); });
    if (batch_.size() >= kChunk) flush();
  }
  if (source.offset - source.given_back >= kGiveBack) {
    flush();
    if (error()) return;  // what could not be copied stays where it is
    source.given_back = source.offset;
    // Where the file system cannot do it, the space is merely taken twice.
    [[maybe_unused]] const int punched =
        fallocate(source.fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  static_cast<off_t>(source.offset));
  }
}

void LogFollower::add_line(char mark, std::string_view line) {
  batch_ += std::to_string(now_);
  batch_ += ' ';
  batch_ += mark;
  batch_ += ' ';
  batch_ += line;
  batch_ += '\n';
  sink_(line, now_);
}

void LogFollower::flush() {
  if (batch_.empty()) return;
  const auto appended = log_->append(batch_);
  batch_.clear();
  if (appended) return;
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = to_string(appended.error());
}

}  // namespace anvil::engine
