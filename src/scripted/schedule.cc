#include "scripted/schedule.h"

#include <cmath>

#include "base/hash.h"
#include "recipe/judge.h"
#include "recipe/toml_document.h"

namespace anvil::scripted {

namespace {

using recipe::Judge;
using recipe::Loaded;
using recipe::TomlDocument;

const Json kNoTable = Json::object();

const Json& member(const Json& table, const char* key) {
  const auto found = table.find(key);
  return found != table.end() ? *found : kNoTable;
}

double number(const Json& table, const char* key, double fallback) {
  const Json& value = member(table, key);
  return value.is_number() ? value.get<double>() : fallback;
}

template <class T>
std::vector<T> list(const Json& table, const char* key) {
  std::vector<T> out;
  const Json& values = member(table, key);
  if (!values.is_array()) return out;
  for (const Json& value : values)
    if (value.is_number()) out.push_back(value.get<T>());
  return out;
}

std::string at(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

void judge_times(const Json& stream, const std::string& path, Judge& judge) {
  const auto times = list<double>(stream, "times_ms");
  for (size_t i = 1; i < times.size(); ++i)
    if (times[i] < times[i - 1])
      judge.error(at(path + ".times_ms", i), "comes before the event in front of it",
                  "list the times in rising order");
  const double first = times.empty() ? number(stream, "first_ms", 0) : times.front();
  const double role = number(stream, "role_ms", 0);
  const bool has_role = recipe::text(stream, "role", "empty") != "none";
  if (has_role && role > first)
    judge.error(path + ".role_ms", "comes after the first output event",
                "wanted at most " + std::to_string(first) + ", or role = \"none\"");
  if (const double head = number(stream, "headers_ms", 0); head > (has_role ? role : first))
    judge.error(path + ".headers_ms", "the head comes after the first event",
                "wanted at most the time of the first event: raise role_ms or first_ms too");
  const double finish = number(stream, "finish_after_ms", 0);
  const double usage = number(stream, "usage_after_ms", finish);
  if (usage < finish)
    judge.error(path + ".usage_after_ms", "the usage comes before the finish reason",
                "wanted at least finish_after_ms");
  if (number(stream, "done_after_ms", usage) < usage)
    judge.error(path + ".done_after_ms", "the terminal marker comes before the usage",
                "wanted at least usage_after_ms");
}

void judge_stream(const Json& stream, const std::string& path, Judge& judge) {
  judge_times(stream, path, judge);
  const bool written = member(stream, "text").is_string();
  if (written && member(stream, "token_text").is_string())
    judge.error(path + ".token_text", "the stream has a text of its own",
                "remove text or token_text");
  if (written && member(stream, "content_tokens").is_number())
    judge.error(path + ".content_tokens", "the words of text are counted",
                "remove content_tokens or text");
  if (member(stream, "token_text").is_string() && recipe::text(stream, "token_text").empty())
    judge.error(path + ".token_text", "a token without text is no output", "give it a text");
  if (const auto chunks = member(stream, "chunk_tokens"); chunks.is_array() && chunks.empty())
    judge.error(path + ".chunk_tokens", "is empty", "wanted at least one number");
  const auto pieces = recipe::integer(stream, "tool_pieces", 2);
  const auto arguments = recipe::text(stream, "tool_arguments", "{\"value\":1}");
  if (recipe::integer(stream, "tool_calls", 0) > 0 &&
      pieces > static_cast<int64_t>(arguments.size()))
    judge.error(
        path + ".tool_pieces",
        "more pieces than the " + std::to_string(arguments.size()) + " bytes of tool_arguments",
        "wanted at most one piece for each byte");
  const auto splits = list<int64_t>(stream, "split_at");
  for (size_t i = 1; i < splits.size(); ++i)
    if (splits[i] <= splits[i - 1])
      judge.error(at(path + ".split_at", i), "is not above the offset before it",
                  "list the offsets in rising order");
  const bool split = !splits.empty() || recipe::integer(stream, "split_every", 0) > 0;
  const int held = (recipe::integer(stream, "coalesce", 1) > 1) +
                   (recipe::integer(stream, "buffer_bytes", 0) > 0);
  if (!splits.empty() && recipe::integer(stream, "split_every", 0) > 0)
    judge.error(path + ".split_every", "the events are cut at split_at already",
                "remove one of the two");
  if (split + held > 1)
    judge.error(path + (split ? ".split_at" : ".coalesce"),
                "events can be cut, gathered or buffered, one of the three",
                "keep one of split_at/split_every, coalesce and buffer_bytes");
}

void judge_schedule(Judge& judge, const TomlDocument& document) {
  judge.unique("stream", "name");
  judge.each("stream", [&](const Json& stream, const std::string& path) {
    judge_stream(stream, path, judge);
  });
  const Json& streams = member(document.value, "stream");
  if (!streams.is_array() || streams.empty())
    judge.error("stream", "no stream: there is nothing to answer", "add at least one [[stream]]");
  if (recipe::text(document.value, "choose") == "mix") {
    double sum = 0;
    judge.each("stream",
               [&](const Json& stream, const std::string&) { sum += number(stream, "weight", 1); });
    if (sum <= 0)
      judge.error("choose", "every weight is 0", "give at least one stream a weight above 0");
  }
  const Json& engine = member(document.value, "engine");
  const auto acceptance = list<double>(engine, "acceptance");
  const auto drafts = recipe::integer(engine, "draft_tokens", 0);
  if (static_cast<int64_t>(acceptance.size()) != drafts)
    judge.error("engine.acceptance",
                "has " + std::to_string(acceptance.size()) + " numbers for " +
                    std::to_string(drafts) + " drafted tokens",
                "wanted one for each of draft_tokens");
  for (size_t i = 1; i < acceptance.size(); ++i)
    if (acceptance[i] > acceptance[i - 1])
      judge.error(at("engine.acceptance", i),
                  "is above the position before it, which must be accepted first",
                  "wanted numbers that never rise");
}

template <class E>
E choice(const Json& table, const char* key,
         std::initializer_list<std::pair<std::string_view, E>> names) {
  const std::string text = recipe::text(table, key);
  for (const auto& [name, value] : names)
    if (name == text) return value;
  return names.begin()->second;
}

Nanos millis(double value) {
  return std::llround(value * 1e6);
}

std::optional<std::string> optional_text(const Json& table, const char* key) {
  const Json& value = member(table, key);
  return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
}

Fault read_fault(const Json& table) {
  using enum FaultKind;
  Fault fault;
  fault.kind = choice<FaultKind>(table, "kind",
                                 {{"none", kNone},
                                  {"status", kStatus},
                                  {"event", kEvent},
                                  {"reset", kReset},
                                  {"close", kClose},
                                  {"end", kEnd},
                                  {"stall", kStall},
                                  {"garbage", kGarbage}});
  fault.after_events = recipe::integer(table, "after_events", 0);
  fault.first_requests = recipe::integer(table, "first_requests", 0);
  fault.status = static_cast<int>(recipe::integer(table, "status", 500));
  if (const Json& retry = member(table, "retry_after_s"); retry.is_number_integer())
    fault.retry_after_s = retry.get<int64_t>();
  fault.message = recipe::text(table, "message");
  fault.type = recipe::text(table, "type");
  fault.done = recipe::flag(table, "done", true);
  return fault;
}

// `table` has every default filled in.
Stream read_stream(const Json& table) {
  const auto ms = [&](const char* key) { return millis(number(table, key, 0)); };
  const auto whole = [&](const char* key) { return recipe::integer(table, key, 0); };
  Stream stream;
  stream.name = recipe::text(table, "name");
  stream.weight = number(table, "weight", 1);
  stream.role = choice<Role>(
      table, "role", {{"empty", Role::kEmpty}, {"null", Role::kNull}, {"none", Role::kNone}});
  stream.role_at = ms("role_ms");
  stream.reasoning_tokens = whole("reasoning_tokens");
  stream.content_tokens = whole("content_tokens");
  stream.text = optional_text(table, "text");
  stream.token_text = optional_text(table, "token_text");
  stream.tool_calls = whole("tool_calls");
  stream.tool_name = recipe::text(table, "tool_name");
  stream.tool_arguments = recipe::text(table, "tool_arguments");
  stream.tool_pieces = whole("tool_pieces");
  stream.chunk_tokens = list<int64_t>(table, "chunk_tokens");
  stream.honours_max_tokens = recipe::flag(table, "honours_max_tokens", true);
  stream.honours_ignore_eos = recipe::flag(table, "honours_ignore_eos", true);
  stream.finish = recipe::text(table, "finish");
  stream.finish_own = recipe::text(table, "finish_delta") == "own";

  stream.headers_at = ms("headers_ms");
  for (const double time : list<double>(table, "times_ms")) stream.times.push_back(millis(time));
  stream.first_at = ms("first_ms");
  stream.gap = ms("gap_ms");
  stream.gaps = choice<Gaps>(
      table, "gaps",
      {{"constant", Gaps::kConstant}, {"gamma", Gaps::kGamma}, {"burst", Gaps::kBurst}});
  stream.gap_shape = number(table, "gap_shape", 1);
  stream.burst_events = whole("burst_events");
  const double finish = number(table, "finish_after_ms", 0);
  const double usage = number(table, "usage_after_ms", finish);
  stream.finish_after = millis(finish);
  stream.usage_after = millis(usage);
  stream.done_after = millis(number(table, "done_after_ms", usage));
  stream.ping = ms("ping_ms");

  stream.usage = choice<UsageMode>(table, "usage",
                                   {{"asked", UsageMode::kAsked},
                                    {"final", UsageMode::kFinal},
                                    {"continuous", UsageMode::kContinuous},
                                    {"none", UsageMode::kNone}});
  stream.usage_empty_text = recipe::text(table, "usage_event") == "empty-text";
  stream.usage_completion_off = whole("usage_completion_off");
  stream.usage_prompt_off = whole("usage_prompt_off");
  stream.coalesce = whole("coalesce");
  stream.split_at = list<int64_t>(table, "split_at");
  stream.split_every = whole("split_every");
  stream.split_gap = std::llround(number(table, "split_gap_us", 0) * 1e3);
  stream.buffer_bytes = whole("buffer_bytes");
  stream.data_space = recipe::flag(table, "data_space", true);
  const std::string end = recipe::text(table, "line_end");
  stream.line_end = end == "crlf" ? "\r\n" : end == "cr" ? "\r" : "\n";
  stream.chunked = recipe::text(table, "transfer") == "chunked";
  stream.fault = read_fault(member(table, "fault"));
  return stream;
}

EngineSpec read_engine(const Json& table) {
  const auto whole = [&](const char* key) { return recipe::integer(table, key, 0); };
  EngineSpec engine;
  engine.model = recipe::text(table, "model");
  engine.flavour = choice<Flavour>(table, "flavour",
                                   {{"vllm", Flavour::kVllm}, {"llama.cpp", Flavour::kLlamaCpp}});
  engine.context_tokens = whole("context_tokens");
  engine.slots = whole("slots");
  engine.prefill_tok_s = number(table, "prefill_tok_s", 0);
  engine.prefix_cache = recipe::flag(table, "prefix_cache", false);
  engine.cache_block_tokens = whole("cache_block_tokens");
  engine.cache_tokens = whole("cache_tokens");
  engine.report_cached = recipe::flag(table, "report_cached", true);
  engine.template_tokens = whole("template_tokens");
  engine.tokenizer_surplus = whole("tokenizer_surplus");
  engine.draft_tokens = whole("draft_tokens");
  engine.acceptance = list<double>(table, "acceptance");
  engine.stamps = recipe::flag(table, "stamps", true);
  engine.spin = std::llround(number(table, "spin_us", 0) * 1e3);
  engine.health_after = millis(number(table, "health_after_ms", 0));
  engine.api_key = recipe::text(table, "api_key");
  return engine;
}

Loaded<Schedule> finish(Loaded<TomlDocument> toml) {
  Loaded<Schedule> out;
  out.diagnostics = std::move(toml.diagnostics);
  out.source = std::move(toml.source);
  if (!toml.value) return out;
  const recipe::Schema& schema = schedule_schema();
  out.diagnostics = schema.check(*toml.value);
  if (recipe::text(toml.value->value, "schema") == schema.name()) {
    Judge judge(*toml.value, out.diagnostics);
    judge_schedule(judge, *toml.value);
    recipe::sort_by_position(out.diagnostics);
  }
  if (recipe::has_errors(out.diagnostics)) return out;

  Schedule schedule;
  schedule.path = toml.value->file;
  schedule.canonical = schema.with_defaults(toml.value->value);
  schedule.canonical.erase("notes");
  schedule.digest = base::sha256(base::canonical(schedule.canonical));
  const Json& document = schedule.canonical;
  schedule.name = recipe::text(document, "name");
  schedule.seed = static_cast<uint64_t>(recipe::integer(document, "seed", 1));
  schedule.choose = choice<Choose>(document, "choose",
                                   {{"round-robin", Choose::kRoundRobin},
                                    {"index", Choose::kIndex},
                                    {"mix", Choose::kMix},
                                    {"model", Choose::kModel}});
  schedule.engine = read_engine(member(document, "engine"));
  for (const Json& stream : member(document, "stream"))
    schedule.streams.push_back(read_stream(stream));
  out.value = std::move(schedule);
  return out;
}

}  // namespace

Loaded<Schedule> load(const std::string& path) {
  return finish(recipe::load_toml(path));
}

Loaded<Schedule> parse(std::string_view toml, const std::string& path) {
  return finish(recipe::parse_toml(toml, path));
}

}  // namespace anvil::scripted
