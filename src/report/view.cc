#include "report/view.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "report/json_read.h"
#include "report/text.h"

namespace anvil::report {

namespace {

struct DecisionWords {
  std::string_view decision, word, fallback;
  Tone tone;
};
constexpr DecisionWords kDecisions[] = {
    {"promote-eligible", "Promote-eligible", "Every gate passed.", Tone::kGood},
    {"watch", "Watch", "It may serve, with the reservations below.", Tone::kWatch},
    {"no-promotion", "No promotion", "It may not take over a name that clients use.", Tone::kBad},
    {"rejected", "Rejected", "It is not fit to serve.", Tone::kBad},
    {"control", "Control", "Measured as the reference for others; never promoted.", Tone::kPlain},
};

std::string sentence(std::string words) {
  if (words.empty()) return words;
  if (words[0] >= 'a' && words[0] <= 'z') words[0] = static_cast<char>(words[0] - 'a' + 'A');
  if (words.back() != '.' && words.back() != '!' && words.back() != '?') words += '.';
  return words;
}

std::string plural(size_t n, std::string_view one, std::string_view many) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : many);
}

std::string listed(const std::vector<std::string>& names, size_t limit) {
  std::string out;
  for (size_t i = 0; i < names.size() && i < limit; ++i) {
    if (i) out += i + 1 == names.size() ? " and " : ", ";
    out += names[i];
  }
  if (names.size() > limit) out += " and " + std::to_string(names.size() - limit) + " more";
  return out;
}

// One sentence for the strip, from the gates themselves; the full reasons follow it.
std::string gate_sentence(const std::vector<Gate>& gates) {
  std::vector<std::string> failed, unmeasured;
  size_t passed = 0;
  for (const Gate& gate : gates) {
    if (gate.verdict == "fail")
      failed.push_back(gate.id);
    else if (gate.verdict == "not-measured")
      unmeasured.push_back(gate.id);
    else
      ++passed;
  }
  if (failed.empty() && unmeasured.empty()) return {};
  std::string out;
  if (!failed.empty())
    out = plural(failed.size(), "gate", "gates") + " failed (" + listed(failed, 3) + ")";
  if (!unmeasured.empty()) {
    if (!out.empty()) out += ", ";
    out += plural(unmeasured.size(), failed.empty() ? "gate was" : "was",
                  failed.empty() ? "gates were" : "were") +
           " not measured (" + listed(unmeasured, 3) + ")";
  }
  return out + "; " + std::to_string(passed) + " of " + std::to_string(gates.size()) + " passed.";
}

std::string symbol(const std::string& op) {
  if (op == "<=") return "\xE2\x89\xA4";
  if (op == ">=") return "\xE2\x89\xA5";
  if (op == "!=") return "\xE2\x89\xA0";
  return op == "==" ? "=" : op;
}

int rank(const Gate& gate) {
  const int weight = gate.on_fail == "reject" ? 0 : gate.on_fail == "no-promotion" ? 1 : 2;
  if (gate.verdict == "fail") return weight;
  if (gate.verdict == "not-measured") return 3 + weight;
  return 6;
}

}  // namespace

Tone Gate::tone() const {
  if (verdict == "pass") return Tone::kGood;
  if (verdict == "not-measured" || on_fail == "watch") return Tone::kWatch;
  return Tone::kBad;
}

std::vector<Gate> gates_of(const Facts& facts) {
  std::vector<Gate> gates;
  for (const Json& each : list_at(facts.decision, {"gates"})) {
    Gate gate;
    gate.id = text_at(each, {"id"});
    gate.verdict = text_at(each, {"verdict"});
    const Json& where = at(each, {"where"});
    gate.where = where.is_null() ? std::string() : plain(where);
    gate.on_fail = text_at(each, {"on_fail"});
    gate.because = text_at(each, {"because"});
    gate.unit = text_at(each, {"unit"});
    gate.detail = text_at(each, {"detail"});
    gate.op = symbol(text_at(each, {"op"}));
    const Json& value = at(each, {"value"});
    const Json& threshold = at(each, {"threshold"});
    gate.value = value.is_null() ? "not measured" : gate_value(value, threshold);
    gate.threshold = gate_value(threshold, value);
    gates.push_back(std::move(gate));
  }
  std::stable_sort(gates.begin(), gates.end(),
                   [](const Gate& a, const Gate& b) { return rank(a) < rank(b); });
  return gates;
}

GateCounts count_gates(const std::vector<Gate>& gates) {
  GateCounts counts;
  for (const Gate& gate : gates)
    ++(gate.verdict == "pass"   ? counts.passed
       : gate.verdict == "fail" ? counts.failed
                                : counts.not_measured);
  return counts;
}

std::string failed_step_words(const Facts& facts) {
  const Json& failed = at(facts.decision, {"failed_step"});
  if (failed.is_object()) {
    std::string klass = text_at(failed, {"class"});
    if (klass.empty()) klass = text_at(failed, {"kind"});
    return text_at(failed, {"step"}) + (klass.empty() ? "" : ", " + klass) + ": " +
           text_at(failed, {"detail"});
  }
  if (const Step* step = facts.failed_step()) return step->name + ": " + step->error;
  return {};
}

std::string incomplete_words(const Facts& facts) {
  if (facts.decided) return {};
  const Step* last = facts.last_step();
  if (last == nullptr) return "The record holds no step; nothing was started.";
  std::string out = "The record ends ";
  if (last->ending == Step::Ending::kOpen)
    out += "inside step \"" + last->name + "\"";
  else if (last->ending == Step::Ending::kFailed)
    out += "after step \"" + last->name + "\" failed";
  else
    out += "after step \"" + last->name + "\"";
  return out + ", " +
         seconds(facts.seconds(last->ending == Step::Ending::kOpen ? facts.last : last->end)) +
         " into the run; no decision was made.";
}

Verdict verdict_of(const Facts& facts) {
  Verdict out;
  for (const Json& reason : list_at(facts.decision, {"reasons"}))
    if (reason.is_string()) out.reasons.push_back(reason.get<std::string>());
  const std::string decision = text_at(facts.decision, {"decision"});
  if (!facts.decided && decision.empty()) {
    out.word = "Incomplete";
    out.tone = Tone::kWatch;
    out.sentence = incomplete_words(facts);
    if (const std::string failed = failed_step_words(facts); !failed.empty())
      out.reasons.push_back(failed);
    return out;
  }
  out.word = decision;
  std::string fallback;
  for (const auto& known : kDecisions) {
    if (known.decision != decision) continue;
    out.word = known.word;
    out.tone = known.tone;
    fallback = known.fallback;
  }
  const std::string failed = failed_step_words(facts);
  if (!failed.empty())
    out.sentence = sentence("step " + failed);
  else
    out.sentence = gate_sentence(gates_of(facts));
  for (const auto& reason : out.reasons)
    if (!reason.starts_with("gate ") && (failed.empty() || !reason.starts_with("the step ")))
      out.other_reasons.push_back(reason);
  if (out.sentence.empty())
    out.sentence = out.reasons.empty() ? fallback : sentence(out.reasons.front());
  return out;
}

Figure figure_of(const Json& dist, std::string_view which) {
  Figure out;
  out.n = integer_at(dist, {"n"}).value_or(0);
  out.floor = which == "p50"   ? 11
              : which == "p90" ? 64
              : which == "p95" ? 130
              : which == "p99" ? 662
                               : 1;
  const std::string key(which);
  if (const auto value = number_at(dist, {key.c_str()})) {
    out.kind = Figure::Kind::kValue;
    out.value = *value;
    return out;
  }
  if (out.n == 0) return out;
  const Json& refused = at(dist, {"refused", key.c_str()});
  const auto median = number_at(dist, {"median_below_floor"});
  if (const auto value = number_at(refused, {"value"})) {
    out.kind = Figure::Kind::kOurError;
    out.value = *value;
    out.client_error_ms = number_at(refused, {"client_error_ms"}).value_or(0);
  } else if (which == "p50" && median) {
    out.kind = Figure::Kind::kBelowFloor;
    out.value = *median;
  } else if (out.n < out.floor) {
    out.kind = Figure::Kind::kRefused;
  }
  return out;
}

std::string words_of(const Figure& each, std::string (*format)(double)) {
  const auto number = [&] { return format ? format(each.value) : figure(each.value); };
  const std::string samples =
      "(n=" + std::to_string(each.n) + " < " + std::to_string(each.floor) + ")";
  switch (each.kind) {
    case Figure::Kind::kValue:
      return number();
    case Figure::Kind::kBelowFloor:
      return number() + " " + samples;
    case Figure::Kind::kRefused:
      return "refused " + samples;
    case Figure::Kind::kOurError:
      return "refused (our error " + milliseconds(each.client_error_ms) + ")";
    case Figure::Kind::kAbsent:
      return "none";
  }
  return {};
}

std::string state_words(std::string_view state) {
  if (state == "prefix") return "prefix-cached";
  return state.empty() ? "undeclared" : std::string(state);
}

namespace {
// As derive() reads it: "none" at the lane, else at the suite, lifts the demand.
bool proof_demanded(const Facts& facts, std::string_view id) {
  const bool planned = at(facts.plan, {"lanes"}).is_array();
  for (const Json& lane :
       planned ? list_at(facts.plan, {"lanes"}) : list_at(facts.suite, {"lane"})) {
    if (text_at(lane, {"id"}) != id) continue;
    if (const std::string proof = text_at(lane, {"cache_proof"}); !proof.empty())
      return proof != "none";
  }
  return text_at(facts.suite, {"cache_proof"}) != "none";
}
}  // namespace

std::vector<const Request*> lane_requests(const Facts& facts, std::string_view id) {
  const bool proof = proof_demanded(facts, id);
  std::vector<const Request*> out;
  for (const Request& request : facts.requests) {
    if (request.purpose != evidence::Purpose::kLane || request.lane != id) continue;
    if (request.ok() && (request.refused || (request.unproven && proof))) continue;
    out.push_back(&request);
  }
  return out;
}

std::set<int64_t> provoked_failures(const Facts& facts) {
  std::set<int64_t> out;
  for (const Json& check : list_at(facts.checks, {"checks"}))
    if (text_at(check, {"verdict"}) == "pass")
      for (const Json& row : list_at(check, {"rows"}))
        if (row.is_number_integer()) out.insert(row.get<int64_t>());
  std::set<int64_t> failed;
  for (const Request& request : facts.requests)
    if (!request.ok() && out.contains(request.seq)) failed.insert(request.seq);
  return failed;
}

std::string verify_command(const Facts& facts) {
  return "anvil verify " + base::shell_quote("runs/" + facts.run_id);
}

namespace {

void add(std::vector<Fact>& out, std::string label, std::string value) {
  if (!value.empty()) out.push_back({std::move(label), std::move(value)});
}

std::string joined(std::initializer_list<std::string> parts, std::string_view separator) {
  std::string out;
  for (const auto& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

std::string bytes_words(const Json& value) {
  if (!value.is_number() || value.get<double>() < 0) return {};
  return base::format_bytes(static_cast<uint64_t>(value.get<double>()));
}

// "Xeon, 2 cores, 23.5 GiB memory"
std::string host_words(const Json& host) {
  const auto cores = integer_at(host, {"cpu", "cores"});
  const std::string memory = bytes_words(at(host, {"memory", "total"}));
  return joined({text_at(host, {"cpu", "model"}),
                 cores ? plural(static_cast<size_t>(*cores), "core", "cores") : "",
                 memory.empty() ? "" : memory + " memory"},
                ", ");
}

std::string gpu_words(const Json& gpu) {
  std::string name = text_at(gpu, {"name"});
  if (name.empty()) name = text_at(gpu, {"model"});
  std::string memory = bytes_words(at(gpu, {"mem_total"}));
  if (memory.empty()) memory = bytes_words(at(gpu, {"memory", "total"}));
  const std::string words = joined({text_at(gpu, {"role"}), name, memory}, ", ");
  return words.empty() ? plain(gpu) : words;
}

std::string size_pair(const Json& from) {
  const std::string total = bytes_words(at(from, {"total"}));
  std::string free = bytes_words(at(from, {"available"}));
  if (free.empty()) free = bytes_words(at(from, {"free"}));
  if (total.empty()) return {};
  return free.empty() ? total : free + " free of " + total;
}

}  // namespace

std::vector<Fact> subject_of(const Facts& facts) {
  std::vector<Fact> out;
  const Json& recipe = facts.recipe;
  const Json& manifest = facts.manifest;
  const std::string role = text_at(manifest, {"recipe", "role"});
  add(out, "Recipe", joined({text_at(manifest, {"recipe", "name"}), role}, ", "));
  if (const auto pinned = flag_at(manifest, {"recipe", "pinned"}); pinned && !*pinned) {
    std::vector<std::string> names;
    for (const Json& name : list_at(manifest, {"recipe", "unpinned"})) names.push_back(plain(name));
    add(out, "Not pinned", names.empty() ? "yes" : listed(names, 6));
  }
  const std::string revision = text_at(recipe, {"model", "revision"});
  add(out, "Model", joined({text_at(recipe, {"model", "repo"}), revision.substr(0, 12)}, " @ "));
  std::vector<std::string> files;
  for (const Json& artifact : list_at(recipe, {"model", "artifact"})) {
    std::string file = text_at(artifact, {"file"});
    if (const size_t slash = file.rfind('/'); slash != std::string::npos) file.erase(0, slash + 1);
    const std::string digest = text_at(artifact, {"sha256"}).substr(0, 12);
    files.push_back(joined({file.empty() ? text_at(artifact, {"kind"}) : file,
                            digest.empty() ? "" : "sha256 " + digest},
                           ", "));
  }
  add(out, "Artifacts", base::join(files, "; "));
  add(out, "Engine",
      joined({text_at(recipe, {"engine", "kind"}), text_at(recipe, {"engine", "version"}),
              text_at(recipe, {"engine", "build"})},
             " "));
  add(out, "Image", text_at(recipe, {"engine", "image"}));
  add(out, "Package", text_at(recipe, {"engine", "package"}));
  std::string runner = text_at(facts.launch, {"runner"});
  if (runner.empty()) runner = text_at(recipe, {"launch", "runner"});
  add(out, "Runner", runner);
  add(out, "Host", host_words(facts.host));
  std::vector<std::string> gpus;
  for (const Json& gpu : list_at(facts.host, {"gpus"})) gpus.push_back(gpu_words(gpu));
  add(out, "GPUs", facts.host.is_object() && gpus.empty() ? "none" : base::join(gpus, "; "));
  add(out, "Policy", text_at(manifest, {"policy", "name"}));
  add(out, "Suite", text_at(manifest, {"suite", "name"}));
  add(out, "Started", text_at(manifest, {"anchor", "utc"}));
  add(out, "Anvil",
      joined({text_at(manifest, {"tool", "version"}),
              text_at(manifest, {"tool", "build"}).substr(0, 12)},
             ", build "));
  return out;
}

std::vector<Fact> environment_of(const Facts& facts) {
  std::vector<Fact> out;
  const Json& host = facts.host;
  add(out, "Processor",
      joined(
          {text_at(host, {"cpu", "model"}),
           integer_at(host, {"cpu", "cores"}) ? plain(at(host, {"cpu", "cores"})) + " cores" : ""},
          ", "));
  add(out, "Memory", size_pair(at(host, {"memory"})));
  add(out, "Shared memory", size_pair(at(host, {"shm"})));
  const Json& disks = at(host, {"disk"});
  add(out, "Disk", size_pair(disks));
  if (disks.is_object())
    for (const auto& [name, disk] : disks.items()) add(out, "Disk of " + name, size_pair(disk));
  add(out, "Kernel", text_at(host, {"kernel"}));
  add(out, "Platform", text_at(host, {"platform"}));
  const std::string clock = text_at(host, {"clock", "source"});
  add(out, "Clock", clock.empty() ? std::string() : "CLOCK_MONOTONIC from " + clock);
  if (const auto step = number_at(facts.results, {"wall_clock", "step_ms"});
      step && std::abs(*step) >= 10)
    add(out, "Wall clock stepped by", milliseconds(*step) + "; no duration depends on it");
  for (const Json& gpu : list_at(host, {"gpus"})) add(out, "GPU", gpu_words(gpu));
  const Json& orphans = list_at(host, {"anvil_orphans"});
  if (!orphans.empty()) add(out, "Left from earlier runs", plain(orphans));
  if (const auto pid = integer_at(facts.launch, {"pid"}))
    add(out, "Engine process", "pid " + std::to_string(*pid));
  add(out, "Address", text_at(facts.launch, {"spec", "base_url"}));
  return out;
}

std::vector<Tile> tiles_of(const Facts& facts) {
  std::vector<Tile> out;
  const Json& results = facts.results;
  if (const auto total = integer_at(results, {"checks", "total"}); total && *total > 0) {
    const auto skipped = integer_at(results, {"checks", "skipped"}).value_or(0);
    out.push_back(
        {"Checks passed", plain(at(results, {"checks", "passed"})), "of " + std::to_string(*total),
         skipped > 0 ? std::to_string(skipped) + " skipped" : "each with its answer below"});
  }
  const Json& lanes = list_at(results, {"lanes"});
  if (!lanes.empty()) {
    const Json& first = lanes.front();
    const std::string lane = "lane " + text_at(first, {"id"});
    const auto add_figure = [&](const char* label, const char* metric, const char* unit) {
      const Figure f = figure_of(at(first, {metric}), "p50");
      if (f.kind != Figure::Kind::kValue && f.kind != Figure::Kind::kBelowFloor) return;
      const std::string few =
          f.kind == Figure::Kind::kBelowFloor ? ", only n=" + std::to_string(f.n) : "";
      out.push_back({label, figure(f.value), unit, lane + few});
    };
    add_figure("Time to first output, p50", "ttfo_ms", "ms");
    add_figure("Decode per stream, p50", "decode_tok_s", "tok/s");
    const Json* best = nullptr;
    for (const Json& each : lanes) {
      const auto rate = number_at(each, {"aggregate_output_tok_s"});
      if (rate && (!best || *rate > *number_at(*best, {"aggregate_output_tok_s"}))) best = &each;
    }
    if (best)
      out.push_back({"Aggregate output", figure(*number_at(*best, {"aggregate_output_tok_s"})),
                     "tok/s", "lane " + text_at(*best, {"id"})});
  }
  if (const auto largest = integer_at(results, {"ladder", "largest_complete"})) {
    const auto retrieved = integer_at(results, {"ladder", "largest_retrieved"});
    out.push_back(
        {"Largest context served", count(*largest), "tokens",
         retrieved ? "needles found up to " + count(*retrieved) : "needles found at no rung"});
  }
  std::optional<double> least_free;
  for (const Json& gpu : list_at(results, {"hardware", "gpus"}))
    if (const auto free = number_at(gpu, {"min_free_gib"});
        free && (!least_free || *free < *least_free))
      least_free = free;
  if (least_free)
    out.push_back(
        {"GPU memory free, least", figure(*least_free), "GiB", "sampled, over all cards"});
  else if (const auto rss = number_at(results, {"hardware", "engine", "peak_rss_gib"}))
    out.push_back({"Engine memory, peak", figure(*rss), "GiB", "resident, sampled"});
  return out;
}

}  // namespace anvil::report
