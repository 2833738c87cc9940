#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "recipe/suite_sense.h"

namespace anvil::recipe {

namespace {

using Names = std::vector<std::string_view>;

constexpr double kMostRequests = 1'000'000;

bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string quoted(const Names& names) {
  std::string out;
  for (size_t i = 0; i < names.size(); ++i)
    out += (i == 0                  ? ""
            : i + 1 == names.size() ? " or "
                                    : ", ") +
           ("\"" + std::string(names[i])) + "\"";
  return out;
}

std::optional<double> number(const Json& table, const char* key) {
  const auto found = table.find(key);
  if (found == table.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

bool is_from_file(const Json& lane) {
  const std::string prompts = text(lane, "prompts", "synthetic");
  return prompts != "synthetic";
}

// Which loads a key is for.
struct KeyUse {
  const char* key;
  Names loads;
};
const Names kPlanned = {"constant", "poisson", "gamma", "steps", "trace"};
const std::vector<KeyUse>& key_uses() {
  static const std::vector<KeyUse> uses = {
      {"concurrency", {"closed", "sessions"}},
      {"requests", {"closed", "constant", "poisson", "gamma", "trace"}},
      {"rate", {"constant", "poisson", "gamma", "sessions"}},
      {"burstiness", {"gamma", "steps"}},
      {"steps", {"steps"}},
      {"step_process", {"steps"}},
      {"trace", {"trace"}},
      {"trace_scale", {"trace"}},
      {"duration_s", {"constant", "poisson", "gamma", "trace"}},
      {"find_knee", {"constant", "poisson", "gamma"}},
      {"max_outstanding", {"constant", "poisson", "gamma", "steps", "trace", "sessions"}},
      {"drain", {"constant", "poisson", "gamma", "steps", "trace", "sessions"}},
      {"drain_s", {"constant", "poisson", "gamma", "steps", "trace", "sessions"}},
      {"sessions", {"sessions"}},
      {"turns", {"sessions"}},
      {"think_time_s", {"sessions"}},
      {"think_time_dist", {"sessions"}},
      {"prompt_tokens", {"closed", "constant", "poisson", "gamma", "steps", "sessions"}},
      {"output_tokens", {"closed", "constant", "poisson", "gamma", "steps", "sessions"}},
      {"mix", {"closed", "constant", "poisson", "gamma", "steps"}},
      {"prompts", {"closed", "constant", "poisson", "gamma", "steps"}},
      {"prefix_groups", {"closed", "constant", "poisson", "gamma", "steps"}},
      {"prefix_tokens", {"closed", "constant", "poisson", "gamma", "steps"}},
  };
  return uses;
}

// One length as a table: {dist = "uniform", min = 100, max = 200}.
class LengthJudge {
 public:
  LengthJudge(Judge& judge, const Json& table, std::string path, double least)
      : judge_(judge), table_(table), path_(std::move(path)), least_(least) {}

  void judge() {
    static const std::vector<std::string> kDists = {"fixed", "uniform", "lognormal", "empirical"};
    const auto found = table_.find("dist");
    if (found == table_.end() || !found->is_string()) {
      judge_.error(path_ + (found == table_.end() ? "" : ".dist"), "no distribution is named",
                   "wanted a number, or dist = \"fixed\", \"uniform\", \"lognormal\" or "
                   "\"empirical\"");
      return;
    }
    const std::string dist = found->get<std::string>();
    if (dist == "fixed") {
      keys(dist, {"value"}, {});
    } else if (dist == "uniform") {
      keys(dist, {"min", "max"}, {});
    } else if (dist == "lognormal") {
      keys(dist, {"median", "sigma"}, {"min", "max"});
    } else if (dist == "empirical") {
      keys(dist, {"values"}, {"weights"});
    } else {
      const auto near = base::did_you_mean(dist, kDists);
      judge_.error(path_ + ".dist", "found \"" + dist + "\"",
                   (near ? "did you mean \"" + *near + "\"? " : std::string()) +
                       "wanted \"fixed\", \"uniform\", \"lognormal\" or \"empirical\"");
      return;
    }
    for (const char* key : {"value", "min", "max", "median"}) count(key);
    if (const auto low = number(table_, "min"), high = number(table_, "max");
        low && high && *low > *high)
      judge_.error(path_ + ".max", base::format_number(*high) + " is below min",
                   "wanted max at least min");
    if (const auto sigma = table_.find("sigma");
        sigma != table_.end() && (!sigma->is_number() || *sigma <= 0 || *sigma > 5))
      judge_.error(path_ + ".sigma", "found " + sigma->dump(),
                   "wanted the deviation of the logarithm, above 0 and at most 5");
    empirical();
  }

 private:
  void keys(const std::string& dist, const Names& needed, const Names& allowed) {
    for (const std::string_view key : needed)
      if (!table_.contains(std::string(key)))
        judge_.error(path_, dist + " needs " + std::string(key),
                     "add " + std::string(key) + " = ...");
    for (const auto& [key, value] : table_.items()) {
      if (key == "dist" || contains(needed, key) || contains(allowed, key)) continue;
      Names all = needed;
      all.insert(all.end(), allowed.begin(), allowed.end());
      std::vector<std::string> known(all.begin(), all.end());
      const auto near = base::did_you_mean(key, known);
      judge_.error(
          path_join(path_, key), "unknown key of a " + dist + " length",
          near ? "did you mean \"" + *near + "\"?" : "known here: " + base::join(known, ", "));
    }
  }

  void count(const char* key) {
    const auto found = table_.find(key);
    if (found == table_.end()) return;
    if (!found->is_number_integer() || *found < least_ || *found > 16777216)
      judge_.error(path_ + "." + key, "found " + found->dump(), wanted());
  }

  void empirical() {
    const auto values = table_.find("values");
    if (values == table_.end()) return;
    if (!values->is_array() || values->empty()) {
      judge_.error(path_ + ".values", "found " + values->dump(), "wanted a list of lengths");
      return;
    }
    for (size_t i = 0; i < values->size(); ++i)
      if (!(*values)[i].is_number_integer() || (*values)[i] < least_ || (*values)[i] > 16777216)
        judge_.error(path_ + ".values[" + std::to_string(i) + "]", "found " + (*values)[i].dump(),
                     wanted());
    const auto weights = table_.find("weights");
    if (weights == table_.end()) return;
    if (!weights->is_array() || weights->size() != values->size()) {
      judge_.error(path_ + ".weights", "does not have one weight for each of the values",
                   "wanted a list of " + std::to_string(values->size()) + " numbers");
      return;
    }
    for (size_t i = 0; i < weights->size(); ++i)
      if (!(*weights)[i].is_number() || (*weights)[i] <= 0)
        judge_.error(path_ + ".weights[" + std::to_string(i) + "]", "found " + (*weights)[i].dump(),
                     "wanted a number above 0");
  }

  std::string wanted() const {
    return "wanted an integer, tokens, " + base::format_number(least_) + " to 16777216";
  }

  Judge& judge_;
  const Json& table_;
  std::string path_;
  double least_;
};

void judge_length(Judge& judge, const Json& table, const std::string& path, const char* key,
                  double least) {
  if (const auto found = table.find(key); found != table.end() && found->is_object())
    LengthJudge(judge, *found, path + "." + key, least).judge();
}

// The fewest tokens that a length can have; nothing if it is malformed.
std::optional<double> shortest(const Json& length) {
  if (length.is_number()) return length.get<double>();
  if (!length.is_object()) return std::nullopt;
  for (const char* key : {"value", "min"})
    if (const auto found = number(length, key)) return found;
  const auto values = length.find("values");
  if (values == length.end() || !values->is_array()) return std::nullopt;
  std::optional<double> least;
  for (const auto& value : *values)
    if (value.is_number())
      least = std::min(least.value_or(value.get<double>()), value.get<double>());
  return least;
}

class LaneJudge {
 public:
  LaneJudge(Judge& judge, const Json& lane, std::string path)
      : judge_(judge), lane_(lane), path_(std::move(path)), load_(text(lane, "load", "closed")) {}

  void judge() {
    // A load of another name is refused by the schema; what it needs is unknown.
    if (load_ != "closed" && load_ != "sessions" && !contains(kPlanned, load_)) return;
    applicable();
    needed();
    amount();
    prompts();
    cache();
    mixture();
    objectives();
    if (flag(lane_, "find_knee", false) &&
        (!lane_.contains("objectives") || lane_.contains("duration_s")))
      judge_.error(at("find_knee"), "nothing says when a rate is too high, or how long a probe is",
                   "give objectives and requests");
    judge_length(judge_, lane_, path_, "prompt_tokens", 8);
    judge_length(judge_, lane_, path_, "output_tokens", 1);
    if (!flag(lane_, "stream", true) && flag(lane_, "fixed_output", true) &&
        lane_.contains("output_tokens") && lane_["output_tokens"] == 1)
      judge_.warning(path_ + ".stream", "an answer of one token without a stream shows no speed",
                     "raise output_tokens, or stream");
  }

 private:
  bool has(const char* key) const { return lane_.contains(key); }
  std::string at(const char* key) const { return path_ + "." + key; }

  void applicable() {
    for (const KeyUse& use : key_uses()) {
      if (!has(use.key) || contains(use.loads, load_)) continue;
      if (load_ == "trace" && contains({"prompt_tokens", "output_tokens"}, use.key)) {
        judge_.error(at(use.key), "the lengths of a trace stand in the trace",
                     std::string("remove ") + use.key);
        continue;
      }
      judge_.error(at(use.key), "has no meaning with load = \"" + load_ + "\"",
                   "it is for load = " + quoted(use.loads) + "; remove it, or change load");
    }
    if (load_ == "sessions" && has("rate") && has("concurrency"))
      judge_.error(at("concurrency"), "sessions start by rate or by concurrency, not by both",
                   "remove one of the two");
    if (load_ == "sessions" && !has("rate"))
      for (const char* key : {"max_outstanding", "drain", "drain_s"})
        if (has(key))
          judge_.error(at(key), "has no meaning for sessions that start by concurrency",
                       "give a rate, or remove it");
    if (load_ == "steps" && has("burstiness") && text(lane_, "step_process") != "gamma")
      judge_.error(at("burstiness"), "only gamma arrivals have one",
                   "set step_process = \"gamma\", or remove it");
    if (has("think_time_dist") && !has("think_time_s"))
      judge_.error(at("think_time_dist"), "of no think time", "add think_time_s = ...");
    if (has("drain_s") && text(lane_, "drain", "finish") != "cut")
      judge_.error(at("drain_s"), "only drain = \"cut\" gives requests up",
                   "set drain = \"cut\", or remove it");
    if (text(lane_, "drain") == "cut" && !has("drain_s"))
      judge_.error(at("drain"), "does not say when requests are given up", "add drain_s = ...");
  }

  void need(const char* key, const std::string& what) {
    if (!has(key))
      judge_.error(path_, "load = \"" + load_ + "\" needs " + key,
                   std::string("add ") + key + " = " + what);
  }

  void needed() {
    if (contains({"constant", "poisson", "gamma"}, load_)) need("rate", "..., requests/s");
    if (load_ == "gamma" || text(lane_, "step_process") == "gamma")
      need("burstiness", "..., the shape of the gaps: 1 is Poisson");
    if (load_ == "steps") need("steps", "[{ rate = ..., seconds = ... }, ...]");
    if (load_ == "trace") need("trace", "\"FILE\"");
    if (load_ == "sessions") {
      need("sessions", "..., how many conversations");
      need("turns", "..., requests of each");
    }
  }

  // Requests that the plan would have, as far as the suite says.
  void amount() {
    if (has("requests") && has("duration_s"))
      judge_.error(at("duration_s"), "the lane has two ends", "remove requests, or duration_s");
    const int64_t concurrency = integer(lane_, "concurrency", 1);
    const int64_t requests = integer(lane_, "requests", 12);
    if (load_ == "closed" && requests < concurrency)
      judge_.error(at("requests"),
                   std::to_string(requests) + " requests never reach a concurrency of " +
                       std::to_string(concurrency),
                   "wanted at least as many requests as concurrency");
    const int64_t sessions = integer(lane_, "sessions", 0);
    if (load_ == "sessions" && sessions > 0 && sessions < concurrency && !has("rate"))
      judge_.error(at("sessions"),
                   std::to_string(sessions) + " sessions never reach a concurrency of " +
                       std::to_string(concurrency),
                   "wanted at least as many sessions as concurrency");
    if (load_ == "closed" && integer(lane_, "threads", 1) > concurrency)
      judge_.error(at("threads"), "more threads than requests in flight",
                   "wanted at most " + std::to_string(concurrency));
    std::optional<double> planned;
    std::string key = at("duration_s");
    if (load_ == "steps") {
      planned = in_steps();
      key = at("steps");
    } else if (load_ == "sessions") {
      planned = static_cast<double>(sessions) * static_cast<double>(integer(lane_, "turns", 0));
      key = at("turns");
      if (*planned == 0) planned.reset();
    } else if (const auto rate = number(lane_, "rate"), seconds = number(lane_, "duration_s");
               rate && seconds) {
      planned = *rate * *seconds;
    }
    if (planned && *planned < 1)
      judge_.error(key, "not a single request would be sent", "raise the rate or the time");
    if (planned && *planned > kMostRequests)
      judge_.error(key, base::format_number(*planned) + " requests are too many for one plan",
                   "wanted at most 1000000: the whole plan is made before the first request");
  }

  std::optional<double> in_steps() {
    const auto steps = lane_.find("steps");
    if (steps == lane_.end() || !steps->is_array()) return std::nullopt;
    double sum = 0;
    for (const auto& step : *steps) {
      if (!step.is_object()) return std::nullopt;
      const auto rate = number(step, "rate"), seconds = number(step, "seconds");
      if (!rate || !seconds) return std::nullopt;
      sum += (*rate + number(step, "to_rate").value_or(*rate)) / 2 * *seconds;
    }
    return sum;
  }

  void prompts() {
    if (!has("prompts") || !lane_["prompts"].is_string() || load_ == "trace" || load_ == "sessions")
      return;
    const std::string prompts = text(lane_, "prompts");
    if (!is_from_file(lane_)) return;
    static const std::vector<std::string> kForms = {"sharegpt", "messages", "text"};
    const auto colon = prompts.find(':');
    const std::string form = prompts.substr(0, std::min(colon, prompts.size()));
    if (colon == std::string::npos ||
        std::find(kForms.begin(), kForms.end(), form) == kForms.end()) {
      const auto near = base::did_you_mean(form, kForms);
      judge_.error(at("prompts"), "found \"" + prompts + "\"",
                   (near ? "did you mean \"" + *near + ":FILE\"? " : std::string()) +
                       "wanted \"synthetic\", \"sharegpt:FILE\", \"messages:FILE\" or "
                       "\"text:FILE\"");
      return;
    }
    if (colon + 1 == prompts.size())
      judge_.error(at("prompts"), "names no file", "wanted \"" + form + ":FILE\"");
    if (flag(lane_, "fixed_output", false))
      judge_.error(at("fixed_output"),
                   "prompts from a file are measured with answers of natural length",
                   "set fixed_output = false, or prompts = \"synthetic\"");
    for (const char* key : {"prompt_tokens", "prefix_groups", "prefix_tokens"})
      if (has(key))
        judge_.error(at(key), "prompts from a file have the length that they have",
                     "remove it, or set prompts = \"synthetic\"");
    if (form != "text" && text(lane_, "api", "chat") == "completions")
      judge_.error(at("api"), "messages need a chat surface",
                   "set api = \"chat\", or prompts = \"text:FILE\"");
  }

  void cache() {
    const std::string state = text(lane_, "cache", "");
    const bool groups = has("prefix_groups") || has("prefix_tokens");
    if (groups && !state.empty() && state != "prefix")
      judge_.error(at("cache"), "\"" + state + "\" with shared beginnings",
                   "set cache = \"prefix\", or remove prefix_groups and prefix_tokens");
    if (load_ == "sessions" && !state.empty() && state != "replay")
      judge_.error(at("cache"), "\"" + state + "\", but every turn repeats the turns before it",
                   "set cache = \"replay\", or remove it");
    if (load_ == "trace" && state == "prefix")
      judge_.error(at("cache"), "a trace says itself what its prompts share",
                   "set cache = \"replay\" (keep its sharing) or \"cold\" (share nothing)");
    if (state == "prefix" && is_from_file(lane_))
      judge_.error(at("cache"), "prompts from a file have no shared beginning",
                   "set cache = \"cold\" or \"replay\"");
    const auto length = number(lane_, "prefix_tokens");
    const Json whole = lane_.contains("prompt_tokens") ? lane_["prompt_tokens"] : Json(512);
    if (const auto least = shortest(whole); length && least && *length + 48 > *least)
      judge_.error(at("prefix_tokens"),
                   "leaves less than 48 of the " + base::format_number(*least) +
                       " tokens of the shortest prompt for what differs",
                   "wanted at most " + base::format_number(*least - 48));
    if (const int64_t count = integer(lane_, "prefix_groups", 1);
        load_ == "closed" && count > 1 && count > integer(lane_, "requests", 12))
      judge_.error(at("prefix_groups"), "more groups than requests",
                   "wanted at most " + std::to_string(integer(lane_, "requests", 12)));
  }

  void mixture() {
    const auto mix = lane_.find("mix");
    if (mix == lane_.end() || !mix->is_array()) return;
    std::set<std::string> names;
    for (size_t i = 0; i < mix->size(); ++i) {
      const Json& part = (*mix)[i];
      if (!part.is_object()) continue;
      const std::string below = at("mix") + "[" + std::to_string(i) + "]";
      if (const std::string name = text(part, "name"); !name.empty() && !names.insert(name).second)
        judge_.error(below + ".name", "\"" + name + "\" stands twice", "give each its own name");
      judge_length(judge_, part, below, "prompt_tokens", 8);
      judge_length(judge_, part, below, "output_tokens", 1);
      if (is_from_file(lane_) && part.contains("prompt_tokens"))
        judge_.error(below + ".prompt_tokens", "prompts from a file have the length that they have",
                     "remove it, or set prompts = \"synthetic\"");
    }
  }

  void objectives() {
    const auto table = lane_.find("objectives");
    if (table == lane_.end() || !table->is_object()) return;
    static const Names kMetrics = {"ttfe_ms", "ttfo_ms", "ttfv_ms",    "tpot_ms",
                                   "e2e_ms",  "done_ms", "service_ms", "schedule_ms"};
    static const Names kPercentiles = {"p50", "p90", "p95", "p99"};
    std::vector<std::string> known;
    for (const auto metric : kMetrics)
      for (const auto percentile : kPercentiles)
        known.push_back(std::string(metric) + "_" + std::string(percentile));
    for (const auto& [key, value] : table->items()) {
      const std::string where = path_join(at("objectives"), key);
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        const auto near = base::did_you_mean(key, known);
        judge_.error(where, "not an objective",
                     (near ? "did you mean \"" + *near + "\"? " : std::string()) +
                         "wanted METRIC_PERCENTILE of " + quoted(kMetrics) + " and " +
                         quoted(kPercentiles));
      } else if (!flag(lane_, "stream", true) && key[0] == 't') {
        judge_.error(where, "without a stream nothing is known but the end of an answer",
                     "set stream = true, or use e2e_ms or service_ms");
      }
    }
  }

  Judge& judge_;
  const Json& lane_;
  std::string path_, load_;
};

// Keys whose absence means this.
const std::vector<std::pair<const char*, Json>>& silent_defaults() {
  static const std::vector<std::pair<const char*, Json>> defaults = {
      {"load", "closed"},           {"step_process", "poisson"},
      {"trace_scale", 1.0},         {"max_outstanding", 512},
      {"drain", "finish"},          {"think_time_s", 0.0},
      {"think_time_dist", "fixed"}, {"prompts", "synthetic"},
      {"connections", "reuse"},     {"threads", 1},
      {"find_knee", false},         {"respect_retry_after", false}};
  return defaults;
}

}  // namespace

void judge_lanes(Judge& judge) {
  judge.unique("lane", "id");
  judge.each("lane", [&](const Json& lane, const std::string& path) {
    LaneJudge(judge, lane, path).judge();
  });
}

void settle_lanes(Json& canonical, const Json& document) {
  if (!canonical.contains("lane") || !canonical["lane"].is_array()) return;
  const auto written = document.find("lane");
  if (written == document.end() || !written->is_array()) return;
  for (size_t i = 0; i < canonical["lane"].size() && i < written->size(); ++i) {
    Json& lane = canonical["lane"][i];
    const Json& given = (*written)[i];
    const auto fill = [&](const char* key, Json value) {
      if (!given.contains(key)) lane[key] = std::move(value);
    };
    const std::string load = text(lane, "load", "closed");
    for (const KeyUse& use : key_uses())
      if (!given.contains(use.key) && !contains(use.loads, load)) lane.erase(use.key);
    // Without a number, a trace is repeated to its end.
    if (!given.contains("requests") && (load == "trace" || lane.contains("duration_s")))
      lane.erase("requests");
    if (load == "sessions" && lane.contains("rate")) lane.erase("concurrency");
    if (load == "sessions" || load == "trace") fill("cache", "replay");
    if (lane.contains("prefix_groups") || lane.contains("prefix_tokens")) fill("cache", "prefix");
    if (is_from_file(lane)) {
      lane.erase("prompt_tokens");
      fill("fixed_output", false);
    }
    for (const auto& [key, value] : silent_defaults())
      if (const auto found = lane.find(key); found != lane.end() && *found == value)
        lane.erase(key);
  }
}

}  // namespace anvil::recipe
