#include "net/http_call.h"

#include <poll.h>

#include <cerrno>

#include "base/strings.h"
#include "net/connection.h"
#include "net/request.h"
#include "net/response_reader.h"
#include "net/socket.h"

namespace anvil::net {

namespace {

// The running call: the answer so far.
struct Exchange {
  ResponseReader reader;
  HttpReply reply;
  uint64_t max_body = 0;
};

Result<void> take(Exchange& exchange, std::string_view input) {
  for (;;) {
    switch (TRY(exchange.reader.next(input))) {
      case ResponseReader::Event::kMore:
      case ResponseReader::Event::kEnd:
        return {};
      case ResponseReader::Event::kHead: {
        const wire::ResponseHead& head = exchange.reader.head();
        exchange.reply.status = head.status;
        for (const wire::HeaderField& field : head.fields)
          exchange.reply.headers.emplace_back(field.name, field.value);
        const std::string_view encoding = head.field("content-encoding");
        if (!encoding.empty() && !base::iequals(encoding, "identity"))
          return fail(Kind::kProtocol, Side::kUpstream,
                      "the answer is encoded as " + quote_bytes(encoding) +
                          " although only identity was accepted");
        if (head.content_length.value_or(0) > exchange.max_body)
          return fail(Kind::kTooLarge, Side::kUpstream,
                      "the answer declares " + base::format_bytes(*head.content_length) +
                          ", the limit is " + base::format_bytes(exchange.max_body));
        break;
      }
      case ResponseReader::Event::kPayload: {
        const std::string_view piece = exchange.reader.payload();
        if (exchange.reply.body.size() + piece.size() > exchange.max_body)
          return fail(
              Kind::kTooLarge, Side::kUpstream,
              "the answer is larger than the limit of " + base::format_bytes(exchange.max_body));
        exchange.reply.body.append(piece);
        break;
      }
    }
  }
}

// Hands what one read gave to the answer, decrypted if need be.
Result<void> take_read(Connection& connection, Exchange& exchange, std::string_view bytes) {
  if (!connection.encrypted()) return take(exchange, bytes);
  connection.feed(bytes);
  char plain[16 * 1024];
  while (const size_t got = TRY(connection.decrypt(plain, sizeof plain)))
    TRY(take(exchange, {plain, got}));
  return {};
}

// A peer that closed its receiving side may still have answered (413 and the like), so a broken
// pipe only ends the sending.
Result<void> converse(Connection& connection, std::string_view request, Exchange& exchange,
                      Nanos deadline, const base::Cancel* cancel) {
  const KernelClock clock;
  char buffer[32 * 1024];
  TRY(connection.put(request));
  Connection::Sent sent = connection.flush();
  while (!exchange.reader.ended()) {
    const bool sending = sent == Connection::Sent::kSome;
    const char* doing =
        exchange.reader.has_head() ? "in the middle of the answer" : "while waiting for the answer";
    TRY(wait_ready(connection.fd(), static_cast<short>(sending ? POLLIN | POLLOUT : POLLIN),
                   deadline, cancel, doing));
    if (sending) sent = connection.flush();
    const Received read = connection.receive(buffer, sizeof buffer, clock);
    if (read.bytes > 0)
      TRY(take_read(connection, exchange, {buffer, static_cast<size_t>(read.bytes)}));
    else if (read.bytes == 0)
      TRY(exchange.reader.closed());
    else if (read.error != EAGAIN && read.error != EINTR)
      return fail(exchange.reader.read_error(read.error));
  }
  return {};
}

}  // namespace

std::string_view HttpReply::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (base::iequals(key, name)) return value;
  return {};
}

Result<HttpReply> http_call(const Url& url, const HttpCall& call, const base::Cancel* cancel) {
  const Nanos deadline = mono_now() + call.limit;
  Exchange exchange;
  exchange.max_body = call.max_body;
  const std::string request = TRY(request_text(url, {.method = call.method,
                                                     .path = call.path,
                                                     .api_key = call.api_key,
                                                     .body = call.body,
                                                     .keep_alive = false}));
  exchange.reader.begin(call.method);

  const auto context = [&](Error error) {
    if (error.kind == Kind::kTimeout)
      error.detail += " (" + base::format_duration(call.limit) + " in all)";
    if (error.kind != Kind::kCancelled) error.with_context(call.method + " " + call.path);
    return fail(std::move(error));
  };
  auto destination = find_destination(url, call.tls);
  if (!destination) return context(std::move(destination).error());
  Connection connection;
  Result<void> done = open_now(connection, *destination, deadline, cancel);
  if (done) done = converse(connection, request, exchange, deadline, cancel);
  if (!done) return context(std::move(done).error());
  return std::move(exchange.reply);
}

}  // namespace anvil::net
