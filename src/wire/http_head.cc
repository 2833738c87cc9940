#include "wire/http_head.h"

#include <algorithm>

#include "base/strings.h"
#include "wire/head_text.h"

namespace anvil::wire {

namespace {

constexpr std::string_view kVersionPrefix = "HTTP/1.";

tl::unexpected<Error> broken(std::string detail) {
  return fail(Kind::kProtocol, Side::kUpstream, "HTTP head: " + std::move(detail));
}

Result<uint64_t> plain_length(std::string_view text) {
  if (const auto value = digits(text)) return *value;
  return broken("Content-Length is not one plain number: '" +
                base::to_valid_utf8(text.substr(0, 40)) + "'");
}

}  // namespace

std::string_view ResponseHead::field(std::string_view name) const {
  for (const HeaderField& candidate : fields) {
    if (base::iequals(candidate.name, name)) return candidate.value;
  }
  return {};
}

void ResponseHeadParser::reset() {
  head_.fields.clear();
  begin_ = scanned_ = line_ = 0;
}

Result<size_t> ResponseHeadParser::parse(std::string_view buffer) {
  for (;;) {
    if (!TRY(scan(buffer))) return size_t{0};
    TRY(read_head(buffer.substr(begin_, scanned_ - begin_)));
    if (head_.status >= 200) return scanned_;
    if (head_.status == 101) return broken("101 Switching Protocols was not asked for");
    begin_ = line_ = scanned_;
  }
}

// Looks for the end of the head, judging bytes in the order in which they came, so that the verdict
// does not depend on how they were split. On true, scanned_ is the end of the head.
Result<bool> ResponseHeadParser::scan(std::string_view buffer) {
  for (size_t i = scanned_; i < buffer.size(); ++i) {
    if (i >= kMaxHeadBytes) {
      return fail(
          Kind::kTooLarge, Side::kUpstream,
          "HTTP head is larger than the limit of " + std::to_string(kMaxHeadBytes) + " bytes");
    }
    const char c = buffer[i];
    if (i - begin_ < kVersionPrefix.size() && c != kVersionPrefix[i - begin_]) {
      return broken("the answer does not begin with HTTP/1.");
    }
    if (c == '\n') return broken("bare LF");
    if (c != '\r') {
      if (is_forbidden(c)) return broken("control byte " + std::to_string(c));
      continue;
    }
    if (i + 1 == buffer.size()) {
      scanned_ = i;
      return false;
    }
    if (buffer[i + 1] != '\n') return broken("bare CR");
    const bool empty = i == line_;
    ++i;
    line_ = i + 1;
    if (empty) {
      scanned_ = i + 1;
      return true;
    }
  }
  scanned_ = std::max(scanned_, buffer.size());
  return false;
}

Result<void> ResponseHeadParser::read_head(std::string_view text) {
  head_.fields.clear();
  size_t end = text.find("\r\n");
  TRY(read_status_line(text.substr(0, end)));
  text.remove_prefix(end + 2);
  while ((end = text.find("\r\n")) != 0) {
    TRY(read_field(text.substr(0, end)));
    text.remove_prefix(end + 2);
  }
  return judge_framing();
}

Result<void> ResponseHeadParser::read_status_line(std::string_view line) {
  // "HTTP/1.1 200 OK"; the reason, and the space before it, may be missing.
  const bool long_enough = line.size() >= 12 && line[8] == ' ';
  const auto digit = [&](size_t at) { return line[at] >= '0' && line[at] <= '9'; };
  if (!long_enough || !digit(9) || !digit(10) || !digit(11) ||
      (line.size() > 12 && line[12] != ' ')) {
    return broken("malformed status line '" + base::to_valid_utf8(line.substr(0, 80)) + "'");
  }
  if (line[7] != '0' && line[7] != '1') return broken("HTTP version is neither 1.0 nor 1.1");
  head_.version_minor = line[7] - '0';
  head_.status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
  if (head_.status < 100 || head_.status > 599) {
    return broken("status " + std::to_string(head_.status) + " is not possible");
  }
  head_.reason = line.size() > 13 ? line.substr(13) : std::string_view();
  return {};
}

Result<void> ResponseHeadParser::read_field(std::string_view line) {
  if (head_.fields.size() == kMaxHeadFields) {
    return fail(Kind::kTooLarge, Side::kUpstream,
                "HTTP head has more fields than the limit of " + std::to_string(kMaxHeadFields));
  }
  if (line.front() == ' ' || line.front() == '\t') return broken("folded line");
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_token(name)) {
    return broken("malformed field '" + base::to_valid_utf8(line.substr(0, 80)) + "'");
  }
  head_.fields.push_back({name, trim_space(line.substr(colon + 1))});
  return {};
}

Result<void> ResponseHeadParser::judge_framing() {
  head_.content_length.reset();
  head_.chunked = false;
  head_.keep_alive = head_.version_minor == 1;
  for (const HeaderField& field : head_.fields) {
    if (base::iequals(field.name, "content-length")) {
      if (head_.content_length) return broken("more than one Content-Length");
      head_.content_length = TRY(plain_length(field.value));
    } else if (base::iequals(field.name, "transfer-encoding")) {
      if (head_.chunked || !base::iequals(field.value, "chunked")) {
        return broken("Transfer-Encoding is not exactly one 'chunked'");
      }
      head_.chunked = true;
    } else if (base::iequals(field.name, "connection")) {
      if (list_has(field.value, "close")) head_.keep_alive = false;
      if (head_.version_minor == 0 && list_has(field.value, "keep-alive")) head_.keep_alive = true;
    }
  }
  if (head_.chunked && head_.content_length) {
    return broken("Transfer-Encoding together with Content-Length");
  }
  if (head_.chunked && head_.version_minor == 0) return broken("Transfer-Encoding in HTTP/1.0");
  return {};
}

BodyFraming body_framing(const ResponseHead& head, std::string_view method) {
  using Kind = BodyFraming::Kind;
  if (method == "HEAD" || head.status < 200 || head.status == 204 || head.status == 304) return {};
  if (head.chunked) return {Kind::kChunked, 0};
  if (!head.content_length) return {Kind::kUntilClose, 0};
  if (*head.content_length == 0) return {};
  return {Kind::kLength, *head.content_length};
}

Result<std::string> request_head(std::string_view method, std::string_view target,
                                 std::string_view host, std::span<const HeaderField> fields) {
  const auto refuse = [](std::string_view what, std::string_view text) {
    return fail(Kind::kUsage, Side::kClient,
                "refused to send a request whose " + std::string(what) + " is '" +
                    base::to_valid_utf8(text.substr(0, 80)) + "'",
                "it is empty or holds a byte that could end the line or the word early");
  };
  const auto one_word = [](std::string_view text) {
    return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
      return is_forbidden(c) || c == ' ' || c == '\t';
    });
  };
  if (!is_token(method)) return refuse("method", method);
  if (!one_word(target)) return refuse("target", target);
  if (!one_word(host)) return refuse("host", host);

  std::string out;
  out.reserve(256);
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(host);
  out.append("\r\n");
  for (const HeaderField& field : fields) {
    if (!is_token(field.name)) return refuse("field name", field.name);
    if (std::any_of(field.value.begin(), field.value.end(), is_forbidden)) {
      // The value may be a secret: it is not quoted.
      return fail(
          Kind::kUsage, Side::kClient,
          "refused to send field " + std::string(field.name) + ": its value holds a control byte");
    }
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  out.append("\r\n");
  return out;
}

}  // namespace anvil::wire
