#include "net/kernel_stamp.h"

#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace anvil::net {

namespace {
constexpr int kTries = 100;
constexpr Nanos kFreshFor = kSecond;
// A quick look is this far off only when the clock was set, or when we were interrupted between the
// two readings, and then a new measurement does no harm.
constexpr Nanos kQuickTolerance = 20 * kMicrosecond;

Nanos in_nanos(const timespec& ts) {
  return static_cast<Nanos>(ts.tv_sec) * kSecond + ts.tv_nsec;
}
Nanos wall_now() {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  return in_nanos(ts);
}
}  // namespace

KernelClock::KernelClock() {
  measure();
}

// Of the tries, the one whose two monotonic readings are closest together bounds the error best.
void KernelClock::measure() {
  Nanos narrowest = std::numeric_limits<Nanos>::max();
  for (int i = 0; i < kTries; ++i) {
    const Nanos before = mono_now();
    const Nanos wall = wall_now();
    const Nanos after = mono_now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    offset_ = wall - (before + narrowest / 2);
  }
  measured_ = mono_now();
}

void KernelClock::keep_fresh() {
  const Nanos now = mono_now();
  const Nanos drift = wall_now() - now - offset_;
  if (now - measured_ >= kFreshFor || drift > kQuickTolerance || drift < -kQuickTolerance)
    measure();
}

// Bytes that waited for us longer than this are less likely than a stepped wall clock.
constexpr Nanos kOldestStamp = 60 * kSecond;

Nanos KernelClock::to_mono(const timespec& wall) const {
  return in_nanos(wall) - offset_;
}

void enable_receive_stamps(int fd) {
  const int flags = SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags);
}

Received receive(int fd, char* into, size_t size, const KernelClock& clock) {
  alignas(cmsghdr) char control[256];
  iovec piece{into, size};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;

  Received out;
  out.bytes = recvmsg(fd, &message, MSG_DONTWAIT);
  out.error = out.bytes < 0 ? errno : 0;
  out.at = out.returned = mono_now();
  if (out.bytes <= 0) return out;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING) continue;
    scm_timestamping stamps{};
    std::memcpy(&stamps, CMSG_DATA(c), sizeof stamps);
    timespec arrived{};
    std::memcpy(&arrived, &stamps.ts[0], sizeof arrived);
    if (arrived.tv_sec == 0) continue;
    const Nanos at = clock.to_mono(arrived);
    if (at > out.returned || at < out.returned - kOldestStamp) continue;
    out.at = at;
    out.kernel = true;
  }
  return out;
}

uint64_t receive_queue_bytes(int fd) {
  int bytes = 0;
  return ioctl(fd, SIOCINQ, &bytes) == 0 && bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

TransportTrouble transport_trouble(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  return {info.tcpi_total_retrans, info.tcpi_rcv_ooopack};
}

}  // namespace anvil::net
