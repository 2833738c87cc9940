#include <algorithm>

#include "scripted/loop.h"

namespace anvil::scripted {

namespace {

constexpr size_t kMaxBodyBytes = 64u << 20;
// An answer is not slowed by what the client sends meanwhile, but that is not kept without end.
constexpr size_t kMaxAheadBytes = kMaxBodyBytes + wire::kMaxHeadBytes;

std::string_view without_query(std::string_view target) {
  return target.substr(0, target.find('?'));
}

bool has_key(const wire::RequestHead& head, const std::string& key) {
  return head.field("authorization") == "Bearer " + key || head.field("x-api-key") == key;
}

// What may stand in a header field and in a file: printable ASCII. Empty if there is none.
std::string request_id(const wire::RequestHead& head) {
  const std::string_view sent = head.field("x-request-id");
  const auto plain = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!sent.empty() && sent.size() <= 200 && std::all_of(sent.begin(), sent.end(), plain))
    return std::string(sent);
  return {};
}

int status_of(const Error& error) {
  return error.kind == Kind::kNotFound ? 404 : 400;
}

}  // namespace

bool Loop::on_readable(Connection& connection) {
  for (;;) {
    const auto moved = connection.transport.read(read_buffer_, kernel_clock_);
    const Nanos at = mono_now();
    if (moved.state == Transport::State::kClosed) {
      close(connection);
      return false;
    }
    if (moved.state == Transport::State::kAgain) {
      watch(connection, connection.transport.wants_write() || !connection.unsent.empty());
      return true;
    }
    connection.in.append(read_buffer_, 0, moved.bytes);
    connection.arrived = moved.arrived;
    if (connection.in.size() > kMaxAheadBytes) {
      close(connection);
      return false;
    }
    if (!take_input(connection, at)) return false;
    // A plain socket tells again that there is more; TLS may hold more without telling.
    if (!connection.tls) return true;
  }
}

// Takes requests out of what was received until an answer is in progress or more is needed.
bool Loop::take_input(Connection& connection, Nanos at) {
  using Phase = Connection::Phase;
  for (;;) {
    const Phase before = connection.phase;
    if (connection.closing) connection.in.clear();
    const size_t had = connection.in.size();
    if (before == Phase::kAnswer || (before == Phase::kHead && had == 0)) return true;
    const bool there = before == Phase::kHead ? take_head(connection) : take_body(connection, at);
    if (!there) return false;
    if (connection.phase == before && connection.in.size() == had) return true;
  }
}

bool Loop::take_head(Connection& connection) {
  const auto refuse = [&](int status, std::string_view why) {
    return reply(connection, error_reply(Surface::kChat, status, why, "invalid_request_error"),
                 "none", false);
  };
  const auto size = connection.parser.parse(connection.in);
  if (!size) return refuse(size.error().kind == Kind::kTooLarge ? 431 : 400, size.error().detail);
  if (*size == 0) return true;
  const wire::RequestHead& head = connection.parser.head();
  if (head.content_length.value_or(0) > kMaxBodyBytes)
    return refuse(413, "the body is larger than 64 MiB");
  const std::string& key = engine_.schedule().engine.api_key;
  connection.method = head.method;
  connection.path = without_query(head.target);
  connection.id = request_id(head);
  connection.authorised = key.empty() || !connection.path.starts_with("/v1/") || has_key(head, key);
  connection.keep_alive = head.keep_alive;
  connection.chunked = head.chunked;
  connection.old = head.version_minor == 0;
  connection.length = static_cast<size_t>(head.content_length.value_or(0));
  const bool asks = head.expects_continue;
  connection.in.erase(0, *size);
  connection.parser.reset();
  connection.chunks.reset();
  connection.body.clear();
  connection.phase = Connection::Phase::kBody;
  if (asks && (connection.chunked || connection.in.size() < connection.length))
    return send_block(connection, "HTTP/1.1 100 Continue\r\n\r\n", mono_now());
  return true;
}

bool Loop::take_body(Connection& connection, Nanos at) {
  if (connection.chunked) {
    std::string_view input = connection.in;
    while (!input.empty() && !connection.chunks.done()) {
      const auto step = connection.chunks.next(input);
      if (!step || connection.body.size() + step->payload.size() > kMaxBodyBytes)
        return reply(connection,
                     error_reply(Surface::kChat, step ? 413 : 400,
                                 step ? "the body is larger than 64 MiB" : step.error().detail,
                                 "invalid_request_error"),
                     connection.id, false);
      connection.body.append(step->payload);
      input.remove_prefix(step->consumed);
    }
    connection.in.erase(0, connection.in.size() - input.size());
    if (!connection.chunks.done()) return true;
  } else {
    if (connection.in.size() < connection.length) return true;
    if (connection.in.size() == connection.length) {
      connection.body = std::move(connection.in);
      connection.in.clear();
    } else {
      connection.body = connection.in.substr(0, connection.length);
      connection.in.erase(0, connection.length);
    }
  }
  const std::string body = std::move(connection.body);
  connection.body.clear();
  return answer(connection, body, at);
}

bool Loop::answer(Connection& connection, std::string_view body, Nanos at) {
  const std::string id = std::move(connection.id);
  const auto surface = surface_of_path(connection.path);
  if (!connection.authorised) {
    Reply refusal = error_reply(surface.value_or(Surface::kChat), 401,
                                "the key is missing or wrong", "authentication_error");
    refusal.more_fields = "WWW-Authenticate: Bearer\r\n";
    return reply(connection, refusal, id, connection.keep_alive);
  }
  if (surface && connection.method == "POST") return generate(connection, *surface, body, id, at);
  return reply(connection, route(engine_, connection.method, connection.path, body), id,
               connection.keep_alive);
}

bool Loop::generate(Connection& connection, Surface surface, std::string_view body, std::string id,
                    Nanos at) {
  LedgerEntry entry;
  entry.serial = engine_.next_serial();
  entry.id = id.empty() ? "scripted-" + std::to_string(entry.serial) : std::move(id);
  entry.surface = surface;
  entry.connection = connection.number;
  entry.recv_last_byte = entry.start = at;
  entry.arrived = connection.arrived;
  const auto refuse = [&](const Error& error) {
    const Reply refusal =
        error_reply(surface, status_of(error), error.detail, "invalid_request_error");
    const std::string entry_id = entry.id;
    entry.ending = Ending::kRefused;
    entry.status = refusal.status;
    engine_.refused(std::move(entry));
    return reply(connection, refusal, entry_id, connection.keep_alive);
  };
  auto request = read_request(surface, body, engine_.schedule().engine);
  if (!request) return refuse(request.error());
  if (request->model.empty()) request->model = engine_.schedule().engine.model;
  auto admission = engine_.admit(*request, entry, *this, connection.key);
  if (!admission) return refuse(admission.error());

  auto exchange = std::make_unique<Exchange>();
  exchange->request = std::move(*request);
  // Counted; it may be long, and streams are many.
  std::vector<int64_t>().swap(exchange->request.prompt);
  exchange->plan = std::move(admission->plan);
  exchange->keep_alive = connection.keep_alive;
  const Stream& stream = engine_.stream(admission->stream);
  exchange->chunked = stream.chunked && !connection.old;
  AnswerState& state = exchange->state;
  state.engine = &engine_.schedule().engine;
  state.stream = &stream;
  state.text = &engine_.text(admission->stream);
  state.request = &exchange->request;
  state.id = "scripted-" + std::to_string(entry.serial);
  state.model_json = json_escaped(exchange->request.model);
  state.created = engine_.created();
  state.prompt = entry.prompt_tokens;
  state.cached = entry.cached_tokens;
  state.finish = exchange->plan.finish;
  state.reasoning_tokens = exchange->plan.reasoning_tokens;
  state.content_tokens = exchange->plan.content_tokens;
  state.tool_events = exchange->plan.tool_events;
  exchange->entry = std::move(entry);
  connection.exchange = std::move(exchange);
  connection.phase = Connection::Phase::kAnswer;
  if (!admission->waits) begin_answer(connection, at);
  return true;
}

// The schedule of the answer counts from `start`.
void Loop::begin_answer(Connection& connection, Nanos start) {
  Exchange& exchange = *connection.exchange;
  exchange.has_slot = true;
  exchange.state.start = exchange.entry.start = start;
  const std::vector<Step>& steps = exchange.plan.steps;
  if (!exchange.request.stream) {
    // One write, when the last step is due or what the fault breaks off.
    const auto fault = std::find_if(steps.begin(), steps.end(),
                                    [](const Step& step) { return step.kind == StepKind::kFault; });
    exchange.next =
        fault != steps.end() ? static_cast<size_t>(fault - steps.begin()) : steps.size() - 1;
  }
  set_timer(connection, start + steps[exchange.next].at);
}

bool Loop::reply(Connection& connection, const Reply& what, std::string_view id, bool keep_alive) {
  const std::string given = id.empty() ? "scripted" : std::string(id);
  connection.phase = Connection::Phase::kHead;
  connection.closing = !keep_alive;
  if (!send_block(connection, reply_text(what, given, keep_alive), mono_now())) return false;
  if (!connection.closing || !connection.unsent.empty()) return true;
  close(connection);
  return false;
}

}  // namespace anvil::scripted
