#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <charconv>

#include "scripted/loop.h"

namespace anvil::scripted {

namespace {

// Room in front of an event for the size line of its HTTP chunk: 16 hex digits and CRLF.
constexpr size_t kSizeLine = 18;
// A client that does not read holds its steps back when so much waits for it.
constexpr size_t kMaxUnsent = 4u << 20;
constexpr size_t kNotKept = SIZE_MAX;
// A reset waits until what was written is on its way, but not for a peer that takes nothing.
constexpr Nanos kResetPause = 200 * kMicrosecond;
constexpr Nanos kResetPatience = kSecond;
constexpr std::string_view kCrLf = "\r\n";
constexpr std::string_view kEndOfBody = "0\r\n\r\n";

// Puts the size line of a chunk in front of `frame`[kSizeLine, end); returns where it begins.
size_t put_size_line(std::string& frame, size_t bytes) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, bytes, 16).ptr;
  const auto count = static_cast<size_t>(end - digits);
  const size_t begin = kSizeLine - kCrLf.size() - count;
  std::copy(digits, end, frame.begin() + static_cast<std::ptrdiff_t>(begin));
  frame[kSizeLine - 2] = '\r';
  frame[kSizeLine - 1] = '\n';
  return begin;
}

std::string stream_head(const Exchange& exchange) {
  std::string out;
  append_reply_head(200, exchange.entry.id, out);
  out += "Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n";
  out += exchange.chunked ? "Transfer-Encoding: chunked\r\n" : "";
  if (!exchange.chunked || !exchange.keep_alive) out += "Connection: close\r\n";
  return out + "\r\n";
}

// Whether bytes that were written wait in the socket: a reset would throw them away.
bool has_queued(const Connection& connection) {
  int queued = 0;
  return !connection.unsent.empty() ||
         (ioctl(connection.transport.fd(), SIOCOUTQNSD, &queued) == 0 && queued > 0);
}

}  // namespace

bool Loop::on_writable(Connection& connection) {
  while (!connection.unsent.empty()) {
    const Nanos begin = mono_now();
    const auto moved = connection.transport.write(connection.unsent);
    if (moved.state == Transport::State::kAgain) return true;
    if (moved.state == Transport::State::kClosed) {
      close(connection);
      return false;
    }
    ++writes_;
    connection.sent += moved.bytes;
    connection.unsent.erase(0, moved.bytes);
    settle(connection, begin, mono_now());
  }
  watch(connection, false);
  if (connection.closing) {
    close(connection);
    return false;
  }
  if (connection.exchange && connection.exchange->all_sent)
    return finish(connection, Ending::kDone);
  if (connection.pause_due) {
    connection.pause_due = false;
    return take_step(connection, mono_now());
  }
  // A TLS handshake that waited for room goes on with reading.
  return connection.tls ? on_readable(connection) : true;
}

// Hands bytes to the connection; what the socket does not take waits. False if the connection is
// gone.
bool Loop::send_block(Connection& connection, std::string_view raw, Nanos begin) {
  connection.queued += raw.size();
  if (!connection.unsent.empty()) {
    connection.unsent += raw;
    return true;
  }
  while (!raw.empty()) {
    const auto moved = connection.transport.write(raw);
    if (moved.state == Transport::State::kClosed) {
      close(connection);
      return false;
    }
    if (moved.state == Transport::State::kAgain) break;
    ++writes_;
    connection.sent += moved.bytes;
    raw.remove_prefix(moved.bytes);
  }
  settle(connection, begin, mono_now());
  if (!raw.empty()) {
    connection.unsent = raw;
    watch(connection, true);
  }
  return true;
}

// Stamps the events whose last byte has left.
void Loop::settle(Connection& connection, Nanos begin, Nanos end) {
  auto& pending = connection.pending;
  if (pending.empty() || !connection.exchange) return;
  auto& events = connection.exchange->entry.events;
  size_t done = 0;
  for (; done < pending.size() && pending[done].end <= connection.sent; ++done) {
    LedgerEvent& event = events[pending[done].event];
    event.write_begin = begin;
    event.write_end = end;
  }
  pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(done));
}

// The ledger's line for an event; kNotKept if the ledger has no room for this request.
size_t Loop::record(Exchange& exchange, StepKind kind, Nanos due, uint32_t tokens, size_t bytes) {
  ++events_;
  bytes_ += static_cast<int64_t>(bytes);
  LedgerEntry& entry = exchange.entry;
  if (entry.cut || entry.events.size() == entry.events.capacity()) return kNotKept;
  entry.events.push_back({due, 0, 0, kind, tokens, static_cast<uint32_t>(bytes)});
  return entry.events.size() - 1;
}

// Engine totals that grow with every event.
void Loop::count(const Step& step) {
  constexpr auto relaxed = std::memory_order_relaxed;
  if (!is_output(step.kind)) return;
  Counters& counters = engine_.counters();
  counters.output_tokens.fetch_add(step.tokens, relaxed);
  counters.output_events.fetch_add(1, relaxed);
  if (step.drafted == 0) return;
  counters.drafts.fetch_add(1, relaxed);
  counters.draft_tokens.fetch_add(step.drafted, relaxed);
  counters.accepted_tokens.fetch_add(step.accepted, relaxed);
  for (size_t i = 0; i < step.accepted; ++i) counters.accepted_at[i].fetch_add(1, relaxed);
}

// The next step is due. False if the connection is gone.
bool Loop::take_step(Connection& connection, Nanos now) {
  Exchange& exchange = *connection.exchange;
  if (connection.unsent.size() > kMaxUnsent) {
    connection.pause_due = true;
    return true;
  }
  const Nanos planned = exchange.state.start + exchange.plan.steps[exchange.next].at;
  const Nanos due = std::max(planned, exchange.not_before);
  if (exchange.cuts() && exchange.waiting_bytes() > 0) {
    if (!release_pieces(connection, now)) return false;
    return exchange.waiting_bytes() > 0 || after_step(connection);
  }
  const Step step = exchange.plan.steps[exchange.next];
  if (step.kind == StepKind::kFault && exchange.stream().fault.kind == FaultKind::kStatus)
    return emit_status(connection, due);
  if (!exchange.request.stream) return emit_whole(connection, due);
  if (is_output(step.kind)) {
    if (exchange.state.first_output == 0) exchange.state.first_output = now;
    exchange.state.last_output = now;
  }
  count(step);
  switch (step.kind) {
    case StepKind::kHead:
      if (!send_block(connection, stream_head(exchange), now)) return false;
      break;
    case StepKind::kFault:
      if (exchange.stream().fault.kind != FaultKind::kEvent &&
          exchange.stream().fault.kind != FaultKind::kGarbage)
        return emit_fault(connection, due);
      [[fallthrough]];
    default:
      if (!emit(connection, step, due)) return false;
      if (exchange.cuts() && exchange.waiting_bytes() > 0) return true;
  }
  return after_step(connection);
}

// Writes one event, or keeps it back as the stream says.
bool Loop::emit(Connection& connection, const Step& step, Nanos due) {
  Exchange& exchange = *connection.exchange;
  const Stream& stream = exchange.stream();
  const bool last = exchange.next + 1 == exchange.plan.steps.size();
  scratch_.assign(kSizeLine, ' ');
  writer_.start(scratch_, stream, exchange.state.engine->stamps, due);
  write_step(exchange.state, step, writer_);
  const size_t bytes = scratch_.size() - kSizeLine;
  if (bytes == 0) return true;  // this surface has nothing to say about the step
  const size_t event = record(exchange, step.kind, due, step.tokens, bytes);

  if (stream.coalesce > 1 || stream.buffer_bytes > 0 || exchange.cuts()) {
    const size_t base = exchange.held.size();
    exchange.held.append(scratch_, kSizeLine);
    // A reader takes the CR of the last line end for the end of the event; the LF adds nothing.
    const size_t superfluous = stream.line_end.size() - 1;
    exchange.held_events.push_back({event, exchange.held.size() - superfluous});
    for (const uint32_t place : writer_.stamp_places())
      exchange.held_places.push_back(static_cast<uint32_t>(base + place - kSizeLine));
    if (exchange.cuts()) {
      exchange.next_cut = 0;
      return release_pieces(connection, due);
    }
    size_t ready = exchange.waiting_bytes();
    if (!last && stream.coalesce > 1 &&
        exchange.held_events.size() < static_cast<size_t>(stream.coalesce))
      ready = 0;
    if (!last && stream.buffer_bytes > 0) ready -= ready % static_cast<size_t>(stream.buffer_bytes);
    return ready == 0 || release(connection, ready, due, last);
  }

  size_t begin_at = kSizeLine;
  if (exchange.chunked) {
    begin_at = put_size_line(scratch_, bytes);
    scratch_ += kCrLf;
    if (last) scratch_ += kEndOfBody;
  }
  const std::string_view raw = std::string_view(scratch_).substr(begin_at);
  if (event != kNotKept) connection.pending.push_back({event, connection.queued + raw.size()});
  const Nanos begin = mono_now();
  for (const uint32_t place : writer_.stamp_places())
    EventWriter::patch(scratch_.data(), place, begin);
  if (connection.unsent.empty()) lateness_.add(begin - due);
  return send_block(connection, raw, begin);
}

// Sends the next `bytes` of what was kept back, as one HTTP chunk in one write.
bool Loop::release(Connection& connection, size_t bytes, Nanos due, bool last) {
  Exchange& exchange = *connection.exchange;
  const size_t end = exchange.released + bytes;
  const Nanos begin = mono_now();
  auto& places = exchange.held_places;
  size_t patched = 0;
  for (; patched < places.size() && places[patched] < end; ++patched)
    if (places[patched] >= exchange.released)
      EventWriter::patch(exchange.held.data(), places[patched], begin);
  places.erase(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(patched));

  frame_.assign(kSizeLine, ' ');
  frame_.append(exchange.held, exchange.released, bytes);
  size_t begin_at = kSizeLine;
  if (exchange.chunked) {
    begin_at = put_size_line(frame_, bytes);
    frame_ += kCrLf;
    if (last) frame_ += kEndOfBody;
  }
  const std::string_view raw = std::string_view(frame_).substr(begin_at);
  auto& events = exchange.held_events;
  size_t whole = 0;
  for (; whole < events.size() && events[whole].end <= end; ++whole)
    if (events[whole].event != kNotKept)
      connection.pending.push_back({events[whole].event, connection.queued + raw.size()});
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(whole));
  exchange.released = end;
  if (exchange.waiting_bytes() == 0) {
    exchange.held.clear();
    exchange.released = 0;
  }
  if (connection.unsent.empty()) lateness_.add(begin - due);
  return send_block(connection, raw, begin);
}

// Sends one piece of an event that is cut, or all of them if no time is between them.
bool Loop::release_pieces(Connection& connection, Nanos due) {
  Exchange& exchange = *connection.exchange;
  const Stream& stream = exchange.stream();
  const bool last = exchange.next + 1 == exchange.plan.steps.size();
  while (exchange.waiting_bytes() > 0) {
    size_t end = exchange.held.size();
    if (stream.split_every > 0)
      end = std::min(end, exchange.released + static_cast<size_t>(stream.split_every));
    else if (exchange.next_cut < stream.split_at.size())
      end = std::min(end, static_cast<size_t>(stream.split_at[exchange.next_cut++]));
    const bool rest = end < exchange.held.size();
    if (!release(connection, end - exchange.released, due, last && !rest)) return false;
    if (!rest) return true;
    due = mono_now();
    if (stream.split_gap > 0) {
      exchange.not_before = due + stream.split_gap;
      set_timer(connection, exchange.not_before);
      return true;
    }
  }
  return true;
}

// The step was taken: the next one gets its timer, or the answer ends.
bool Loop::after_step(Connection& connection) {
  Exchange& exchange = *connection.exchange;
  if (++exchange.next < exchange.plan.steps.size()) {
    const Nanos planned = exchange.state.start + exchange.plan.steps[exchange.next].at;
    set_timer(connection, std::max(planned, exchange.not_before));
    return true;
  }
  exchange.all_sent = true;
  return connection.unsent.empty() ? finish(connection, Ending::kDone) : true;
}

bool Loop::emit_whole(Connection& connection, Nanos due) {
  Exchange& exchange = *connection.exchange;
  const bool broken = exchange.plan.steps[exchange.next].kind == StepKind::kFault;
  const FaultKind fault = broken ? exchange.stream().fault.kind : FaultKind::kNone;
  uint32_t tokens = 0;
  for (size_t i = 0; i < exchange.next; ++i) {
    const Step& step = exchange.plan.steps[i];
    count(step);
    count_step(exchange.state, step);
    tokens += step.tokens;
    if (!is_output(step.kind)) continue;
    const Nanos at = exchange.state.start + step.at;
    if (exchange.state.first_output == 0) exchange.state.first_output = at;
    exchange.state.last_output = at;
  }
  if (broken && fault != FaultKind::kEvent && fault != FaultKind::kGarbage)
    return emit_fault(connection, due);
  Reply reply;
  if (fault == FaultKind::kEvent) {
    const Fault& what = exchange.stream().fault;
    reply.body = error_body(exchange.request.surface, what.message, what.type, what.status);
  } else {
    reply.body = whole_body(exchange.state);
    if (fault == FaultKind::kGarbage) reply.body.resize(reply.body.size() / 2);
  }
  const size_t event = record(exchange, StepKind::kWhole, due, tokens, reply.body.size());
  const std::string raw = reply_text(reply, exchange.entry.id, exchange.keep_alive);
  if (event != kNotKept) connection.pending.push_back({event, connection.queued + raw.size()});
  const Nanos begin = mono_now();
  lateness_.add(begin - due);
  exchange.next = exchange.plan.steps.size() - 1;
  return send_block(connection, raw, begin) && after_step(connection);
}

bool Loop::emit_status(Connection& connection, Nanos due) {
  Exchange& exchange = *connection.exchange;
  const Fault& fault = exchange.stream().fault;
  Reply refusal = error_reply(exchange.request.surface, fault.status, fault.message, fault.type);
  if (fault.retry_after_s)
    refusal.more_fields = "Retry-After: " + std::to_string(*fault.retry_after_s) + "\r\n";
  exchange.entry.status = fault.status;
  const std::string raw = reply_text(refusal, exchange.entry.id, exchange.keep_alive);
  const size_t event = record(exchange, StepKind::kFault, due, 0, refusal.body.size());
  if (event != kNotKept) connection.pending.push_back({event, connection.queued + raw.size()});
  const Nanos begin = mono_now();
  lateness_.add(begin - due);
  return send_block(connection, raw, begin) && after_step(connection);
}

// Breaks the answer off. What was kept back leaves first.
bool Loop::emit_fault(Connection& connection, Nanos due) {
  Exchange& exchange = *connection.exchange;
  const FaultKind kind = exchange.stream().fault.kind;
  if (exchange.waiting_bytes() > 0 && !release(connection, exchange.waiting_bytes(), due, false))
    return false;
  const Nanos now = mono_now();
  if (kind == FaultKind::kReset && has_queued(connection) && now < due + kResetPatience) {
    set_timer(connection, now + kResetPause);
    return true;
  }
  record(exchange, StepKind::kFault, due, 0, 0);
  if (kind == FaultKind::kStall) return true;
  if (kind == FaultKind::kEnd && exchange.request.stream) {
    const std::string_view end = exchange.chunked ? kEndOfBody : std::string_view();
    if (!send_block(connection, end, mono_now())) return false;
    return after_step(connection);
  }
  exchange.keep_alive = false;
  if (kind == FaultKind::kReset) connection.transport.reset();
  return finish(connection, Ending::kFault);
}

// The request is over: into the ledger, and on to the next one. False if the connection is gone.
bool Loop::finish(Connection& connection, Ending ending) {
  constexpr auto relaxed = std::memory_order_relaxed;
  const std::unique_ptr<Exchange> exchange = std::move(connection.exchange);
  const AnswerState& state = exchange->state;
  LedgerEntry& entry = exchange->entry;
  const bool faulty = std::any_of(exchange->plan.steps.begin(), exchange->plan.steps.end(),
                                  [](const Step& step) { return step.kind == StepKind::kFault; });
  entry.ending = ending == Ending::kDone && faulty ? Ending::kFault : ending;
  entry.completion_tokens = state.sent_tokens();
  Counters& counters = engine_.counters();
  auto& outcome = entry.ending == Ending::kFault  ? counters.failed
                  : entry.ending != Ending::kDone ? counters.aborted
                  : state.finish == "length"      ? counters.length
                                                  : counters.stopped;
  outcome.fetch_add(1, relaxed);
  if (state.first_output > 0) {
    counters.prefill_us.fetch_add((state.first_output - state.start) / 1000, relaxed);
    counters.decode_us.fetch_add((state.last_output - state.first_output) / 1000, relaxed);
  }
  const int64_t total = entry.prompt_tokens + entry.completion_tokens;
  int64_t longest = counters.longest.load(relaxed);
  while (longest < total && !counters.longest.compare_exchange_weak(longest, total, relaxed)) {
  }
  const bool had_slot = exchange->has_slot || !engine_.forget(*this, connection.key);
  const bool keep = exchange->keep_alive && (exchange->chunked || !exchange->request.stream);
  engine_.leave(std::move(entry), had_slot);
  connection.pending.clear();
  connection.timer = 0;
  connection.phase = Connection::Phase::kHead;
  if (keep && ending == Ending::kDone) return take_input(connection, mono_now());
  close(connection);
  return false;
}

}  // namespace anvil::scripted
