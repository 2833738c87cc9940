#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/stream_decoder.h"

using namespace anvil::wire;

// Lines are events; the first byte picks the surface. Whatever comes, what the deltas say they
// added is what the answer holds.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Api api = static_cast<Api>(data[0] % 3);
  std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  (void)parse_answer(api, text);
  (void)parse_error_body(text);

  StreamDecoder decoder(api);
  uint64_t content = 0, reasoning = 0, tools = 0;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto delta = decoder.on_event(line.starts_with("{\"error") ? "error" : "", line);
    if (!delta) return 0;  // a broken event may have added a part of itself
    content += delta->content_bytes;
    reasoning += delta->reasoning_bytes;
    tools += delta->tool_bytes;
  }
  const Answer& answer = decoder.answer();
  uint64_t tool_bytes = 0;
  for (const ToolCall& call : answer.tool_calls) {
    tool_bytes += call.name.size() + call.arguments.size();
  }
  if (content != answer.content.size() || reasoning != answer.reasoning.size() ||
      tools != tool_bytes) {
    std::abort();
  }
  return 0;
}
