#include "base/cancel.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/clock.h"

namespace anvil::base {

Cancel::Cancel() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Cancel::request() {
  const int saved = errno;
  level_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(event_.get(), &one, sizeof one);
  errno = saved;
}

namespace {
Cancel* signalled = nullptr;
void on_signal(int) {
  signalled->request();
}
}  // namespace

void cancel_on_signals(Cancel& cancel) {
  signalled = &cancel;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool sleep_unless_cancelled(const Cancel& cancel, long long nanos) {
  const Nanos until = mono_now() + nanos;
  for (;;) {
    if (cancel.requested()) return false;
    const Nanos left = until - mono_now();
    if (left <= 0) return true;
    pollfd waiting{cancel.fd(), POLLIN, 0};
    const timespec timeout{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
    ppoll(&waiting, 1, &timeout, nullptr);
  }
}

Error cancelled_error() {
  return {Kind::kCancelled, Side::kClient, "stopped by request"};
}

}  // namespace anvil::base
