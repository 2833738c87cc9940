// The life of one attempt in its slot: connection, request, end. What the loop around it does is in
// client_loop.cc.

#include "measure/client_loop.h"
#include "measure/retry_after.h"
#include "net/request.h"

namespace anvil::measure {

namespace {
constexpr uint32_t kWatched = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
constexpr Nanos kBusyPause = kMillisecond;
}  // namespace

void ClientLoop::start_due() {
  for (;;) {
    const std::optional<Agenda::Start> start = agenda_.take(mono_now());
    if (!start) return;
    begin(*start);
  }
}

uint32_t ClientLoop::free_slot() {
  for (std::vector<uint32_t>* list : {&free_open_, &free_closed_}) {
    if (list->empty()) continue;
    const uint32_t index = list->back();
    list->pop_back();
    return index;
  }
  slots_.emplace_back(context_.limits);
  return static_cast<uint32_t>(slots_.size() - 1);
}

void ClientLoop::begin(const Agenda::Start& start) {
  const uint32_t index = free_slot();
  Slot& slot = slots_[index];
  Attempt& attempt = context_.attempts[start.index];
  evidence::RequestRow& row = attempt.row;
  slot.attempt = start.index;
  slot.started = mono_now();
  ++in_flight_;
  if (start.dated || row.stamps.intended == 0) row.stamps.intended = start.intended;
  if (start.dated && !start.waited) report_.lateness.add(slot.started - start.intended);
  slot.reused = slot.connection.state() == net::Connection::State::kOpen;
  slot.resent = false;
  slot.kernel_stamped = true;
  slot.spoiled = false;
  slot.last_read = 0;
  slot.recorder.begin(row);
  Result<std::string> request = net::request_text(
      context_.url, {.method = "POST",
                     .path = wire::path(row.api),
                     .api_key = context_.endpoint.api_key,
                     .body = attempt.body,
                     .keep_alive = context_.options.connections != Connections::kFresh,
                     .events = row.stream});
  if (!request) return fail_attempt(index, request.error());
  slot.request = std::move(*request);
  attempt.body = {};
  if (!slot.reused) return open(index);
  row.connection_reused = true;
  opened(index);
}

void ClientLoop::open(uint32_t index) {
  Slot& slot = slots_[index];
  slot.phase = Phase::kDialing;
  slot.dialed = mono_now();
  ++report_.opened;
  settle(index, slot.connection.open(context_.destination));
}

// Goes on with a connection that is on its way.
void ClientLoop::settle(uint32_t index, net::Connection::State state) {
  using State = net::Connection::State;
  Slot& slot = slots_[index];
  net::Connection& connection = slot.connection;
  slot.retry_at = state == State::kBusy ? mono_now() + kBusyPause : 0;
  if (connection.fd() >= 0 && connection.descriptors() != slot.descriptors) {
    epoll_event event{};
    event.events = kWatched;
    event.data.u64 = index;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, connection.fd(), &event);
    slot.descriptors = connection.descriptors();
  }
  if (slot.attempt != kNoAttempt && state != State::kBusy) {
    evidence::Stamps& stamps = row_of(slot).stamps;
    const net::Connection::Moments& moments = connection.moments();
    stamps.connect_begin = moments.connect_begin;
    stamps.connected = moments.connected;
    stamps.tls_begin = moments.tls_begin;
    stamps.tls_done = moments.tls_done;
  }
  switch (state) {
    case State::kOpen:
      // The handshake may have left bytes unread whose edge is gone.
      if (connection.encrypted()) again_.push_back(index);
      if (slot.attempt != kNoAttempt) return opened(index);
      slot.phase = Phase::kFree;
      deadlines_.set(index, DeadlineHeap::kNever);
      free_open_.push_back(index);
      --warming_;
      return;
    case State::kClosed:
    case State::kFailed:
      if (slot.attempt != kNoAttempt) return fail_attempt(index, connection.error());
      pool_error_ = connection.error();
      return;
    case State::kDialing:
    case State::kBusy:
    case State::kHandshaking:
      expect_due(index);
  }
}

void ClientLoop::opened(uint32_t index) {
  Slot& slot = slots_[index];
  slot.ready = mono_now();
  slot.phase = Phase::kSending;
  if (const Result<void> put = slot.connection.put(slot.request); !put)
    return fail_attempt(index, put.error());
  send_more(index);
}

// Sends what the kernel takes and stamps the last byte. When the peer has closed, reading tells
// why.
void ClientLoop::send_more(uint32_t index) {
  Slot& slot = slots_[index];
  const net::Connection::Sent sent = slot.connection.flush();
  if (sent == net::Connection::Sent::kAll) row_of(slot).stamps.sent = mono_now();
  if (sent == net::Connection::Sent::kBroken) again_.push_back(index);
  if (sent != net::Connection::Sent::kSome) slot.phase = Phase::kReceiving;
  expect_due(index);
}

// Retry::kIfReused: a request on a connection that had been used before, closed before any byte of
// the answer, is sent once more on a new connection.
bool ClientLoop::send_again(uint32_t index, const Error& error) {
  Slot& slot = slots_[index];
  if (!slot.reused || slot.resent) return false;
  slot.resent = true;
  slot.reused = false;
  evidence::RequestRow& row = row_of(slot);
  row.connection_reused = false;
  row.stamps.sent.reset();
  row.error_detail = "sent again on a new connection: the reused one failed before any byte (" +
                     error.detail + ")";
  drop_connection(slot);
  open(index);
  return true;
}

void ClientLoop::fail_attempt(uint32_t index, const Error& error) {
  slots_[index].recorder.on_failed(error);
  end_attempt(index);
}

void ClientLoop::end_attempt(uint32_t index) {
  Slot& slot = slots_[index];
  const Nanos now = mono_now();
  const Recorder& recorder = slot.recorder;
  evidence::RequestRow& row = row_of(slot);
  if (!recorder.reusable() || slot.spoiled || slot.phase != Phase::kReceiving ||
      context_.options.connections == Connections::kFresh)
    drop_connection(slot);
  if (recorder.any_bytes()) {
    row.stamp_source = slot.kernel_stamped ? "kernel" : "user";
    ++(slot.kernel_stamped ? report_.kernel_rows : report_.user_rows);
  }
  report_.events += recorder.events();
  report_.late_in_batch += static_cast<uint64_t>(row.late_in_batch.value_or(0));
  judge_status(row, recorder, now);
  const Nanos ended = row.outcome == evidence::Outcome::kOk ? slot.last_read : now;
  const auto attempt = static_cast<uint32_t>(slot.attempt);
  slot.phase = Phase::kFree;
  slot.attempt = kNoAttempt;
  slot.request = {};
  deadlines_.set(index, DeadlineHeap::kNever);
  const bool open = slot.connection.state() == net::Connection::State::kOpen;
  (open ? free_open_ : free_closed_).push_back(index);
  --in_flight_;
  context_.finished.push({attempt, slot.started, ended});
  agenda_.ended(attempt, ended);
}

// What an answer's status means for the rest of the run.
void ClientLoop::judge_status(const evidence::RequestRow& row, const Recorder& recorder,
                              Nanos now) {
  LoadShare& share = context_.share;
  if (row.status >= 200 && row.status < 300) share.accept_key();
  // A 403 can be about one request, once others were answered.
  const bool refused = row.status == 401 || (row.status == 403 && !share.key_accepted());
  if (refused && context_.options.stop_on_auth)
    share.stop(Error(Kind::kCancelled, Side::kUpstream,
                     "the run was stopped because a request was refused with " + row.error_detail,
                     "look at the API key and what it may use"));
  if (row.status != 429) return;
  ++report_.rate_limited;
  const std::optional<Nanos> pause = parse_retry_after(recorder.retry_after());
  if (pause && context_.options.respect_retry_after) share.hold(now, now + *pause);
}

// Ends everything that is in flight. What was not begun is left to the caller.
void ClientLoop::abandon(const Error& reason) {
  for (uint32_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].attempt != kNoAttempt) fail_attempt(i, reason);
}

void ClientLoop::drop_connection(Slot& slot) {
  if (slot.connection.state() == net::Connection::State::kOpen) {
    const net::TransportTrouble trouble = net::transport_trouble(slot.connection.fd());
    report_.retransmits += trouble.retransmits;
    report_.out_of_order += trouble.out_of_order;
  }
  slot.connection.close();
}

}  // namespace anvil::measure
