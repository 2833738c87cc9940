#include "evidence/request_row.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/hash.h"
#include "base/strings.h"

namespace anvil::evidence {

namespace {
constexpr std::string_view kPurposes[] = {"check", "fingerprint", "calibrate", "warmup",
                                          "lane",  "ladder",      "probe"};
constexpr std::string_view kOutcomes[] = {
    "ok",      "connect_failed", "http_error", "error_in_stream", "truncated", "protocol_error",
    "timeout", "too_large",      "cancelled"};

// Writes the members of one JSON object, in the order of the calls.
class Line {
 public:
  explicit Line(size_t size) { out_.reserve(size); }

  void open() {
    out_ += '{';
    first_ = true;
  }
  void close() {
    out_ += '}';
    first_ = false;
  }
  void key(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
  }
  void string(std::string_view value) {
    out_ += '"';
    if (base::first_invalid_utf8(value)) {
      escape(base::to_valid_utf8(value));
    } else {
      escape(value);
    }
    out_ += '"';
  }
  template <class T>
  void number(T value) {
    char digits[40];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
    out_.append(digits, error == std::errc() ? end : digits);
  }
  void raw(std::string_view bytes) { out_ += bytes; }

  void text(std::string_view name, std::string_view value) {
    key(name);
    string(value);
  }
  void text_if(std::string_view name, std::string_view value) {
    if (!value.empty()) text(name, value);
  }
  template <class T>
  void count(std::string_view name, T value) {
    key(name);
    number(value);
  }
  template <class T>
  void count_if(std::string_view name, const std::optional<T>& value) {
    if (value) count(name, *value);
  }
  void real_if(std::string_view name, const std::optional<double>& value) {
    if (value && std::isfinite(*value)) count(name, *value);
  }
  void flag(std::string_view name, bool value) {
    key(name);
    raw(value ? "true" : "false");
  }
  std::string& bytes() { return out_; }

 private:
  void escape(std::string_view value) {
    static constexpr char kHex[] = "0123456789abcdef";
    size_t clean = 0;
    for (size_t i = 0; i < value.size(); ++i) {
      const auto c = static_cast<unsigned char>(value[i]);
      if (c >= 0x20 && c != '"' && c != '\\') continue;
      out_ += value.substr(clean, i - clean);
      clean = i + 1;
      switch (c) {
        case '"':
          out_ += "\\\"";
          break;
        case '\\':
          out_ += "\\\\";
          break;
        case '\n':
          out_ += "\\n";
          break;
        case '\r':
          out_ += "\\r";
          break;
        case '\t':
          out_ += "\\t";
          break;
        default:
          out_ += "\\u00";
          out_ += kHex[c >> 4];
          out_ += kHex[c & 15];
      }
    }
    out_ += value.substr(clean);
  }

  std::string out_;
  bool first_ = true;
};

void write_stamps(Line& line, const Stamps& stamps) {
  line.key("stamps");
  line.open();
  line.count("intended", stamps.intended);
  line.count_if("dns_begin", stamps.dns_begin);
  line.count_if("resolved", stamps.resolved);
  line.count_if("connect_begin", stamps.connect_begin);
  line.count_if("connected", stamps.connected);
  line.count_if("tls_begin", stamps.tls_begin);
  line.count_if("tls_done", stamps.tls_done);
  line.count_if("sent", stamps.sent);
  line.count_if("first_byte", stamps.first_byte);
  line.count_if("first_event", stamps.first_event);
  line.count_if("first_output", stamps.first_output);
  line.count_if("first_visible", stamps.first_visible);
  line.count_if("last_output", stamps.last_output);
  line.count_if("usage", stamps.usage);
  line.count_if("done", stamps.done);
  line.count_if("eof", stamps.eof);
  line.close();
}

void write_chunks(Line& line, const std::vector<Chunk>& chunks) {
  line.key("chunks");
  line.raw("[");
  for (size_t i = 0; i < chunks.size(); ++i) {
    const Chunk& chunk = chunks[i];
    line.raw(i ? ",[" : "[");
    line.number(chunk.since_sent);
    const char kind[] = {',', '"', chunk.kind, '"', ','};
    line.raw({kind, sizeof kind});
    line.number(chunk.bytes);
    line.raw(",");
    if (chunk.tokens)
      line.number(*chunk.tokens);
    else
      line.raw("null");
    line.raw("]");
  }
  line.raw("]");
}

void write_answer(Line& line, const wire::Answer& answer) {
  line.key("answer");
  line.open();
  line.text_if("id", answer.id);
  line.text_if("model", answer.model);
  line.text_if("system_fingerprint", answer.system_fingerprint);
  line.text_if("reasoning", answer.reasoning);
  line.text_if("content", answer.content);
  line.text_if("refusal", answer.refusal);
  if (!answer.tool_calls.empty()) {
    line.key("tool_calls");
    for (size_t i = 0; i < answer.tool_calls.size(); ++i) {
      line.raw(i ? "," : "[");
      line.open();
      line.text("id", answer.tool_calls[i].id);
      line.text("name", answer.tool_calls[i].name);
      line.text("arguments", answer.tool_calls[i].arguments);
      line.close();
    }
    line.raw("]");
  }
  line.text_if("finish", answer.finish);
  if (!answer.usage.empty()) {
    line.key("usage");
    line.open();
    line.count_if("prompt", answer.usage.prompt);
    line.count_if("completion", answer.usage.completion);
    line.count_if("cached", answer.usage.cached);
    line.count_if("reasoning", answer.usage.reasoning);
    line.count_if("total", answer.usage.total);
    line.close();
  }
  if (answer.timings) {
    const wire::EngineTimings& timings = *answer.timings;
    line.key("timings");
    line.open();
    line.count_if("cache_n", timings.cache_n);
    line.count_if("prompt_n", timings.prompt_n);
    line.count_if("predicted_n", timings.predicted_n);
    line.count_if("draft_n", timings.draft_n);
    line.count_if("draft_n_accepted", timings.draft_n_accepted);
    line.real_if("prompt_ms", timings.prompt_ms);
    line.real_if("predicted_ms", timings.predicted_ms);
    line.close();
  }
  if (answer.error) {
    line.key("error");
    line.open();
    line.text("message", answer.error->message);
    line.text("type", answer.error->type);
    line.text("code", answer.error->code);
    line.close();
  }
  line.close();
}
}  // namespace

std::string_view name(Purpose purpose) {
  return kPurposes[static_cast<size_t>(purpose)];
}

std::string_view name(Outcome outcome) {
  return kOutcomes[static_cast<size_t>(outcome)];
}

std::optional<Purpose> purpose_from_name(std::string_view text) {
  for (size_t i = 0; i < std::size(kPurposes); ++i)
    if (kPurposes[i] == text) return static_cast<Purpose>(i);
  return std::nullopt;
}

std::optional<Outcome> outcome_from_name(std::string_view text) {
  for (size_t i = 0; i < std::size(kOutcomes); ++i)
    if (kOutcomes[i] == text) return static_cast<Outcome>(i);
  return std::nullopt;
}

std::string to_line(const RequestRow& row) {
  Line line(1024 + row.chunks.size() * 24 + row.request_body.size() + row.answer.content.size());
  line.open();
  line.count("seq", row.seq);
  line.text("purpose", name(row.purpose));
  line.text("lane", row.lane);
  line.text_if("item", row.item);
  line.count("attempt", row.attempt);
  line.text_if("effort", row.effort);
  line.text("api", wire::name(row.api));
  line.flag("stream", row.stream);
  line.count("concurrency", row.concurrency);
  line.text_if("cache_state", row.cache_state);
  line.text_if("arrival", row.arrival);
  line.count_if("turn", row.turn);
  write_stamps(line, row.stamps);
  line.text_if("stamp_source", row.stamp_source);
  line.count_if("late_in_batch", row.late_in_batch);
  line.flag("connection_reused", row.connection_reused);
  line.count("status", row.status);
  line.count("request_bytes", row.request_bytes);
  line.text_if("request_sha256", row.request_sha256);
  line.text_if("request_body", row.request_body);
  write_chunks(line, row.chunks);
  write_answer(line, row.answer);
  line.text("token_source", row.token_source);
  line.text("outcome", name(row.outcome));
  line.text_if("error_kind", row.error_kind);
  line.text_if("error_detail", row.error_detail);
  if (!row.expect.is_null()) {
    line.key("expect");
    line.raw(base::canonical(row.expect));
  }
  std::string& bytes = line.bytes();
  const std::string digest = base::sha256(bytes);
  bytes += ",\"row_sha\":\"";
  bytes.append(digest, 0, 16);
  bytes += "\"}\n";
  return std::move(bytes);
}

}  // namespace anvil::evidence
