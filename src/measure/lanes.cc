#include "measure/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace anvil::measure {

namespace {

constexpr std::array<std::pair<Load, std::string_view>, 7> kLoads = {
    {{Load::kClosed, "closed"},
     {Load::kConstant, "constant"},
     {Load::kPoisson, "poisson"},
     {Load::kGamma, "gamma"},
     {Load::kSteps, "steps"},
     {Load::kTrace, "trace"},
     {Load::kSessions, "sessions"}}};

// Reads members of one table; errors name the lane and the key.
class LaneReader {
 public:
  LaneReader(const Json& table, std::string where) : table_(table), where_(std::move(where)) {}

  bool has(const char* key) const { return table_.contains(key); }
  const Json& at(const char* key) const { return table_[key]; }

  Result<std::string> text(const char* key, std::string otherwise) const {
    if (!has(key)) return otherwise;
    if (!table_[key].is_string()) return wrong(key, "must be a string");
    return table_[key].get<std::string>();
  }
  Result<int64_t> count(const char* key, int64_t otherwise, int64_t min) const {
    if (!has(key)) return otherwise;
    if (!table_[key].is_number_integer() || table_[key].get<int64_t>() < min ||
        table_[key].get<int64_t>() > 100'000'000)
      return wrong(key, "must be an integer from " + std::to_string(min));
    return table_[key].get<int64_t>();
  }
  Result<int> small_count(const char* key, int otherwise, int min) const {
    return static_cast<int>(TRY(count(key, otherwise, min)));
  }
  Result<double> number(const char* key, double otherwise, double min) const {
    if (!has(key)) return otherwise;
    if (!table_[key].is_number() || !std::isfinite(table_[key].get<double>()) ||
        table_[key].get<double>() < min)
      return wrong(key, "must be a number, at least " + std::to_string(min));
    return table_[key].get<double>();
  }
  Result<bool> flag(const char* key, bool otherwise) const {
    if (!has(key)) return otherwise;
    if (!table_[key].is_boolean()) return wrong(key, "must be true or false");
    return table_[key].get<bool>();
  }
  Result<Length> length(const char* key, Length otherwise) const {
    if (!has(key)) return otherwise;
    auto read = read_length(table_[key], 1);
    if (!read) return wrong(key, read.error().detail);
    return std::move(*read);
  }
  // Index of a word in a list.
  Result<size_t> choice(const char* key, const std::vector<std::string_view>& words) const {
    const std::string word = TRY(text(key, std::string(words.front())));
    const auto found = std::find(words.begin(), words.end(), word);
    if (found != words.end()) return static_cast<size_t>(found - words.begin());
    std::string wanted;
    for (size_t i = 0; i < words.size(); ++i)
      wanted += (i == 0                  ? ""
                 : i + 1 == words.size() ? " or "
                                         : ", ") +
                ("\"" + std::string(words[i]) + "\"");
    return wrong(key, "must be " + wanted);
  }
  tl::unexpected<Error> wrong(const char* key, const std::string& what) const {
    return fail(Kind::kInvalidInput, Side::kClient, where_ + ": " + key + " " + what);
  }

 private:
  const Json& table_;
  std::string where_;
};

std::string place_of(const Json& lane) {
  const bool named = lane.is_object() && lane.contains("id") && lane["id"].is_string();
  return named ? "lane \"" + lane["id"].get<std::string>() + "\"" : "lane without id";
}

Result<void> read_steps(const LaneReader& read, LanePlan& plan) {
  if (!read.has("steps")) return read.wrong("steps", "must be given");
  if (!read.at("steps").is_array() || read.at("steps").empty())
    return read.wrong("steps", "must be a list of {rate, seconds}");
  for (const Json& each : read.at("steps")) {
    if (!each.is_object()) return read.wrong("steps", "must be a list of {rate, seconds}");
    const LaneReader step(each, "lane \"" + plan.id + "\", steps");
    RateStep out;
    if (!step.has("rate")) return step.wrong("rate", "must be given");
    out.rate = TRY(step.number("rate", 0, 0));
    out.to_rate = TRY(step.number("to_rate", out.rate, 0));
    out.seconds = TRY(step.number("seconds", 0, 0));
    if (out.seconds <= 0) return step.wrong("seconds", "must be above 0");
    plan.steps.push_back(out);
  }
  constexpr ArrivalProcess kProcesses[] = {ArrivalProcess::kPoisson, ArrivalProcess::kConstant,
                                           ArrivalProcess::kGamma};
  plan.step_process =
      kProcesses[TRY(read.choice("step_process", {"poisson", "constant", "gamma"}))];
  return {};
}

// What says when requests are sent.
Result<void> read_load(const LaneReader& read, LanePlan& plan) {
  std::vector<std::string_view> names;
  for (const auto& [load, word] : kLoads) names.push_back(word);
  plan.load = kLoads[TRY(read.choice("load", names))].first;
  plan.rate = TRY(read.number("rate", 0, 0));
  plan.burstiness = TRY(read.number("burstiness", 1, 0.001));
  if (plan.load == Load::kSteps) TRY(read_steps(read, plan));
  plan.trace = TRY(read.text("trace", ""));
  plan.trace_scale = TRY(read.number("trace_scale", 1, 1e-6));
  if (read.has("duration_s")) plan.duration_s = TRY(read.number("duration_s", 0, 1e-3));
  plan.max_outstanding = TRY(read.small_count("max_outstanding", plan.max_outstanding, 1));
  if (TRY(read.choice("drain", {"finish", "cut"})) == 1)
    plan.drain_s = TRY(read.number("drain_s", 0, 0));
  plan.sessions = TRY(read.small_count("sessions", 0, 1));
  plan.turns = TRY(read.small_count("turns", 0, 1));
  plan.think_time_s = TRY(read.number("think_time_s", 0, 0));
  plan.think_exponential = TRY(read.choice("think_time_dist", {"fixed", "exponential"})) == 1;

  const bool by_rate =
      plan.load == Load::kConstant || plan.load == Load::kPoisson || plan.load == Load::kGamma;
  if (by_rate && plan.rate <= 0) return read.wrong("rate", "must be given");
  if (plan.load == Load::kTrace && plan.trace.empty()) return read.wrong("trace", "must be given");
  if (plan.load == Load::kSessions && (plan.sessions == 0 || plan.turns == 0))
    return read.wrong(plan.sessions == 0 ? "sessions" : "turns", "must be given");
  const bool counted = plan.load == Load::kClosed || by_rate;
  plan.requests = TRY(read.small_count("requests", counted && !plan.duration_s ? plan.requests : 0,
                                       counted ? 1 : 0));
  return {};
}

Result<void> read_prompts(const LaneReader& read, LanePlan& plan) {
  plan.prompt_tokens = TRY(read.length("prompt_tokens", plan.prompt_tokens));
  plan.output_tokens = TRY(read.length("output_tokens", plan.output_tokens));
  plan.prompts = TRY(read.text("prompts", plan.prompts));
  const std::string form =
      plan.prompts.substr(0, std::min(plan.prompts.find(':'), plan.prompts.size()));
  const bool from_file = plan.prompts.size() > form.size() + 1 &&
                         (form == "sharegpt" || form == "messages" || form == "text");
  if (plan.prompts != "synthetic" && !from_file)
    return read.wrong("prompts",
                      "must be \"synthetic\", \"sharegpt:FILE\", \"messages:FILE\" or "
                      "\"text:FILE\"");
  // Mixed in one lane they would be neither speed nor experience.
  plan.fixed_output = TRY(read.flag("fixed_output", !from_file));
  if (from_file && plan.fixed_output)
    return read.wrong("fixed_output", "must be false for prompts from a file");
  const bool repeats = plan.load == Load::kSessions || plan.load == Load::kTrace;
  const bool shares = read.has("prefix_groups") || read.has("prefix_tokens");
  plan.cache = TRY(read.text("cache", repeats ? "replay" : shares ? "prefix" : plan.cache));
  if (plan.cache != "cold" && plan.cache != "prefix" && plan.cache != "replay")
    return read.wrong("cache", "must be \"cold\", \"prefix\" or \"replay\"");
  if (plan.load == Load::kSessions && plan.cache != "replay")
    return read.wrong("cache", "must be \"replay\": every turn repeats the turns before it");
  if (plan.cache == "prefix" && (from_file || repeats))
    return read.wrong("cache", "cannot be \"prefix\" for prompts that are not synthetic");
  plan.prefix_groups = TRY(read.small_count("prefix_groups", 1, 1));
  if (read.has("prefix_tokens")) plan.prefix_tokens = TRY(read.count("prefix_tokens", 0, 1));
  if (!read.has("mix")) return {};
  if (!read.at("mix").is_array()) return read.wrong("mix", "must be a list of tables");
  for (const Json& each : read.at("mix")) {
    if (!each.is_object()) return read.wrong("mix", "must be a list of tables");
    const LaneReader part(each, "lane \"" + plan.id + "\", mix");
    MixPart out;
    out.name = TRY(part.text("name", ""));
    if (out.name.empty()) return part.wrong("name", "must be given");
    out.weight = TRY(part.number("weight", 1, 1e-6));
    out.prompt_tokens = TRY(part.length("prompt_tokens", plan.prompt_tokens));
    out.output_tokens = TRY(part.length("output_tokens", plan.output_tokens));
    plan.mix.push_back(std::move(out));
  }
  return {};
}

Result<void> read_objectives(const LaneReader& read, LanePlan& plan) {
  if (!read.has("objectives")) return {};
  if (!read.at("objectives").is_object()) return read.wrong("objectives", "must be a table");
  for (const auto& [key, value] : read.at("objectives").items()) {
    const auto mark = key.rfind("_p");
    const std::string digits = mark == std::string::npos ? "" : key.substr(mark + 2);
    if ((digits != "50" && digits != "90" && digits != "95" && digits != "99") ||
        !value.is_number() || value <= 0)
      return read.wrong("objectives", "must be METRIC_pNN = limit, not " + key);
    plan.objectives.push_back(
        {key, key.substr(0, mark), std::stod(digits) / 100, value.get<double>()});
  }
  return {};
}

}  // namespace

std::string_view name(Load load) {
  for (const auto& [each, word] : kLoads)
    if (each == load) return word;
  return "";
}

bool LanePlan::open_loop() const {
  return load != Load::kClosed && (load != Load::kSessions || rate > 0);
}

int LanePlan::most_in_flight() const {
  return open_loop() ? max_outstanding : concurrency;
}

Result<LanePlan> lane_plan(const Json& lane) {
  const LaneReader read(lane, place_of(lane));
  if (!lane.is_object()) return read.wrong("the lane", "must be a table");
  LanePlan plan;
  plan.id = TRY(read.text("id", ""));
  if (plan.id.empty()) return read.wrong("id", "must be given");
  TRY(read_load(read, plan));
  TRY(read_prompts(read, plan));
  plan.concurrency = TRY(read.small_count("concurrency", plan.concurrency, 1));
  plan.warmup = TRY(read.small_count("warmup", plan.warmup, 0));
  plan.stream = TRY(read.flag("stream", plan.stream));
  const std::string api = TRY(read.text("api", std::string(wire::name(plan.api))));
  const auto known = wire::api_from_name(api);
  if (!known) return read.wrong("api", "must be \"chat\", \"completions\" or \"responses\"");
  plan.api = *known;
  constexpr Connections kConnections[] = {Connections::kReuse, Connections::kFresh,
                                          Connections::kPool};
  plan.connections = kConnections[TRY(read.choice("connections", {"reuse", "fresh", "pool"}))];
  plan.threads = TRY(read.small_count("threads", plan.threads, 1));
  plan.respect_retry_after = TRY(read.flag("respect_retry_after", false));
  TRY(read_objectives(read, plan));
  plan.find_knee = TRY(read.flag("find_knee", false));
  return plan;
}

LoadOptions load_options(const LanePlan& lane) {
  LoadOptions out;
  out.concurrency = lane.most_in_flight();
  out.threads = lane.threads;
  out.connections = lane.connections;
  out.respect_retry_after = lane.respect_retry_after;
  if (lane.drain_s) out.drain = static_cast<Nanos>(*lane.drain_s * kSecond);
  return out;
}

wire::GenerationRequest lane_request(const LanePlan& lane, const LaneContext& context,
                                     std::vector<wire::ChatMessage> messages, int64_t max_tokens) {
  wire::GenerationRequest request;
  request.api = lane.api;
  request.model = context.model;
  if (lane.api == wire::Api::kCompletions) {
    for (const wire::ChatMessage& message : messages) {
      if (!request.prompt.empty()) request.prompt += "\n\n";
      request.prompt += message.content.get<std::string>();
    }
  } else {
    request.messages = std::move(messages);
  }
  request.max_tokens = max_tokens;
  request.temperature = context.temperature;
  request.seed = static_cast<int64_t>(context.seed & 0x7fffffff);
  request.effort = context.effort;
  request.stream = lane.stream;
  request.extra = Json::object();
  if (lane.fixed_output) {
    request.ignore_eos = true;
    request.extra["min_tokens"] = max_tokens;
  }
  if (context.extra.is_object()) request.extra.update(context.extra);
  if (lane.cache == "cold" && context.cold_extra.is_object())
    request.extra.update(context.cold_extra);
  return request;
}

std::string lane_body(const LanePlan& lane, const LaneContext& context, const std::string& prompt) {
  return wire::to_body(lane_request(lane, context, {{.role = "user", .content = prompt}},
                                    lane.output_tokens.typical()));
}

}  // namespace anvil::measure
