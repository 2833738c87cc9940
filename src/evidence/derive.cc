#include "evidence/derive.h"

#include "evidence/derivation.h"
#include "evidence/derive_parts.h"
#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
// A document of the run, null if it has none.
Result<Json> optional_document(const RunReader& run, std::string_view name) {
  if (!run.has(name)) return Json(nullptr);
  return run.document(name);
}

bool begins(const Json& line, std::string_view step) {
  return text(line, "event") == "begin" && text(line, "step") == step;
}

// Journal lines before `step` began for the first time.
Result<std::vector<Json>> journal_before(const RunReader& run, std::string_view step) {
  if (!run.has("journal.jsonl")) return std::vector<Json>();
  std::vector<Json> lines = TRY(run.journal());
  for (size_t i = 0; i < lines.size(); ++i)
    if (begins(lines[i], step)) {
      lines.resize(i);
      break;
    }
  return lines;
}
}  // namespace

Result<DerivationInputs> derivation_inputs(const RunReader& run) {
  DerivationInputs inputs;
  inputs.plan = TRY(optional_document(run, "plan.json"));
  inputs.suite = TRY(optional_document(run, "suite.json"));
  inputs.identity = TRY(optional_document(run, "identity.json"));
  inputs.launch = TRY(optional_document(run, "launch.json"));
  inputs.checks = TRY(optional_document(run, "checks.json"));
  inputs.load = TRY(optional_document(run, "load.json"));
  inputs.calibration = TRY(optional_document(run, "calibration.json"));
  inputs.journal = TRY(journal_before(run, "derive"));
  return inputs;
}

struct Derivation::State {
  explicit State(DerivationInputs from)
      : inputs(std::move(from)), lanes(inputs), ladder(inputs.plan, inputs.suite) {}

  DerivationInputs inputs;
  RequestTotals totals;
  Lanes lanes;
  Ladder ladder;
  Hardware hardware;
  int64_t probes = 0, probes_failed = 0;
};

Derivation::Derivation(DerivationInputs inputs)
    : state_(std::make_unique<State>(std::move(inputs))) {}
Derivation::~Derivation() = default;

void Derivation::add(const RequestRow& row) {
  State& state = *state_;
  state.totals.add(row);
  switch (row.purpose) {
    case Purpose::kLane:
      state.lanes.add(row);
      break;
    case Purpose::kLadder:
      state.ladder.add(row);
      break;
    case Purpose::kProbe:
      ++state.probes;
      state.probes_failed += row.outcome != Outcome::kOk;
      state.ladder.add_probe(row);
      break;
    case Purpose::kCheck:
    case Purpose::kFingerprint:
    case Purpose::kCalibrate:
    case Purpose::kWarmup:
      break;
  }
}

void Derivation::add_sample(const Json& sample) {
  state_->hardware.add(sample);
}

Json Derivation::finish() {
  State& state = *state_;
  const DerivationInputs& inputs = state.inputs;
  Json lanes = state.lanes.finish();
  Json knees = state.lanes.knees(lanes);
  return Json{{"schema", "anvil/results/v2"},
              {"requests", state.totals.finish()},
              {"identity", derive_identity(inputs.identity)},
              {"startup", derive_startup(inputs.launch, inputs.journal)},
              {"checks", derive_checks(inputs.checks)},
              {"fingerprint", derive_fingerprint(inputs.checks)},
              {"lanes", std::move(lanes)},
              {"knees", std::move(knees)},
              {"ladder", state.ladder.finish()},
              {"health",
               {{"probes", state.probes},
                // No probe is no proof of health.
                {"failed", state.probes > 0 ? Json(state.probes_failed) : Json(nullptr)}}},
              {"hardware", state.hardware.finish()},
              {"stop", derive_stop(inputs.launch)},
              {"wall_clock", derive_wall_clock(inputs.journal)}};
}

Result<Json> derive(const RunReader& run) {
  Derivation derivation(TRY(derivation_inputs(run)));
  auto rows = run.for_each_row([&](const RequestRow& row) -> Result<void> {
    derivation.add(row);
    return {};
  });
  if (!rows) return fail(std::move(rows).error());
  auto samples = run.for_each_sample([&](const Json& sample) -> Result<void> {
    derivation.add_sample(sample);
    return {};
  });
  if (!samples) return fail(std::move(samples).error());
  return derivation.finish();
}

Json failed_step(const RunReader& run) {
  const auto journal = journal_before(run, "decide");
  if (!journal) return nullptr;
  for (const Json& line : *journal) {
    if (text(line, "event") != "fail") continue;
    const Json& data = member(line, "data");
    // An engine that dies later fails the step that was talking to it; why it died stands here.
    Json klass = nullptr;
    if (text(data, "kind") != "cancelled")
      if (const auto launch = optional_document(run, "launch.json"))
        klass = member(member(*launch, "failure"), "class");
    return Json{{"step", text(line, "step")},
                {"kind", text(data, "kind")},
                {"class", klass},
                {"detail", text(data, "detail")}};
  }
  return nullptr;
}

}  // namespace anvil::evidence
