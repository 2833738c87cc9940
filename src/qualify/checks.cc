#include "qualify/checks.h"

#include <algorithm>

#include "base/hash.h"
#include "base/strings.h"
#include "qualify/checks_list.h"

namespace anvil::qualify {

namespace {

const std::vector<Check>& all_checks() {
  static const std::vector<Check> checks = [] {
    std::vector<Check> out(answer_checks().begin(), answer_checks().end());
    out.insert(out.end(), protocol_checks().begin(), protocol_checks().end());
    return out;
  }();
  return checks;
}

std::vector<const Check*> wanted_checks(const CheckPlan& plan) {
  std::vector<const Check*> out;
  for (const Check& check : all_checks())
    if (plan.include.empty() ||
        std::find(plan.include.begin(), plan.include.end(), check.id) != plan.include.end())
      out.push_back(&check);
  return out;
}

std::vector<std::string> efforts_of(const CheckPlan& plan) {
  return plan.efforts.empty() ? std::vector<std::string>{""} : plan.efforts;
}

Result<CheckResult> run_one(const CheckContext& context, const Check& check, int attempt) {
  CheckSender sender(context, std::string(check.id), attempt);
  Grade grade = TRY(check.run(sender));
  CheckResult result;
  result.id = check.id;
  result.effort = context.effort;
  result.attempt = attempt;
  result.verdict = grade.verdict;
  result.proves = check.proves;
  result.detail = base::to_valid_utf8(grade.detail);
  result.rows = sender.rows();
  result.request = sender.request();
  result.answer = sender.answer();
  result.evidence = std::move(grade.evidence);
  return result;
}

}  // namespace

std::string_view name(CheckVerdict verdict) {
  switch (verdict) {
    case CheckVerdict::kPass:
      return "pass";
    case CheckVerdict::kFail:
      return "fail";
    case CheckVerdict::kSkipped:
      break;
  }
  return "skipped";
}

Json to_json(const CheckResult& result) {
  return {{"id", result.id},           {"effort", result.effort},
          {"attempt", result.attempt}, {"verdict", name(result.verdict)},
          {"proves", result.proves},   {"detail", result.detail},
          {"rows", result.rows},       {"request", result.request},
          {"answer", result.answer},   {"evidence", result.evidence}};
}

std::string code_word(int64_t seed, std::string_view part) {
  static constexpr std::string_view kLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ";
  const std::string digest = base::sha256(std::to_string(seed) + "/" + std::string(part));
  const auto number = [&digest](size_t at, unsigned below) {
    return static_cast<unsigned>(std::stoul(digest.substr(at, 6), nullptr, 16)) % below;
  };
  const auto letter = [&](size_t at) { return kLetters[number(at, kLetters.size())]; };
  return std::string{letter(0), letter(6)} + "-" + std::to_string(1000 + number(12, 9000)) + "-" +
         std::string{letter(18), letter(24)};
}

std::span<const CheckInfo> check_registry() {
  static const std::vector<CheckInfo> infos = [] {
    std::vector<CheckInfo> out;
    for (const Check& check : all_checks())
      out.push_back({check.id, check.proves, check.per_effort});
    return out;
  }();
  return infos;
}

Result<void> validate_plan(const CheckPlan& plan) {
  std::vector<std::string> known;
  for (const Check& check : all_checks()) known.emplace_back(check.id);
  for (const std::string& id : plan.include) {
    if (std::find(known.begin(), known.end(), id) != known.end()) continue;
    const auto near = base::did_you_mean(id, known);
    return fail(Kind::kInvalidInput, Side::kClient, "there is no check \"" + id + "\"",
                near ? "did you mean \"" + *near + "\"?" : "known: " + base::join(known, ", "));
  }
  if (plan.attempts < 1)
    return fail(Kind::kInvalidInput, Side::kClient, "checks need at least one attempt");
  return {};
}

int64_t count_results(const CheckPlan& plan) {
  int64_t count = 0;
  const auto efforts = static_cast<int64_t>(efforts_of(plan).size());
  for (const Check* check : wanted_checks(plan))
    count += (check->per_effort ? efforts : 1) * plan.attempts;
  return count;
}

Result<std::vector<CheckResult>> run_checks(
    CheckContext context, const CheckPlan& plan,
    const std::function<void(const CheckResult&)>& finished) {
  TRY(validate_plan(plan));
  const std::vector<std::string> efforts = efforts_of(plan);
  std::vector<CheckResult> results;
  for (size_t i = 0; i < efforts.size(); ++i) {
    context.effort = efforts[i];
    for (const Check* check : wanted_checks(plan)) {
      if (i > 0 && !check->per_effort) continue;
      for (int attempt = 0; attempt < plan.attempts; ++attempt) {
        if (context.cancel.requested()) return fail(base::cancelled_error());
        results.push_back(TRY(run_one(context, *check, attempt)));
        if (finished) finished(results.back());
      }
    }
  }
  return results;
}

}  // namespace anvil::qualify
