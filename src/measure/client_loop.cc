#include "measure/client_loop.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <limits>

#include "base/strings.h"

namespace anvil::measure {

namespace {
constexpr int kBatch = 256;
constexpr size_t kSlabBytes = 256 * 1024;
constexpr size_t kMostRead = 64 * 1024;
constexpr size_t kLeastRead = 16 * 1024;
constexpr uint64_t kCancelToken = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kWakeToken = kCancelToken - 1;
constexpr uint32_t kReadable = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
constexpr uint32_t kEnding = EPOLLRDHUP | EPOLLHUP | EPOLLERR;
// How long an answer that is complete may take to end its body before the connection is given up.
constexpr Nanos kEndGrace = kSecond;
// The loop turns at least this often, so that a stop of our thread shows in its lag.
constexpr Nanos kHeartbeat = 10 * kMillisecond;
// A sleep ends late by about this much; the rest before a due attempt is spent looking.
constexpr Nanos kSpin = 50 * kMicrosecond;

Nanos thread_cpu() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<Nanos>(spent.tv_sec) * kSecond + spent.tv_nsec;
}
}  // namespace

ClientLoop::ClientLoop(const RunContext& context, size_t thread)
    : context_(context),
      thread_(thread),
      agenda_(context.share, thread),
      slab_(kSlabBytes),
      plain_(kLeastRead) {}

Result<void> ClientLoop::prepare() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return fail(base::from_errno(errno, "epoll_create1"));
  const auto add = [&](int fd, uint64_t token) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = token;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  };
  add(context_.cancel.fd(), kCancelToken);
  add(context_.share.wake_fd(thread_), kWakeToken);
  looks_.reserve(kBatch);
  return context_.options.connections == Connections::kPool ? open_pool() : Result<void>();
}

Result<void> ClientLoop::open_pool() {
  const int share = context_.share.share_of(thread_);
  warming_ = static_cast<size_t>(share);
  for (int i = 0; i < share && !pool_error_; ++i) {
    slots_.emplace_back(context_.limits);
    open(static_cast<uint32_t>(slots_.size() - 1));
  }
  while (warming_ > 0 && !pool_error_ && !stopping()) turn();
  if (stopping()) return fail(base::cancelled_error());
  if (!pool_error_) return {};
  Error error = *pool_error_;
  error.detail += "; " + std::to_string(static_cast<size_t>(share) - warming_) + " of the " +
                  std::to_string(share) + " connections of the pool had been opened";
  return fail(std::move(error));
}

void ClientLoop::run(Nanos start) {
  const Nanos cpu_before = thread_cpu();
  report_.loop_lag = {};
  agenda_.begin(start);
  const Nanos cut = cut_at(start);
  while (!stopping()) {
    if (mono_now() >= cut)
      context_.share.stop(Error(Kind::kCancelled, Side::kClient,
                                "cut: the declared drain of " +
                                    base::format_duration(*context_.options.drain) +
                                    " after the last planned moment has passed"));
    start_due();
    if (in_flight_ == 0 && agenda_.idle()) break;
    turn();
  }
  if (stopping())
    abandon(context_.cancel.requested() ? base::cancelled_error() : context_.share.stop_reason());
  for (Slot& slot : slots_) drop_connection(slot);
  report_.limit_hits = agenda_.limit_hits();
  report_.cpu_ns = thread_cpu() - cpu_before;
}

Nanos ClientLoop::cut_at(Nanos start) const {
  std::optional<Nanos> last;
  for (const Attempt& attempt : context_.attempts)
    if (attempt.at) last = std::max(last.value_or(0), *attempt.at);
  if (!context_.options.drain || !last) return DeadlineHeap::kNever;
  return start + *last + *context_.options.drain;
}

// One wait and everything that it brought.
void ClientLoop::turn() {
  epoll_event ready[kBatch];
  const int count = wait(ready, mono_now());
  const Nanos woken = mono_now();
  clock_.keep_fresh();
  look(ready, count);
  const Nanos now = mono_now();
  check_limits(now);
  // The time that a socket which became ready meanwhile has to wait for us, or how much later than
  // asked the system let us go on.
  report_.loop_lag.add(std::max(now - woken, woken - wake_at_));
}

int ClientLoop::wait(epoll_event* ready, Nanos now) {
  Nanos until = std::min(deadlines_.next(), now + kHeartbeat);
  if (const Nanos due = agenda_.next_due(now); due != DeadlineHeap::kNever)
    until = std::min(until, due - kSpin);
  wake_at_ = std::max(until, now);
  const Nanos left = again_.empty() ? std::max<Nanos>(until - now, 0) : 0;
  const timespec timeout{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
  const int count = epoll_pwait2(epoll_.get(), ready, kBatch, &timeout, nullptr);
  if (count >= 0 || errno != ENOSYS) return std::max(count, 0);
  return std::max(epoll_wait(epoll_.get(), ready, kBatch, static_cast<int>(left / kMillisecond)),
                  0);
}

void ClientLoop::look(epoll_event* ready, int count) {
  ++turn_;
  looks_.clear();
  const auto add = [&](uint32_t index, uint32_t events) {
    if (!again_.empty()) {
      if (slots_[index].seen_in_turn == turn_) return;
      slots_[index].seen_in_turn = turn_;
    }
    looks_.push_back({.slot = index, .events = events});
  };
  for (int i = 0; i < count; ++i) {
    if (ready[i].data.u64 == kWakeToken)
      context_.share.drain_wake(thread_);
    else if (ready[i].data.u64 != kCancelToken)
      add(static_cast<uint32_t>(ready[i].data.u64), ready[i].events);
  }
  for (const uint32_t index : again_) add(index, EPOLLIN);
  again_.clear();
  for (size_t next = 0; next < looks_.size();) {
    const size_t first = next;
    size_t used = 0;
    for (; next < looks_.size() && kSlabBytes - used >= kLeastRead; ++next) {
      if (next + 1 < looks_.size()) prefetch(slots_[looks_[next + 1].slot]);
      read_into_slab(looks_[next], used);
      used += static_cast<size_t>(std::max<ssize_t>(looks_[next].got.bytes, 0));
    }
    for (size_t i = first; i < next; ++i) handle(looks_[i]);
  }
}

// With thousands of streams nothing of a slot is in a near cache: it is fetched while the kernel
// works on the read before.
void ClientLoop::prefetch(const Slot& slot) {
  constexpr size_t kLine = 64;
  const auto* first = reinterpret_cast<const char*>(&slot);
  for (size_t at = 0; at < sizeof slot; at += kLine) __builtin_prefetch(first + at, 1);
}

void ClientLoop::read_into_slab(Look& look, size_t used) {
  const Slot& slot = slots_[look.slot];
  if (slot.connection.state() != net::Connection::State::kOpen || (look.events & kReadable) == 0)
    return;
  look.tried = true;
  look.offset = used;
  look.room = std::min(kSlabBytes - used, kMostRead);
  look.got = slot.connection.receive(slab_.data() + used, look.room, clock_);
  slot.recorder.prefetch();
}

void ClientLoop::handle(const Look& look) {
  Slot& slot = slots_[look.slot];
  if (slot.phase == Phase::kDialing) {
    // A hang-up that the old descriptor of a busy dialer left behind has nothing to move.
    if (slot.retry_at == 0) settle(look.slot, slot.connection.progress());
    return;
  }
  // A read that took all there was ends with the next edge; otherwise nobody tells us again.
  const bool more = look.got.bytes > 0 && (static_cast<size_t>(look.got.bytes) == look.room ||
                                           (look.events & kEnding) != 0);
  if (look.tried && more) again_.push_back(look.slot);
  if (slot.phase == Phase::kFree) return handle_free(slot, look);
  if (look.tried) {
    if (look.got.bytes > 0) {
      take_bytes(look);
    } else if (look.got.bytes == 0) {
      if (!slot.recorder.any_bytes() &&
          send_again(look.slot, Error(Kind::kReset, Side::kUpstream, "closed by the peer")))
        return;
      slot.recorder.on_closed(look.got.at);
      if (slot.recorder.finished()) drop_connection(slot);
    } else if (look.got.error != EAGAIN && look.got.error != EINTR) {
      const Error error = slot.recorder.read_error(look.got.error);
      if (!slot.recorder.any_bytes() && send_again(look.slot, error)) return;
      slot.recorder.on_failed(error);
    }
  }
  if (slot.recorder.finished()) {
    end_attempt(look.slot);
    return;
  }
  if (slot.phase == Phase::kSending && (look.events & EPOLLOUT) != 0) send_more(look.slot);
  // The answer is complete: only a short wait for the end of its body remains.
  if (slot.recorder.settled_at()) expect_due(look.slot);
}

// The peer ends an idle connection, or talks without being asked; only TLS has something to say.
void ClientLoop::handle_free(Slot& slot, const Look& look) {
  if (!look.tried || (look.got.bytes < 0 && look.got.error == EAGAIN)) return;
  if (look.got.bytes > 0 && slot.connection.encrypted()) {
    slot.connection.feed({slab_.data() + look.offset, static_cast<size_t>(look.got.bytes)});
    const Result<size_t> unasked = slot.connection.decrypt(plain_.data(), plain_.size());
    if (unasked && *unasked == 0) return;
  }
  drop_connection(slot);
}

void ClientLoop::take_bytes(const Look& look) {
  const Slot& slot = slots_[look.slot];
  const std::string_view bytes(slab_.data() + look.offset, static_cast<size_t>(look.got.bytes));
  ++report_.reads;
  report_.stamp_delay.add(look.got.returned - look.got.at);
  uint64_t queued = bytes.size();
  if (bytes.size() == look.room) queued += net::receive_queue_bytes(slot.connection.fd());
  report_.receive_queue_max_bytes = std::max(report_.receive_queue_max_bytes, queued);
  const uint64_t before = slot.recorder.output_events();
  if (slot.connection.encrypted())
    take_sealed(look, bytes);
  else
    deliver(look.slot, bytes, look.got);
  if (slot.recorder.output_events() > before + 1) ++report_.multi_event_reads;
}

void ClientLoop::take_sealed(const Look& look, std::string_view bytes) {
  Slot& slot = slots_[look.slot];
  slot.connection.feed(bytes);
  for (;;) {
    const Result<size_t> plain = slot.connection.decrypt(plain_.data(), plain_.size());
    if (!plain) slot.recorder.on_failed(plain.error());
    if (!plain || *plain == 0) return;
    if (slot.recorder.finished()) {
      slot.spoiled = true;
      return;
    }
    deliver(look.slot, {plain_.data(), *plain}, look.got);
  }
}

void ClientLoop::deliver(uint32_t index, std::string_view bytes, const net::Received& got) {
  Slot& slot = slots_[index];
  const bool first = slot.last_read == 0;
  slot.last_read = got.at;
  slot.kernel_stamped = slot.kernel_stamped && got.kernel;
  slot.recorder.on_bytes(bytes, got.at);
  if (!first || slot.recorder.finished()) return;
  // An answer has begun: nothing will be sent again.
  if (slot.phase == Phase::kReceiving) slot.request = {};
  expect_due(index);
}

ClientLoop::Due ClientLoop::due(const Slot& slot) const {
  const Limits& limits = context_.limits;
  Due first;
  const auto consider = [&](Nanos since, Nanos length, const char* limit) {
    if (length > 0 && since + length < first.at) first = {since + length, limit, length};
  };
  if (slot.phase == Phase::kFree) return first;
  if (slot.attempt != kNoAttempt) consider(slot.started, limits.total, "total");
  if (slot.phase == Phase::kDialing) {
    consider(slot.dialed, limits.connect, "connect");
    if (slot.retry_at != 0) consider(slot.retry_at, 1, "");
  } else if (slot.last_read == 0) {
    consider(slot.ready, limits.first_byte, "first_byte");
  } else {
    consider(slot.last_read, limits.idle, "idle");
  }
  if (const auto settled = slot.recorder.settled_at()) consider(*settled, kEndGrace, "idle");
  return first;
}

// Moves a slot's entry only when it has to be earlier: an entry that is too early is looked at and
// set right, and so the common event, another read, costs nothing.
void ClientLoop::expect_due(uint32_t index) {
  const Nanos at = due(slots_[index]).at;
  if (at < deadlines_.at(index)) deadlines_.set(index, at);
}

void ClientLoop::check_limits(Nanos now) {
  while (deadlines_.next() <= now) {
    const uint32_t index = deadlines_.next_id();
    Slot& slot = slots_[index];
    const Due first = due(slot);
    deadlines_.set(index, first.at);
    if (first.at > now) continue;
    deadlines_.set(index, DeadlineHeap::kNever);
    if (slot.retry_at != 0 && first.limit[0] == '\0') {
      settle(index, slot.connection.progress());
      continue;
    }
    const char* where = slot.phase == Phase::kDialing   ? "while connecting"
                        : slot.phase == Phase::kSending ? "while sending the request"
                        : slot.last_read == 0           ? "before the first byte of the answer"
                                                        : "in the middle of the answer";
    Error error(Kind::kTimeout, Side::kUpstream,
                std::string("limit ") + first.limit + " (" + base::format_duration(first.length) +
                    ") ran out " + where);
    if (slot.attempt == kNoAttempt)
      pool_error_ = std::move(error);
    else
      fail_attempt(index, error);
  }
}

}  // namespace anvil::measure
