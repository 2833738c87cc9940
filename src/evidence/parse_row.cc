#include <simdjson.h>

#include <cstring>

#include "base/hash.h"
#include "evidence/request_row.h"

namespace anvil::evidence {

namespace {
namespace ondemand = simdjson::ondemand;
using simdjson::error_code;
using simdjson::SUCCESS;

constexpr std::string_view kChunksKey = ",\"chunks\":";
constexpr std::string_view kSealBegin = ",\"row_sha\":\"";
constexpr size_t kSealDigits = 16;
constexpr size_t kSealSize =
    kSealBegin.size() + kSealDigits + 2;  // with the closing quote and brace

// What simdjson reports, carried out of nested visitors as its own error code; members that may not
// stand there are reported as INCORRECT_TYPE.
using Code = error_code;

Code read(ondemand::value value, std::string& out) {
  std::string_view text;
  if (const Code code = value.get_string().get(text)) return code;
  out.assign(text);
  return SUCCESS;
}
Code read(ondemand::value value, bool& out) {
  return value.get_bool().get(out);
}
// Bounded so that the difference of any two stamps or counts can be represented.
Code read(ondemand::value value, int64_t& out) {
  constexpr int64_t kBound = int64_t{1} << 62;
  if (const Code code = value.get_int64().get(out)) return code;
  return out >= -kBound && out <= kBound ? SUCCESS : simdjson::NUMBER_OUT_OF_RANGE;
}
Code read(ondemand::value value, uint64_t& out) {
  return value.get_uint64().get(out);
}
Code read(ondemand::value value, int& out) {
  int64_t wide = 0;
  if (const Code code = value.get_int64().get(wide)) return code;
  if (wide < INT32_MIN || wide > INT32_MAX) return simdjson::NUMBER_OUT_OF_RANGE;
  out = static_cast<int>(wide);
  return SUCCESS;
}
Code read(ondemand::value value, std::optional<int64_t>& out) {
  return read(value, out.emplace());
}
Code read(ondemand::value value, std::optional<double>& out) {
  return value.get_double().get(out.emplace());
}

// Calls visit(key, value) for each member. Keys are compared as written: the writer never escapes
// one.
template <class Visit>
Code members(ondemand::object object, Visit visit) {
  for (auto field : object) {
    ondemand::raw_json_string raw;
    if (const Code code = field.key().get(raw)) return code;
    ondemand::value value;
    if (const Code code = field.value().get(value)) return code;
    if (const Code code = visit(raw, value)) return code;
  }
  return SUCCESS;
}

template <class Visit>
Code members(ondemand::value value, Visit visit) {
  ondemand::object object;
  if (const Code code = value.get_object().get(object)) return code;
  return members(object, visit);
}

Code read_stamps(ondemand::value value, Stamps& stamps) {
  return members(value, [&](ondemand::raw_json_string key, ondemand::value stamp) -> Code {
    if (key == "intended") return read(stamp, stamps.intended);
    if (key == "connect_begin") return read(stamp, stamps.connect_begin);
    if (key == "connected") return read(stamp, stamps.connected);
    if (key == "sent") return read(stamp, stamps.sent);
    if (key == "first_byte") return read(stamp, stamps.first_byte);
    if (key == "first_event") return read(stamp, stamps.first_event);
    if (key == "first_output") return read(stamp, stamps.first_output);
    if (key == "first_visible") return read(stamp, stamps.first_visible);
    if (key == "last_output") return read(stamp, stamps.last_output);
    if (key == "usage") return read(stamp, stamps.usage);
    if (key == "done") return read(stamp, stamps.done);
    if (key == "eof") return read(stamp, stamps.eof);
    return simdjson::INCORRECT_TYPE;
  });
}

Code read_tool_calls(ondemand::value value, std::vector<wire::ToolCall>& calls) {
  ondemand::array array;
  if (const Code code = value.get_array().get(array)) return code;
  for (auto element : array) {
    ondemand::value item;
    if (const Code code = element.get(item)) return code;
    wire::ToolCall& call = calls.emplace_back();
    const Code code =
        members(item, [&](ondemand::raw_json_string key, ondemand::value part) -> Code {
          if (key == "id") return read(part, call.id);
          if (key == "name") return read(part, call.name);
          if (key == "arguments") return read(part, call.arguments);
          return simdjson::INCORRECT_TYPE;
        });
    if (code) return code;
  }
  return SUCCESS;
}

Code read_usage(ondemand::value value, wire::Usage& usage) {
  return members(value, [&](ondemand::raw_json_string key, ondemand::value part) -> Code {
    if (key == "prompt") return read(part, usage.prompt);
    if (key == "completion") return read(part, usage.completion);
    if (key == "cached") return read(part, usage.cached);
    if (key == "reasoning") return read(part, usage.reasoning);
    if (key == "total") return read(part, usage.total);
    return simdjson::INCORRECT_TYPE;
  });
}

Code read_timings(ondemand::value value, wire::EngineTimings& timings) {
  return members(value, [&](ondemand::raw_json_string key, ondemand::value part) -> Code {
    if (key == "cache_n") return read(part, timings.cache_n);
    if (key == "prompt_n") return read(part, timings.prompt_n);
    if (key == "predicted_n") return read(part, timings.predicted_n);
    if (key == "draft_n") return read(part, timings.draft_n);
    if (key == "draft_n_accepted") return read(part, timings.draft_n_accepted);
    if (key == "prompt_ms") return read(part, timings.prompt_ms);
    if (key == "predicted_ms") return read(part, timings.predicted_ms);
    return simdjson::INCORRECT_TYPE;
  });
}

Code read_answer(ondemand::value value, wire::Answer& answer) {
  return members(value, [&](ondemand::raw_json_string key, ondemand::value part) -> Code {
    if (key == "id") return read(part, answer.id);
    if (key == "model") return read(part, answer.model);
    if (key == "content") return read(part, answer.content);
    if (key == "reasoning") return read(part, answer.reasoning);
    if (key == "finish") return read(part, answer.finish);
    if (key == "usage") return read_usage(part, answer.usage);
    if (key == "timings") return read_timings(part, answer.timings.emplace());
    if (key == "system_fingerprint") return read(part, answer.system_fingerprint);
    if (key == "refusal") return read(part, answer.refusal);
    if (key == "tool_calls") return read_tool_calls(part, answer.tool_calls);
    if (key == "error") {
      wire::ReportedError& error = answer.error.emplace();
      return members(part, [&](ondemand::raw_json_string name, ondemand::value text) -> Code {
        if (name == "message") return read(text, error.message);
        if (name == "type") return read(text, error.type);
        if (name == "code") return read(text, error.code);
        return simdjson::INCORRECT_TYPE;
      });
    }
    return simdjson::INCORRECT_TYPE;
  });
}

template <class Enum>
Code read_name(ondemand::value value, Enum& out,
               std::optional<Enum> (*from_name)(std::string_view)) {
  std::string_view text;
  if (const Code code = value.get_string().get(text)) return code;
  const std::optional<Enum> found = from_name(text);
  if (!found) return simdjson::INCORRECT_TYPE;
  out = *found;
  return SUCCESS;
}

// Reads one row; remembers the member that it is at, for the error.
class RowParser {
 public:
  Code parse(ondemand::document& document, RequestRow& row) {
    ondemand::object object;
    if (const Code code = document.get_object().get(object)) return code;
    return members(object, [&](ondemand::raw_json_string key, ondemand::value value) -> Code {
      at_ = key;
      if (key == "seq" || key == "purpose" || key == "stamps" || key == "outcome") ++mandatory_;
      return one(key, value, row);
    });
  }
  bool complete() const { return mandatory_ == 4; }
  std::string at() const {
    if (!at_.raw()) return {};
    std::string name;
    for (const char* c = at_.raw(); *c != '"' && *c != '\0' && name.size() < 40; ++c) name += *c;
    return name;
  }

 private:
  static Code one(ondemand::raw_json_string key, ondemand::value value, RequestRow& row) {
    if (key == "seq") return read(value, row.seq);
    if (key == "purpose") return read_name(value, row.purpose, purpose_from_name);
    if (key == "lane") return read(value, row.lane);
    if (key == "item") return read(value, row.item);
    if (key == "attempt") return read(value, row.attempt);
    if (key == "effort") return read(value, row.effort);
    if (key == "api") return read_name(value, row.api, wire::api_from_name);
    if (key == "stream") return read(value, row.stream);
    if (key == "concurrency") return read(value, row.concurrency);
    if (key == "cache_state") return read(value, row.cache_state);
    if (key == "stamps") return read_stamps(value, row.stamps);
    if (key == "connection_reused") return read(value, row.connection_reused);
    if (key == "status") return read(value, row.status);
    if (key == "request_bytes") return read(value, row.request_bytes);
    if (key == "request_sha256") return read(value, row.request_sha256);
    if (key == "request_body") return read(value, row.request_body);
    if (key == "answer") return read_answer(value, row.answer);
    if (key == "token_source") return read(value, row.token_source);
    if (key == "outcome") return read_name(value, row.outcome, outcome_from_name);
    if (key == "error_kind") return read(value, row.error_kind);
    if (key == "error_detail") return read(value, row.error_detail);
    if (key == "expect") return read_expect(value, row.expect);
    if (key == "row_sha") {
      std::string_view ignored;
      return value.get_string().get(ignored);
    }
    return simdjson::INCORRECT_TYPE;
  }

  static Code read_expect(ondemand::value value, Json& expect) {
    std::string_view raw;
    if (value.type() == ondemand::json_type::object) {
      ondemand::object object;
      if (const Code code = value.get_object().get(object)) return code;
      if (const Code code = object.raw_json().get(raw)) return code;
    } else {
      return simdjson::INCORRECT_TYPE;
    }
    auto parsed = base::parse_json(raw, "expect");
    if (!parsed) return simdjson::TAPE_ERROR;
    expect = std::move(*parsed);
    return SUCCESS;
  }

  ondemand::raw_json_string at_;
  int mandatory_ = 0;
};

// Reads `[[since_sent,"k",bytes,tokens],...]` as the writer spells it: no white space, tokens a
// number or null.
class ChunkScanner {
 public:
  explicit ChunkScanner(std::string_view text)
      : at_(text.data()), end_(text.data() + text.size()) {}

  // The number of bytes that the array takes, or nothing if it is not one.
  std::optional<size_t> all(std::vector<Chunk>& chunks) {
    const char* const begin = at_;
    if (!take('[')) return std::nullopt;
    if (!take(']')) {
      chunks.reserve(64);
      do {
        if (!one(chunks.emplace_back())) return std::nullopt;
      } while (take(','));
      if (!take(']')) return std::nullopt;
    }
    return static_cast<size_t>(at_ - begin);
  }

 private:
  static constexpr int kMostDigits = 18;

  bool one(Chunk& chunk) {
    int64_t bytes = 0;
    if (!take('[') || !number(chunk.since_sent) || !take(',') || !take('"') || at_ == end_)
      return false;
    chunk.kind = *at_++;
    if (chunk.kind != 'r' && chunk.kind != 'c' && chunk.kind != 't' && chunk.kind != 'm')
      return false;
    if (!take('"') || !take(',') || !number(bytes) || bytes < 0 || bytes > UINT32_MAX || !take(','))
      return false;
    chunk.bytes = static_cast<uint32_t>(bytes);
    if (at_ != end_ && *at_ == 'n')
      return take('n') && take('u') && take('l') && take('l') && take(']');
    return number(chunk.tokens.emplace()) && take(']');
  }

  bool take(char expected) {
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  // A JSON integer of at most 18 digits.
  bool number(int64_t& out) {
    const bool negative = take('-');
    const char* const first = at_;
    int64_t value = 0;
    while (at_ != end_ && *at_ >= '0' && *at_ <= '9') {
      if (at_ - first == kMostDigits) return false;
      value = value * 10 + (*at_++ - '0');
    }
    if (at_ == first || (*first == '0' && (negative || at_ - first > 1))) return false;
    out = negative ? -value : value;
    return true;
  }

  const char* at_;
  const char* end_;
};

Error bad_row(Kind kind, std::string detail) {
  return Error(kind, Side::kClient, std::move(detail));
}
}  // namespace

Result<RequestRow> parse_row(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.size() < kSealSize || !line.ends_with("\"}") ||
      line.substr(line.size() - kSealSize, kSealBegin.size()) != kSealBegin)
    return fail(bad_row(Kind::kTampered, "the row does not end with its row_sha"));
  const std::string_view recorded = line.substr(line.size() - 2 - kSealDigits, kSealDigits);
  const std::string computed = base::sha256(line.substr(0, line.size() - kSealSize));
  if (std::string_view(computed).substr(0, kSealDigits) != recorded)
    return fail(bad_row(Kind::kTampered, "row_sha is " + std::string(recorded) +
                                             ", the row hashes to " +
                                             computed.substr(0, kSealDigits)));

  // Most of a long row is its chunks, and their form is fixed: they are scanned by hand, and
  // simdjson sees the row without them. Their key cannot stand inside a string, where its quotes
  // would be escaped.
  RequestRow row;
  const size_t key = line.find(kChunksKey);
  if (key == std::string_view::npos)
    return fail(bad_row(Kind::kInvalidInput, "the row has no chunks"));
  const size_t array = key + kChunksKey.size();
  const auto taken = ChunkScanner(line.substr(array)).all(row.chunks);
  if (!taken) return fail(bad_row(Kind::kInvalidInput, "the chunks of the row cannot be read"));
  const std::string_view before = line.substr(0, key);
  const std::string_view after = line.substr(array + *taken);

  thread_local ondemand::parser parser;
  thread_local std::vector<char> padded;
  const size_t size = before.size() + after.size();
  if (padded.size() < size + simdjson::SIMDJSON_PADDING)
    padded.resize(size * 2 + simdjson::SIMDJSON_PADDING);
  std::memcpy(padded.data(), before.data(), before.size());
  std::memcpy(padded.data() + before.size(), after.data(), after.size());
  std::memset(padded.data() + size, 0, simdjson::SIMDJSON_PADDING);

  RowParser reader;
  ondemand::document document;
  Code code = parser.iterate(padded.data(), size, padded.size()).get(document);
  if (!code) code = reader.parse(document, row);
  const char* rest = nullptr;
  if (!code && document.current_location().get(rest) != simdjson::OUT_OF_BOUNDS)
    code = simdjson::TAPE_ERROR;
  if (code)
    return fail(bad_row(Kind::kInvalidInput, "the row cannot be read at \"" + reader.at() +
                                                 "\": " + simdjson::error_message(code)));
  if (!reader.complete())
    return fail(bad_row(Kind::kInvalidInput, "the row lacks seq, purpose, stamps or outcome"));
  return row;
}

}  // namespace anvil::evidence
