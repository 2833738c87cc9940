#include "wire/request_head.h"

#include "base/strings.h"
#include "wire/head_text.h"

namespace anvil::wire {

namespace {
tl::unexpected<Error> broken(std::string detail) {
  return fail(Kind::kProtocol, Side::kClient, "HTTP request head: " + std::move(detail));
}
tl::unexpected<Error> too_large(std::string detail) {
  return fail(Kind::kTooLarge, Side::kClient, "HTTP request head " + std::move(detail));
}
}  // namespace

std::string_view RequestHead::field(std::string_view name) const {
  for (const HeaderField& candidate : fields)
    if (base::iequals(candidate.name, name)) return candidate.value;
  return {};
}

void RequestHeadParser::reset() {
  head_.fields.clear();
  scanned_ = line_ = begin_ = 0;
}

// Judges bytes in the order in which they came, so that the verdict does not depend on how they
// were split.
Result<size_t> RequestHeadParser::parse(std::string_view buffer) {
  for (size_t i = scanned_; i < buffer.size(); ++i) {
    if (i >= kMaxHeadBytes)
      return too_large("is larger than the limit of " + std::to_string(kMaxHeadBytes) + " bytes");
    const char c = buffer[i];
    if (c == '\n') return broken("bare LF");
    if (c != '\r') {
      if (is_forbidden(c)) return broken("control byte " + std::to_string(c));
      continue;
    }
    if (i + 1 == buffer.size()) {
      scanned_ = i;
      return size_t{0};
    }
    if (buffer[i + 1] != '\n') return broken("bare CR");
    const bool empty = i == line_;
    ++i;
    line_ = i + 1;
    if (!empty) continue;
    if (begin_ == i - 1) {
      begin_ = line_;
      continue;
    }
    TRY(read_head(buffer.substr(begin_, line_ - begin_)));
    return line_;
  }
  scanned_ = buffer.size();
  return size_t{0};
}

Result<void> RequestHeadParser::read_head(std::string_view text) {
  head_.fields.clear();
  size_t end = text.find("\r\n");
  TRY(read_request_line(text.substr(0, end)));
  text.remove_prefix(end + 2);
  while ((end = text.find("\r\n")) != 0) {
    TRY(read_field(text.substr(0, end)));
    text.remove_prefix(end + 2);
  }
  return judge();
}

Result<void> RequestHeadParser::read_request_line(std::string_view line) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last)
    return broken("malformed request line '" + base::to_valid_utf8(line.substr(0, 80)) + "'");
  head_.method = line.substr(0, first);
  head_.target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!is_token(head_.method)) return broken("the method is no token");
  if (head_.target.empty() || head_.target.find_first_of(" \t") != std::string_view::npos)
    return broken("the target is empty or holds a blank");
  if (version != "HTTP/1.1" && version != "HTTP/1.0")
    return broken("HTTP version is neither 1.0 nor 1.1");
  head_.version_minor = version.back() - '0';
  return {};
}

Result<void> RequestHeadParser::read_field(std::string_view line) {
  if (head_.fields.size() == kMaxHeadFields)
    return too_large("has more fields than the limit of " + std::to_string(kMaxHeadFields));
  const size_t colon = line.find(':');
  const std::string_view name = line.substr(0, colon);
  if (colon == std::string_view::npos || !is_token(name))
    return broken("malformed field '" + base::to_valid_utf8(line.substr(0, 80)) + "'");
  head_.fields.push_back({name, trim_space(line.substr(colon + 1))});
  return {};
}

Result<void> RequestHeadParser::judge() {
  head_.content_length.reset();
  head_.chunked = head_.expects_continue = false;
  head_.keep_alive = head_.version_minor == 1;
  int hosts = 0;
  for (const HeaderField& field : head_.fields) {
    if (base::iequals(field.name, "content-length")) {
      if (head_.content_length) return broken("more than one Content-Length");
      head_.content_length = digits(field.value);
      if (!head_.content_length) return broken("Content-Length is not one plain number");
    } else if (base::iequals(field.name, "transfer-encoding")) {
      if (head_.chunked || !base::iequals(field.value, "chunked"))
        return broken("Transfer-Encoding is not exactly one 'chunked'");
      head_.chunked = true;
    } else if (base::iequals(field.name, "connection")) {
      if (list_has(field.value, "close")) head_.keep_alive = false;
      if (head_.version_minor == 0 && list_has(field.value, "keep-alive")) head_.keep_alive = true;
    } else if (base::iequals(field.name, "expect")) {
      head_.expects_continue = base::iequals(field.value, "100-continue");
    } else if (base::iequals(field.name, "host")) {
      ++hosts;
    }
  }
  if (head_.chunked && head_.content_length)
    return broken("Transfer-Encoding together with Content-Length");
  if (head_.chunked && head_.version_minor == 0) return broken("Transfer-Encoding in HTTP/1.0");
  if (hosts > 1 || (hosts == 0 && head_.version_minor == 1))
    return broken(hosts ? "more than one Host" : "no Host");
  return {};
}

}  // namespace anvil::wire
