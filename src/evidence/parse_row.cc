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

// What simdjson reports. Members and names that may not stand there are INCORRECT_TYPE.
using Code = error_code;
using ondemand::value;

Code read(value from, std::string& out) {
  std::string_view text;
  if (const Code code = from.get_string().get(text)) return code;
  out.assign(text);
  return SUCCESS;
}
Code read(value from, bool& out) {
  return from.get_bool().get(out);
}
// Bounded so that the difference of any two stamps or counts can be represented.
Code read(value from, int64_t& out) {
  constexpr int64_t kBound = int64_t{1} << 62;
  if (const Code code = from.get_int64().get(out)) return code;
  return out >= -kBound && out <= kBound ? SUCCESS : simdjson::NUMBER_OUT_OF_RANGE;
}
Code read(value from, uint64_t& out) {
  return from.get_uint64().get(out);
}
Code read(value from, int& out) {
  int64_t wide = 0;
  if (const Code code = from.get_int64().get(wide)) return code;
  if (wide < INT32_MIN || wide > INT32_MAX) return simdjson::NUMBER_OUT_OF_RANGE;
  out = static_cast<int>(wide);
  return SUCCESS;
}
Code read(value from, double& out) {
  return from.get_double().get(out);
}
template <class Enum>
Code read_name(value from, Enum& out, std::optional<Enum> (*from_name)(std::string_view)) {
  std::string_view text;
  if (const Code code = from.get_string().get(text)) return code;
  const std::optional<Enum> found = from_name(text);
  if (!found) return simdjson::INCORRECT_TYPE;
  out = *found;
  return SUCCESS;
}
Code read(value from, Purpose& out) {
  return read_name(from, out, purpose_from_name);
}
Code read(value from, Outcome& out) {
  return read_name(from, out, outcome_from_name);
}
Code read(value from, wire::Api& out) {
  return read_name(from, out, wire::api_from_name);
}
Code read(value from, Json& out, int depth);
Code read_object(ondemand::object from, Json& out, int depth) {
  out = Json::object();
  for (auto member : from) {
    std::string_view key;
    value content;
    if (const Code code = member.unescaped_key().get(key)) return code;
    const auto [place, fresh] = out.get_ref<Json::object_t&>().try_emplace(std::string(key));
    if (!fresh) return simdjson::INCORRECT_TYPE;  // a key that stands twice
    if (const Code code = member.value().get(content)) return code;
    if (const Code code = read(content, place->second, depth + 1)) return code;
  }
  return SUCCESS;
}
Code read_array(ondemand::array from, Json& out, int depth) {
  out = Json::array();
  for (auto element : from) {
    value content;
    if (const Code code = element.get(content)) return code;
    if (const Code code = read(content, out.emplace_back(), depth + 1)) return code;
  }
  return SUCCESS;
}
Code read_number(value from, Json& out) {
  ondemand::number number;
  if (const Code code = from.get_number().get(number)) return code;
  if (number.is_int64())
    out = number.get_int64();
  else if (number.is_uint64())
    out = number.get_uint64();
  else
    out = number.get_double();
  return SUCCESS;
}
Code read(value from, Json& out, int depth) {
  constexpr int kDeepest = 100;
  if (depth > kDeepest) return simdjson::DEPTH_ERROR;
  ondemand::json_type type;
  if (const Code code = from.type().get(type)) return code;
  switch (type) {
    case ondemand::json_type::object: {
      ondemand::object object;
      if (const Code code = from.get_object().get(object)) return code;
      return read_object(object, out, depth);
    }
    case ondemand::json_type::array: {
      ondemand::array array;
      if (const Code code = from.get_array().get(array)) return code;
      return read_array(array, out, depth);
    }
    case ondemand::json_type::number:
      return read_number(from, out);
    case ondemand::json_type::string: {
      std::string_view text;
      if (const Code code = from.get_string().get(text)) return code;
      out = text;
      return SUCCESS;
    }
    case ondemand::json_type::boolean: {
      bool flag = false;
      if (const Code code = from.get_bool().get(flag)) return code;
      out = flag;
      return SUCCESS;
    }
    case ondemand::json_type::null: {
      bool null = false;
      if (const Code code = from.is_null().get(null)) return code;
      return null ? SUCCESS : simdjson::INCORRECT_TYPE;
    }
  }
  return simdjson::INCORRECT_TYPE;
}
// What an answer is graded against is always an object.
Code read(value from, Json& out) {
  ondemand::object object;
  if (const Code code = from.get_object().get(object)) return code;
  return read_object(object, out, 0);
}
Code read(value from, Stamps& out);
Code read(value from, wire::Usage& out);
Code read(value from, wire::EngineTimings& out);
Code read(value from, wire::ReportedError& out);
Code read(value from, wire::ToolCall& out);
Code read(value from, wire::Answer& out);
template <class T>
Code read(value from, std::optional<T>& out) {
  return read(from, out.emplace());
}
template <class T>
Code read(value from, std::vector<T>& out) {
  ondemand::array array;
  if (const Code code = from.get_array().get(array)) return code;
  for (auto element : array) {
    value item;
    if (const Code code = element.get(item)) return code;
    if (const Code code = read(item, out.emplace_back())) return code;
  }
  return SUCCESS;
}

// One member of an object and how to read it.
template <class T>
struct Field {
  std::string_view name;
  Code (*read)(value, T&);
};
template <auto Member, class T>
Code into(value from, T& object) {
  return read(from, object.*Member);
}

// Reads the members of `from` into `out`; `at` becomes the position in the table of the last one.
// The table stands in the writer's order, so the search goes on where the last one ended. Keys are
// compared as written: the writer never escapes one.
template <class T, size_t N>
Code read_members(ondemand::object from, const Field<T> (&table)[N], T& out, size_t& at) {
  size_t next = 0;
  for (auto member : from) {
    ondemand::raw_json_string key;
    if (const Code code = member.key().get(key)) return code;
    value content;
    if (const Code code = member.value().get(content)) return code;
    size_t tried = 0;
    while (tried < N && !(key == table[(next + tried) % N].name)) ++tried;
    if (tried == N) return simdjson::INCORRECT_TYPE;
    at = (next + tried) % N;
    next = at + 1;
    if (const Code code = table[at].read(content, out)) return code;
  }
  return SUCCESS;
}
template <class T, size_t N>
Code read_members(value from, const Field<T> (&table)[N], T& out) {
  ondemand::object object;
  size_t at = 0;
  if (const Code code = from.get_object().get(object)) return code;
  return read_members(object, table, out, at);
}

constexpr Field<Stamps> kStamps[] = {
    {"intended", into<&Stamps::intended>},
    {"dns_begin", into<&Stamps::dns_begin>},
    {"resolved", into<&Stamps::resolved>},
    {"connect_begin", into<&Stamps::connect_begin>},
    {"connected", into<&Stamps::connected>},
    {"tls_begin", into<&Stamps::tls_begin>},
    {"tls_done", into<&Stamps::tls_done>},
    {"sent", into<&Stamps::sent>},
    {"first_byte", into<&Stamps::first_byte>},
    {"first_event", into<&Stamps::first_event>},
    {"first_output", into<&Stamps::first_output>},
    {"first_visible", into<&Stamps::first_visible>},
    {"last_output", into<&Stamps::last_output>},
    {"usage", into<&Stamps::usage>},
    {"done", into<&Stamps::done>},
    {"eof", into<&Stamps::eof>},
};
Code read(value from, Stamps& out) {
  return read_members(from, kStamps, out);
}

constexpr Field<wire::Usage> kUsage[] = {
    {"prompt", into<&wire::Usage::prompt>}, {"completion", into<&wire::Usage::completion>},
    {"cached", into<&wire::Usage::cached>}, {"reasoning", into<&wire::Usage::reasoning>},
    {"total", into<&wire::Usage::total>},
};
Code read(value from, wire::Usage& out) {
  return read_members(from, kUsage, out);
}

constexpr Field<wire::EngineTimings> kTimings[] = {
    {"cache_n", into<&wire::EngineTimings::cache_n>},
    {"prompt_n", into<&wire::EngineTimings::prompt_n>},
    {"predicted_n", into<&wire::EngineTimings::predicted_n>},
    {"draft_n", into<&wire::EngineTimings::draft_n>},
    {"draft_n_accepted", into<&wire::EngineTimings::draft_n_accepted>},
    {"prompt_ms", into<&wire::EngineTimings::prompt_ms>},
    {"predicted_ms", into<&wire::EngineTimings::predicted_ms>},
};
Code read(value from, wire::EngineTimings& out) {
  return read_members(from, kTimings, out);
}

constexpr Field<wire::ReportedError> kError[] = {
    {"message", into<&wire::ReportedError::message>},
    {"type", into<&wire::ReportedError::type>},
    {"code", into<&wire::ReportedError::code>},
};
Code read(value from, wire::ReportedError& out) {
  return read_members(from, kError, out);
}

constexpr Field<wire::ToolCall> kToolCall[] = {
    {"id", into<&wire::ToolCall::id>},
    {"name", into<&wire::ToolCall::name>},
    {"arguments", into<&wire::ToolCall::arguments>},
};
Code read(value from, wire::ToolCall& out) {
  return read_members(from, kToolCall, out);
}

constexpr Field<wire::Answer> kAnswer[] = {
    {"id", into<&wire::Answer::id>},
    {"model", into<&wire::Answer::model>},
    {"system_fingerprint", into<&wire::Answer::system_fingerprint>},
    {"reasoning", into<&wire::Answer::reasoning>},
    {"content", into<&wire::Answer::content>},
    {"refusal", into<&wire::Answer::refusal>},
    {"tool_calls", into<&wire::Answer::tool_calls>},
    {"finish", into<&wire::Answer::finish>},
    {"usage", into<&wire::Answer::usage>},
    {"timings", into<&wire::Answer::timings>},
    {"error", into<&wire::Answer::error>},
};
Code read(value from, wire::Answer& out) {
  return read_members(from, kAnswer, out);
}

// A row, and which of the members without which it is none have been met.
struct Reading {
  RequestRow& row;
  bool seq = false, purpose = false, stamps = false, outcome = false;

  bool complete() const { return seq && purpose && stamps && outcome; }
};
template <auto Member>
Code into_row(value from, Reading& reading) {
  return read(from, reading.row.*Member);
}
template <auto Member, auto Met>
Code into_row(value from, Reading& reading) {
  reading.*Met = true;
  return read(from, reading.row.*Member);
}
Code skip_seal(value from, Reading&) {
  std::string_view checked_before;
  return from.get_string().get(checked_before);
}

constexpr Field<Reading> kRow[] = {
    {"seq", into_row<&RequestRow::seq, &Reading::seq>},
    {"purpose", into_row<&RequestRow::purpose, &Reading::purpose>},
    {"lane", into_row<&RequestRow::lane>},
    {"item", into_row<&RequestRow::item>},
    {"attempt", into_row<&RequestRow::attempt>},
    {"effort", into_row<&RequestRow::effort>},
    {"api", into_row<&RequestRow::api>},
    {"stream", into_row<&RequestRow::stream>},
    {"concurrency", into_row<&RequestRow::concurrency>},
    {"cache_state", into_row<&RequestRow::cache_state>},
    {"arrival", into_row<&RequestRow::arrival>},
    {"turn", into_row<&RequestRow::turn>},
    {"stamps", into_row<&RequestRow::stamps, &Reading::stamps>},
    {"stamp_source", into_row<&RequestRow::stamp_source>},
    {"late_in_batch", into_row<&RequestRow::late_in_batch>},
    {"connection_reused", into_row<&RequestRow::connection_reused>},
    {"status", into_row<&RequestRow::status>},
    {"request_bytes", into_row<&RequestRow::request_bytes>},
    {"request_sha256", into_row<&RequestRow::request_sha256>},
    {"request_body", into_row<&RequestRow::request_body>},
    {"answer", into_row<&RequestRow::answer>},
    {"token_source", into_row<&RequestRow::token_source>},
    {"outcome", into_row<&RequestRow::outcome, &Reading::outcome>},
    {"error_kind", into_row<&RequestRow::error_kind>},
    {"error_detail", into_row<&RequestRow::error_detail>},
    {"expect", into_row<&RequestRow::expect>},
    {"row_sha", skip_seal},
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

  Reading reading{row};
  size_t at = 0;
  ondemand::document document;
  ondemand::object object;
  Code code = parser.iterate(padded.data(), size, padded.size()).get(document);
  if (!code) code = document.get_object().get(object);
  if (!code) code = read_members(object, kRow, reading, at);
  const char* rest = nullptr;
  if (!code && document.current_location().get(rest) != simdjson::OUT_OF_BOUNDS)
    code = simdjson::TAPE_ERROR;
  if (code)
    return fail(bad_row(Kind::kInvalidInput, "the row cannot be read at or after \"" +
                                                 std::string(kRow[at].name) +
                                                 "\": " + simdjson::error_message(code)));
  if (!reading.complete())
    return fail(bad_row(Kind::kInvalidInput, "the row lacks seq, purpose, stamps or outcome"));
  return row;
}

}  // namespace anvil::evidence
