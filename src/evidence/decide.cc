#include <algorithm>
#include <optional>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "evidence/derive.h"
#include "evidence/json_access.h"
#include "evidence/metric_path.h"

namespace anvil::evidence {

namespace {
enum class Op { kLessEqual, kGreaterEqual, kEqual, kLess, kGreater, kNotEqual };

std::optional<Op> op_from(std::string_view name) {
  constexpr std::pair<std::string_view, Op> kOps[] = {
      {"<=", Op::kLessEqual}, {">=", Op::kGreaterEqual}, {"==", Op::kEqual},
      {"<", Op::kLess},       {">", Op::kGreater},       {"!=", Op::kNotEqual}};
  for (const auto& [text, op] : kOps)
    if (text == name) return op;
  return std::nullopt;
}

// Nothing if the two cannot be compared in this way.
std::optional<bool> holds(const Json& value, Op op, const Json& threshold) {
  const bool numbers = value.is_number() && threshold.is_number();
  const bool same_kind = numbers || (value.is_boolean() && threshold.is_boolean()) ||
                         (value.is_string() && threshold.is_string());
  if (!same_kind) return std::nullopt;
  if (op == Op::kEqual) return value == threshold;
  if (op == Op::kNotEqual) return value != threshold;
  if (!numbers) return std::nullopt;
  const double left = value.get<double>(), right = threshold.get<double>();
  switch (op) {
    case Op::kLessEqual:
      return left <= right;
    case Op::kGreaterEqual:
      return left >= right;
    case Op::kLess:
      return left < right;
    default:
      return left > right;
  }
}

struct Gate {
  Json verdict = "not-measured";
  Json value = nullptr;
  std::string where;
  std::string detail;  // why it was not measured
};

class Judge {
 public:
  Judge(const Json& results, const Json& gate)
      : results_(results), gate_(gate), threshold_(member(gate, "threshold")) {}

  Gate run() {
    const auto op = op_from(text(gate_, "op"));
    const auto path = parse_metric_path(text(gate_, "metric"));
    if (!op) return unmeasured("", "the operator \"" + text(gate_, "op") + "\" is unknown");
    if (!path) return unmeasured("", path.error().detail);
    op_ = *op;
    matches_ = match(results_, *path, member(gate_, "select"));
    std::string over = text(gate_, "over");
    if (over.empty()) over = "every";
    if (over == "count") return count();
    if (matches_.found.empty())
      return unmeasured(matches_.collection, "nothing in the results matches the metric");
    if (over == "every") return every();
    if (over == "any") return any();
    if (over == "min" || over == "max" || over == "sum") return aggregate(over);
    return unmeasured("", "\"" + over + "\" is not a way to combine values");
  }

 private:
  static Gate unmeasured(std::string where, std::string why) {
    return Gate{"not-measured", nullptr, std::move(where), std::move(why)};
  }

  static bool known(const MetricMatch& match) { return match.value && !match.value->is_null(); }

  Gate judged(const Json& value, const std::string& where) const {
    const auto outcome = holds(value, op_, threshold_);
    if (!outcome) return unmeasured(where, "the value cannot be compared with the threshold");
    return Gate{*outcome ? "pass" : "fail", value, where, ""};
  }

  // True if `a` is further from passing than `b`: of two values that pass, or two that fail, the
  // worse one. Equal values keep the first.
  bool worse(const Json& a, const Json& b) const {
    if (!a.is_number() || !b.is_number()) return false;
    const double left = a.get<double>(), right = b.get<double>();
    switch (op_) {
      case Op::kLessEqual:
      case Op::kLess:
        return left > right;
      case Op::kGreaterEqual:
      case Op::kGreater:
        return left < right;
      default:
        return false;
    }
  }

  Gate every() const {
    std::optional<Gate> worst, missing;
    for (const MetricMatch& match : matches_.found) {
      const Gate one = known(match) ? judged(*match.value, match.pointer)
                                    : unmeasured(match.pointer, "not measured there");
      if (one.verdict == "not-measured") {
        if (!missing) missing = one;
      } else if (!worst || (one.verdict == "fail" && worst->verdict == "pass") ||
                 (one.verdict == worst->verdict && worse(one.value, worst->value))) {
        worst = one;
      }
    }
    // One failure decides; otherwise one value that is missing keeps the gate open.
    if (worst && worst->verdict == "fail") return *worst;
    return missing ? *missing : *worst;
  }

  Gate any() const {
    std::optional<Gate> best, missing;
    for (const MetricMatch& match : matches_.found) {
      const Gate one = known(match) ? judged(*match.value, match.pointer)
                                    : unmeasured(match.pointer, "not measured there");
      if (one.verdict == "not-measured") {
        if (!missing) missing = one;
      } else if (!best || (one.verdict == "pass" && best->verdict == "fail") ||
                 (one.verdict == best->verdict && worse(best->value, one.value))) {
        best = one;
      }
    }
    if (best && best->verdict == "pass") return *best;
    return missing ? *missing : *best;
  }

  Gate aggregate(const std::string& over) const {
    const MetricMatch* chosen = nullptr;
    double sum = 0;
    bool whole = true;
    int64_t whole_sum = 0;
    for (const MetricMatch& match : matches_.found) {
      if (!known(match)) return unmeasured(match.pointer, "not measured there");
      if (!match.value->is_number()) return unmeasured(match.pointer, "not a number");
      const double value = match.value->get<double>();
      sum += value;
      whole = whole && match.value->is_number_integer() &&
              !__builtin_add_overflow(whole_sum, match.value->get<int64_t>(), &whole_sum);
      if (!chosen || (over == "min" ? value < chosen->value->get<double>()
                                    : value > chosen->value->get<double>()))
        chosen = &match;
    }
    if (over == "sum")
      return judged(whole ? Json(whole_sum) : Json(sum),
                    matches_.collection.empty() ? chosen->pointer : matches_.collection);
    return judged(*chosen->value, chosen->pointer);
  }

  Gate count() const {
    if (!matches_.collection_exists) return unmeasured("", "there is no collection to count in");
    const auto counted = std::count_if(matches_.found.begin(), matches_.found.end(), known);
    return judged(Json(static_cast<int64_t>(counted)), matches_.collection);
  }

  const Json& results_;
  const Json& gate_;
  const Json& threshold_;
  Op op_ = Op::kEqual;
  MetricMatches matches_;
};

std::string written(const Json& value) {
  return value.is_string() ? value.get<std::string>() : base::canonical(value);
}

// "TTFO stays low: 812.4 ms at /lanes/0/ttfo_ms/max, <= 500 ms required"
std::string reason(const Json& gate) {
  const std::string unit = text(gate, "unit").empty() ? "" : " " + text(gate, "unit");
  std::string out = "gate " + text(gate, "id");
  const std::string where = text(gate, "where");
  if (text(gate, "verdict") == "fail")
    out += " failed: " + written(gate["value"]) + unit + " at " + where;
  else
    out += " not measured" + (where.empty() ? "" : " at " + where) + ": " + text(gate, "detail");
  return out + ", required " + text(gate, "op") + " " + written(gate["threshold"]) + unit;
}

// Before any measurement: nothing is known about the recipe but that it could not be served as
// declared.
bool failed_before_evidence(const Json& failed_step) {
  for (const std::string_view step : {"freeze", "preflight", "snapshot", "launch", "identity"})
    if (text(failed_step, "step") == step) return true;
  return false;
}

Json evaluate(const Json& results, const Json& gate) {
  const Gate outcome = Judge(results, gate).run();
  std::string on_fail = text(gate, "on_fail");
  if (on_fail.empty()) on_fail = "no-promotion";
  std::string over = text(gate, "over");
  if (over.empty()) over = "every";
  return Json{{"id", text(gate, "id")},
              {"metric", text(gate, "metric")},
              {"over", over},
              {"verdict", outcome.verdict},
              {"value", outcome.value},
              {"threshold", member(gate, "threshold")},
              {"op", text(gate, "op")},
              {"unit", text(gate, "unit")},
              {"where", outcome.where},
              {"on_fail", on_fail},
              {"because", text(gate, "because")},
              {"detail", outcome.detail}};
}
}  // namespace

Json decide(const Json& results, const Json& policy, const Json& failed_step, const Json& recipe) {
  Json gates = Json::array();
  std::vector<std::string> rejecting, blocking, watching;
  // A person who stops a run says nothing against the recipe: such a run never rejects.
  const bool stopped = text(failed_step, "kind") == base::describe(Kind::kCancelled).name;
  if (failed_step.is_object()) {
    const std::string klass = text(failed_step, "class");
    const std::string why = "the step " + text(failed_step, "step") + " failed" +
                            (klass.empty() ? "" : " (" + klass + ")") + ": " +
                            text(failed_step, "detail");
    (failed_before_evidence(failed_step) && !stopped ? rejecting : blocking).push_back(why);
  }
  for (const Json& declared : elements(member(policy, "gates"))) {
    Json gate = evaluate(results, declared);
    if (gate["verdict"] != "pass") {
      const bool failed = gate["verdict"] == "fail";
      if (gate["on_fail"] == "watch")
        watching.push_back(reason(gate));
      else if (gate["on_fail"] == "reject" && failed && !stopped)
        rejecting.push_back(reason(gate));
      else
        blocking.push_back(reason(gate));
    }
    gates.push_back(std::move(gate));
  }
  if (flag(policy, "requires_pinned") && !flag(recipe, "pinned")) {
    std::vector<std::string> fields;
    for (const Json& field : elements(member(recipe, "unpinned")))
      if (field.is_string()) fields.push_back(field.get<std::string>());
    blocking.push_back(
        "the policy requires a pinned recipe" +
        (fields.empty() ? "" : ", and these fields are not: " + base::join(fields, ", ")));
  }

  std::string decision;
  std::vector<std::string> reasons = rejecting;
  reasons.insert(reasons.end(), blocking.begin(), blocking.end());
  reasons.insert(reasons.end(), watching.begin(), watching.end());
  if (!rejecting.empty()) {
    decision = "rejected";
  } else if (!blocking.empty()) {
    decision = "no-promotion";
  } else if (!watching.empty()) {
    decision = "watch";
  } else if (text(recipe, "role") == "control") {
    decision = "control";
    reasons = {"every gate passed, and the recipe is a control, which is never promoted"};
  } else {
    decision = "promote-eligible";
    reasons = {"every gate passed"};
  }
  return Json{{"schema", "anvil/decision/v1"},
              {"decision", decision},
              {"reasons", reasons},
              {"gates", gates},
              {"failed_step", failed_step.is_object() ? failed_step : Json(nullptr)},
              {"policy_digest", base::sha256(base::canonical(policy))},
              {"results_sha256", base::sha256(base::pretty(results))}};
}

}  // namespace anvil::evidence
