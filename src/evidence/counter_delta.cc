#include "evidence/counter_delta.h"

#include <optional>

#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
constexpr std::string_view kTotals[] = {"prompt_tokens",  "cached_tokens", "output_tokens",
                                        "preemptions",    "drafts",        "draft_tokens",
                                        "accepted_tokens"};
constexpr std::string_view kPositions = "accepted_per_position";

std::optional<double> rose_by(const Json& before, const Json& after, bool& reset) {
  if (!before.is_number() || !after.is_number()) return std::nullopt;
  const double difference = after.get<double>() - before.get<double>();
  if (difference < 0) reset = true;
  return difference;
}
}  // namespace

Json counter_delta(const Json& before, const Json& after) {
  if (!before.is_object() || !after.is_object()) return nullptr;
  bool reset = false;
  std::map<std::string_view, std::optional<double>> rose;
  for (const auto key : kTotals)
    rose[key] = rose_by(member(before, key), member(after, key), reset);
  std::vector<std::optional<double>> positions;
  const auto& earlier = elements(member(before, kPositions));
  const auto& later = elements(member(after, kPositions));
  for (size_t i = 0; i < later.size(); ++i) {
    // A position that the engine has not named before has not accepted anything before.
    const Json zero = 0;
    positions.push_back(rose_by(i < earlier.size() ? earlier[i] : zero, later[i], reset));
  }

  Json out{{"reset", reset},
           {"acceptance", nullptr},
           {"mean_acceptance_length", nullptr},
           {"acceptance_by_position", nullptr}};
  for (const auto key : kTotals) out[std::string(key)] = reset ? Json(nullptr) : or_null(rose[key]);
  if (reset) return out;
  const auto &drafts = rose["drafts"], &drafted = rose["draft_tokens"];
  const auto& accepted = rose["accepted_tokens"];
  if (accepted && drafted && *drafted > 0) out["acceptance"] = *accepted / *drafted;
  if (accepted && drafts && *drafts > 0) out["mean_acceptance_length"] = 1 + *accepted / *drafts;
  if (!positions.empty() && drafts && *drafts > 0) {
    out["acceptance_by_position"] = Json::array();
    for (const auto& position : positions)
      out["acceptance_by_position"].push_back(position ? Json(*position / *drafts) : Json(nullptr));
  }
  return out;
}

}  // namespace anvil::evidence
