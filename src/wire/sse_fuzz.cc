#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "wire/sse.h"

namespace {

constexpr size_t kLimit = 200;

std::string split(std::string_view text, size_t step) {
  anvil::wire::SseSplitter splitter(kLimit);
  std::string out;
  for (size_t at = 0; at < text.size(); at += step) {
    const std::string piece(text.substr(at, step));
    const auto fed =
        splitter.feed(piece, [&](const anvil::wire::SseEvent& event) -> anvil::Result<void> {
          if (event.data.size() > kLimit) std::abort();
          out.append(event.event).append("|").append(event.data).append("|").append(event.id);
          out.append(event.retry_ms ? std::to_string(*event.retry_ms) : "-").append("\n\n");
          return {};
        });
    if (!fed) return out + fed.error().detail;
  }
  return out;
}

// The WHATWG rules, written down as simply as possible: split into lines, then into events.
std::string reference(std::string_view text) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::vector<std::string> lines(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' || text[i] == '\n') {
      if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
      lines.emplace_back();
    } else {
      lines.back() += text[i];
    }
  }
  lines.pop_back();
  std::string out, data, event, id, retry = "-";
  for (const std::string& line : lines) {
    if (line.empty()) {
      if (!data.empty()) {
        data.pop_back();
        out.append(event).append("|").append(data).append("|").append(id).append(retry);
        out.append("\n\n");
        retry = "-";
      }
      data.clear();
      event.clear();
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == 0) continue;
    const std::string field = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (!value.empty() && value[0] == ' ') value.erase(0, 1);
    if (field == "data") data += value + "\n";
    if (field == "event") event = value;
    if (field == "id" && value.find('\0') == std::string::npos) id = value;
    if (field == "retry" && !value.empty() && value.size() <= 18 &&
        value.find_first_not_of("0123456789") == std::string::npos) {
      retry = std::to_string(std::stoull(value));
    }
  }
  return out;
}

}  // namespace

// Any bytes give the same events however they are split, and those of the reference.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string whole = split(text, size + 1);
  if (split(text, 1) != whole || split(text, 3) != whole) std::abort();
  if (whole.find("limit event_bytes") == std::string::npos && whole != reference(text)) {
    std::abort();
  }
  return 0;
}
