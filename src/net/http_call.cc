#include "net/http_call.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/strings.h"
#include "net/request.h"
#include "net/response_reader.h"
#include "net/socket.h"

namespace anvil::net {

namespace {

// The running call: what is left to send, and the answer so far.
struct Exchange {
  std::string out;
  size_t sent = 0;
  ResponseReader reader;
  HttpReply reply;
  uint64_t max_body = 0;
};

// Sends what the kernel takes. A peer that closed its receiving side may still have answered (413
// and the like), so a broken pipe only ends the sending.
Result<void> send_some(int fd, Exchange& exchange) {
  while (exchange.sent < exchange.out.size()) {
    const ssize_t put = send(fd, exchange.out.data() + exchange.sent,
                             exchange.out.size() - exchange.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put >= 0) {
      exchange.sent += static_cast<size_t>(put);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return {};
    if (errno == EPIPE || errno == ECONNRESET) {
      exchange.sent = exchange.out.size();
      return {};
    }
    return fail(base::from_errno(errno, "send the request"));
  }
  return {};
}

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

Result<void> converse(int fd, Exchange& exchange, Nanos deadline, const base::Cancel* cancel) {
  char buffer[32 * 1024];
  Result<void> step = send_some(fd, exchange);
  while (step && !exchange.reader.ended()) {
    const bool sending = exchange.sent < exchange.out.size();
    const char* doing =
        exchange.reader.has_head() ? "in the middle of the answer" : "while waiting for the answer";
    step = wait_ready(fd, static_cast<short>(sending ? POLLIN | POLLOUT : POLLIN), deadline, cancel,
                      doing);
    if (step && sending) step = send_some(fd, exchange);
    if (!step) break;
    const ssize_t got = recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0)
      step = take(exchange, {buffer, static_cast<size_t>(got)});
    else if (got == 0)
      step = exchange.reader.closed();
    else if (errno != EAGAIN && errno != EINTR)
      step = fail(base::from_errno(errno, "read the answer"));
  }
  return step;
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
  exchange.out = TRY(request_text(url, {.method = call.method,
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
  Result<base::Fd> fd = dial(url, deadline, cancel);
  if (!fd) return context(std::move(fd).error());
  Result<void> done = converse(fd->get(), exchange, deadline, cancel);
  if (!done) return context(std::move(done).error());
  return std::move(exchange.reply);
}

}  // namespace anvil::net
