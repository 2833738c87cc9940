#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evidence/compare.h"
#include "evidence/verify.h"

namespace anvil::evidence {

// A campaign is a folder beside the run directories:
//   campaign.json    what was fixed before the first run ("schema":"anvil/campaign/v1", arms, diff,
//                    order, stop rule, digests, tool, anchor)
//   journal.jsonl    hash-chained: "freeze" with the SHA-256 of campaign.json, one "run" for each
//   run
//                    that ended, "end"
//   runs/            one run directory each, as anvil qualify makes them
//   comparison.json  derived from the runs' results.json by compare()
//   report.html
//
// Lifecycle: create() freezes; add_run() after each run; finish() once. A campaign that is not
// finished keeps everything that was run and says so. One thread.
class CampaignWriter {
 public:
  // `name` becomes part of the folder's name.
  static Result<std::unique_ptr<CampaignWriter>> create(const std::string& runs_dir,
                                                        const std::string& name, Json frozen);
  ~CampaignWriter();

  const std::string& id() const;
  const std::string& directory() const;
  std::string runs_folder() const;

  // {"index","arm":"a"|"b","pair","run": id or null,"excluded": null or the reason}
  Result<void> add_run(const Json& entry);
  Result<void> write_document(std::string_view name, const Json& document);
  Result<void> write_text(std::string_view name, std::string_view bytes);
  // Ends the journal with the hashes of comparison.json and report.html.
  Result<void> finish(const Json& outcome);

 private:
  struct State;
  explicit CampaignWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// What a campaign's folder says.
struct Campaign {
  std::string directory;
  Json frozen;                         // campaign.json
  std::vector<RunForComparison> runs;  // in the order in which they ran, results included
  bool finished = false;
};
// True when the folder holds campaign.json.
bool is_campaign(const std::string& directory);
Result<Campaign> read_campaign(const std::string& directory);
// comparison.json of what is there: a pure function of the files.
Result<Json> derive_comparison(const Campaign& campaign);

using RenderCampaign = std::function<Result<std::string>(const Campaign&, const Json& comparison)>;

// Verifies every run, the chain, comparison.json and the report. Places in a run are prefixed with
// "runs/RUN/".
Result<Verification> verify_campaign(const std::string& directory, const RenderReport& render_run,
                                     const RenderCampaign& render_campaign);

}  // namespace anvil::evidence
