#include "measure/client_loop.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <limits>

#include "base/hash.h"
#include "base/strings.h"
#include "net/request.h"

namespace anvil::measure {

namespace {
constexpr size_t kBatch = 64;
constexpr size_t kReadBytes = 16 * 1024;
constexpr uint64_t kCancelToken = std::numeric_limits<uint64_t>::max();
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
constexpr Nanos kBusyPause = kMillisecond;
// How long an answer that is complete may take to end its body before the connection is given up.
constexpr Nanos kEndGrace = kSecond;
}  // namespace

ClientLoop::ClientLoop(const Endpoint& endpoint, const Limits& limits,
                       std::vector<Attempt> attempts, int concurrency, const base::Cancel& cancel,
                       const Finished& finished)
    : endpoint_(endpoint),
      limits_(limits),
      waiting_(std::make_move_iterator(attempts.begin()), std::make_move_iterator(attempts.end())),
      cancel_(cancel),
      finished_(finished),
      next_check_(kNever) {
  const size_t slots = std::min(waiting_.size(), static_cast<size_t>(std::max(concurrency, 1)));
  for (size_t i = 0; i < slots; ++i) slots_.push_back(std::make_unique<Slot>(limits_));
  rows_.reserve(waiting_.size());
  slab_.resize(kBatch * kReadBytes);
}

std::vector<evidence::RequestRow> ClientLoop::run() {
  if (!prepare()) return std::move(rows_);
  for (size_t i = 0; i < slots_.size(); ++i) start_next(i);

  epoll_event ready[kBatch];
  while (in_flight_ > 0 && !cancel_.requested()) {
    const int count = epoll_wait(epoll_.get(), ready, kBatch, wait_millis());
    reads_.clear();
    for (int i = 0; i < count; ++i) {
      if (ready[i].data.u64 == kCancelToken) continue;
      Read read;
      read.slot = ready[i].data.u64;
      read.events = ready[i].events;
      const Slot& slot = *slots_[read.slot];
      if (slot.phase != Phase::kDialing && (read.events & ~uint32_t{EPOLLOUT}) != 0) {
        read.tried = true;
        read.offset = static_cast<size_t>(i) * kReadBytes;
        read.got = recv(slot.fd.get(), slab_.data() + read.offset, kReadBytes, MSG_DONTWAIT);
        read.at = mono_now();
        read.error = read.got < 0 ? errno : 0;
      }
      reads_.push_back(read);
    }
    for (const Read& read : reads_) {
      handle(read);
      start_next(read.slot);
    }
    if (const Nanos now = mono_now(); now >= next_check_) check_limits(now);
  }
  if (cancel_.requested()) refuse_all(base::cancelled_error());
  return std::move(rows_);
}

// Hashes bodies and resolves the address before anything is timed.
bool ClientLoop::prepare() {
  for (Attempt& attempt : waiting_) {
    attempt.row.request_bytes = attempt.body.size();
    attempt.row.request_sha256 = base::sha256(attempt.body);
    if (attempt.keep_body) attempt.row.request_body = attempt.body;
  }
  if (waiting_.empty()) return false;
  const auto give_up = [&](const Error& error) {
    refuse_all(error);
    return false;
  };
  if (cancel_.requested()) return give_up(base::cancelled_error());
  Result<net::Url> url = net::parse_url(endpoint_.base_url);
  if (!url) return give_up(url.error());
  url_ = std::move(*url);
  Result<std::vector<net::Address>> addresses = net::resolve(url_);
  if (!addresses) return give_up(addresses.error());
  addresses_ = std::make_shared<const std::vector<net::Address>>(std::move(*addresses));
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return give_up(base::from_errno(errno, "epoll_create1"));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kCancelToken;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, cancel_.fd(), &event);
  return true;
}

// Gives a slot, if it is free, the next attempt; one that fails at once makes room for the next.
void ClientLoop::start_next(size_t index) {
  Slot& slot = *slots_[index];
  while (slot.phase == Phase::kFree && !waiting_.empty() && !cancel_.requested()) {
    slot.attempt = std::move(waiting_.front());
    waiting_.pop_front();
    ++in_flight_;
    evidence::RequestRow& row = slot.attempt.row;
    slot.started = mono_now();
    if (row.stamps.intended == 0) row.stamps.intended = slot.started;
    slot.reused = static_cast<bool>(slot.fd);
    slot.resent = false;
    slot.recorder.begin(row);
    Result<std::string> request = net::request_text(url_, {.method = "POST",
                                                           .path = wire::path(row.api),
                                                           .api_key = endpoint_.api_key,
                                                           .body = slot.attempt.body,
                                                           .keep_alive = true,
                                                           .events = row.stream});
    if (!request) {
      fail_attempt(index, request.error());
      continue;
    }
    slot.out = std::move(*request);
    slot.attempt.body = {};
    begin_request(slot);
    if (slot.reused) {
      row.connection_reused = true;
      slot.ready = slot.started;
      slot.phase = Phase::kSending;
      send_more(index);
    } else {
      dial(index);
    }
  }
}

void ClientLoop::begin_request(Slot& slot) {
  slot.sent = 0;
  slot.ready = 0;
  slot.last_read = 0;
  slot.retry_at = 0;
}

void ClientLoop::dial(size_t index) {
  Slot& slot = *slots_[index];
  slot.dialer = std::make_unique<net::Dialer>(addresses_);
  slot.phase = Phase::kDialing;
  slot.dialed = mono_now();
  slot.attempt.row.stamps.connect_begin = slot.dialed;
  dialed(index, slot.dialer->start());
}

void ClientLoop::dialed(size_t index, net::Dialer::State state) {
  using State = net::Dialer::State;
  Slot& slot = *slots_[index];
  slot.retry_at = 0;
  slot.watched = 0;  // another address means another descriptor
  switch (state) {
    case State::kPending:
      watch(index, EPOLLOUT);
      break;
    case State::kBusy:
      slot.retry_at = mono_now() + kBusyPause;
      break;
    case State::kFailed:
      fail_attempt(index, slot.dialer->error());
      return;
    case State::kConnected:
      slot.ready = mono_now();
      slot.attempt.row.stamps.connected = slot.ready;
      slot.fd = slot.dialer->take();
      slot.dialer.reset();
      slot.phase = Phase::kSending;
      send_more(index);
      return;
  }
  expect_due(slot);
}

// Sends what the kernel takes and stamps the last byte. When the peer has closed, reading tells
// why.
void ClientLoop::send_more(size_t index) {
  Slot& slot = *slots_[index];
  bool broken = false;
  while (slot.sent < slot.out.size() && !broken) {
    const ssize_t put = send(slot.fd.get(), slot.out.data() + slot.sent,
                             slot.out.size() - slot.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0)
      slot.sent += static_cast<size_t>(put);
    else if (errno == EAGAIN)
      break;
    else if (errno != EINTR)
      broken = true;
  }
  if (slot.sent == slot.out.size() || broken) {
    if (!broken) slot.attempt.row.stamps.sent = mono_now();
    slot.phase = Phase::kReceiving;
    watch(index, EPOLLIN);
  } else {
    watch(index, EPOLLIN | EPOLLOUT);
  }
  expect_due(slot);
}

void ClientLoop::handle(const Read& read) {
  Slot& slot = *slots_[read.slot];
  if (slot.phase == Phase::kFree) {
    // The peer ends an idle connection, or talks without being asked.
    drop_connection(slot);
    return;
  }
  if (slot.phase == Phase::kDialing) {
    // A hang-up that the old descriptor of a busy dialer left behind has no dialer to move.
    if (slot.retry_at == 0) dialed(read.slot, slot.dialer->progress());
    return;
  }
  if (read.tried) {
    if (read.got > 0) {
      const bool first = slot.last_read == 0;
      slot.last_read = read.at;
      if (first) expect_due(slot);
      slot.recorder.on_bytes({slab_.data() + read.offset, static_cast<size_t>(read.got)}, read.at);
    } else if (read.got == 0) {
      if (!slot.recorder.any_bytes() &&
          send_again(read.slot, Error(Kind::kReset, Side::kUpstream, "closed by the peer")))
        return;
      slot.recorder.on_closed(read.at);
      if (slot.recorder.finished()) drop_connection(slot);
    } else if (read.error != EAGAIN && read.error != EINTR) {
      const Error error = base::from_errno(read.error, "read the answer");
      if (!slot.recorder.any_bytes() && send_again(read.slot, error)) return;
      slot.recorder.on_failed(error);
    }
  }
  if (slot.recorder.finished()) {
    end_attempt(read.slot);
    return;
  }
  if (slot.phase == Phase::kSending && (read.events & EPOLLOUT) != 0) send_more(read.slot);
  // The answer is complete: only a short wait for the end of its body remains.
  if (slot.recorder.settled_at()) expect_due(slot);
}

// Retry::kIfReused: a request on a connection that had been used before, closed before any byte of
// the answer, is sent once more on a new connection.
bool ClientLoop::send_again(size_t index, const Error& error) {
  Slot& slot = *slots_[index];
  if (!slot.reused || slot.resent) return false;
  slot.resent = true;
  slot.reused = false;
  evidence::RequestRow& row = slot.attempt.row;
  row.connection_reused = false;
  row.stamps.sent.reset();
  row.error_detail = "sent again on a new connection: the reused one failed before any byte (" +
                     error.detail + ")";
  drop_connection(slot);
  begin_request(slot);
  dial(index);
  return true;
}

void ClientLoop::fail_attempt(size_t index, const Error& error) {
  slots_[index]->recorder.on_failed(error);
  end_attempt(index);
}

void ClientLoop::end_attempt(size_t index) {
  Slot& slot = *slots_[index];
  if (!slot.recorder.reusable() || slot.phase != Phase::kReceiving) drop_connection(slot);
  slot.dialer.reset();
  slot.phase = Phase::kFree;
  slot.out = {};
  --in_flight_;
  yield_row(std::move(slot.attempt.row));
}

// Ends everything that is in flight and everything that was not begun.
void ClientLoop::refuse_all(const Error& error) {
  for (const auto& slot : slots_) {
    if (slot->phase == Phase::kFree) continue;
    slot->recorder.on_failed(error);
    drop_connection(*slot);
    slot->dialer.reset();
    slot->phase = Phase::kFree;
    --in_flight_;
    yield_row(std::move(slot->attempt.row));
  }
  Recorder recorder(limits_);
  while (!waiting_.empty()) {
    Attempt attempt = std::move(waiting_.front());
    waiting_.pop_front();
    recorder.begin(attempt.row);
    recorder.on_failed(error);
    yield_row(std::move(attempt.row));
  }
}

void ClientLoop::yield_row(evidence::RequestRow row) {
  rows_.push_back(std::move(row));
  if (finished_) finished_(rows_.back());
}

void ClientLoop::watch(size_t index, uint32_t events) {
  Slot& slot = *slots_[index];
  if (slot.watched == events) return;
  epoll_event event{};
  event.events = events;
  event.data.u64 = index;
  const int fd = slot.dialer ? slot.dialer->fd() : slot.fd.get();
  const bool added = slot.watched == 0 && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  if (!added) epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
  slot.watched = events;
}

void ClientLoop::drop_connection(Slot& slot) {
  slot.fd.reset();
  slot.watched = 0;
}

ClientLoop::Due ClientLoop::due(const Slot& slot) const {
  Due first;
  const auto consider = [&](Nanos since, Nanos length, const char* limit) {
    if (length <= 0) return;
    if (first.at == 0 || since + length < first.at) first = {since + length, limit, length};
  };
  if (slot.phase == Phase::kFree) return first;
  consider(slot.started, limits_.total, "total");
  if (slot.phase == Phase::kDialing) {
    consider(slot.dialed, limits_.connect, "connect");
    if (slot.retry_at != 0) consider(slot.retry_at, 1, "");
  } else if (slot.last_read == 0) {
    consider(slot.ready, limits_.first_byte, "first_byte");
  } else {
    consider(slot.last_read, limits_.idle, "idle");
  }
  if (const auto settled = slot.recorder.settled_at()) consider(*settled, kEndGrace, "idle");
  return first;
}

void ClientLoop::expect_due(const Slot& slot) {
  if (const Due first = due(slot); first.at != 0) next_check_ = std::min(next_check_, first.at);
}

void ClientLoop::check_limits(Nanos now) {
  next_check_ = kNever;
  for (size_t i = 0; i < slots_.size(); ++i) {
    Slot& slot = *slots_[i];
    const Due first = due(slot);
    if (first.at == 0) continue;
    if (first.at > now) {
      next_check_ = std::min(next_check_, first.at);
    } else if (slot.retry_at != 0 && first.limit[0] == '\0') {
      dialed(i, slot.dialer->start());
    } else {
      const char* where = slot.phase == Phase::kDialing   ? "while connecting"
                          : slot.phase == Phase::kSending ? "while sending the request"
                          : slot.last_read == 0           ? "before the first byte of the answer"
                                                          : "in the middle of the answer";
      fail_attempt(i, Error(Kind::kTimeout, Side::kUpstream,
                            std::string("limit ") + first.limit + " (" +
                                base::format_duration(first.length) + ") ran out " + where));
    }
    start_next(i);
  }
}

int ClientLoop::wait_millis() const {
  if (next_check_ == kNever) return -1;
  const Nanos left = next_check_ - mono_now();
  if (left <= 0) return 0;
  return static_cast<int>(std::min<Nanos>(left / kMillisecond + 1, 3'600'000));
}

}  // namespace anvil::measure
