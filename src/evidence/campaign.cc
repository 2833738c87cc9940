#include "evidence/campaign.h"

#include <set>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"
#include "base/version.h"
#include "evidence/journal.h"
#include "evidence/json_access.h"
#include "evidence/run_reader.h"

namespace anvil::evidence {

namespace {
constexpr uint64_t kMostJournal = 64ull << 20;

Result<Json> read_document(const std::string& path) {
  return base::parse_json(TRY(base::read_file(path)), path);
}

std::string manifest_of(const std::string& directory, const std::string& run) {
  return base::join_path(directory, "runs/" + run + "/manifest.json");
}

struct Lines {
  std::vector<Json> lines;
  std::string break_at;  // "" while each line follows from the one before
};

Result<Lines> read_journal(const std::string& path) {
  const std::string bytes = TRY(base::read_file(path, kMostJournal));
  Lines out;
  std::string expected(kNoPredecessor);
  size_t from = 0;
  while (from < bytes.size()) {
    const size_t end = bytes.find('\n', from);
    if (end == std::string::npos) break;  // a write that a crash cut short
    const std::string line = bytes.substr(from, end - from);
    const Json parsed = Json::parse(line, nullptr, false);
    const bool follows = parsed.is_object() && text(parsed, "prev") == expected;
    if (!follows && out.break_at.empty())
      out.break_at = "journal.jsonl#/" + std::to_string(out.lines.size());
    out.lines.push_back(parsed);
    expected = base::sha256(line + "\n");
    from = end + 1;
  }
  return out;
}
}  // namespace

struct CampaignWriter::State {
  std::string id, directory;
  std::optional<Journal> journal;
};

CampaignWriter::CampaignWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
CampaignWriter::~CampaignWriter() = default;
const std::string& CampaignWriter::id() const {
  return state_->id;
}
const std::string& CampaignWriter::directory() const {
  return state_->directory;
}
std::string CampaignWriter::runs_folder() const {
  return base::join_path(state_->directory, "runs");
}

Result<std::unique_ptr<CampaignWriter>> CampaignWriter::create(const std::string& runs_dir,
                                                               const std::string& name,
                                                               Json frozen) {
  auto state = std::make_unique<State>();
  const base::WallAnchor now = base::wall_anchor();
  state->id =
      base::utc_compact(now.wall) + "-" + base::in_file_name(name) + "-" + base::random_hex(3);
  state->directory = base::join_path(runs_dir, state->id);
  TRY(base::make_directories(base::join_path(state->directory, "runs")));
  TRY(base::prove_writable(state->directory));
  frozen["schema"] = "anvil/campaign/v1";
  frozen["id"] = state->id;
  frozen["anchor"] = {{"mono_ns", now.mono}, {"wall_ns", now.wall}, {"utc", base::utc(now.wall)}};
  frozen["tool"] = {{"version", base::version()}, {"build", base::build_id()}};
  const std::string bytes = base::pretty(frozen);
  TRY(base::write_file_atomic(base::join_path(state->directory, "campaign.json"), bytes));
  state->journal = TRY(Journal::open(base::join_path(state->directory, "journal.jsonl")));
  TRY(state->journal->append("freeze", "campaign", {{"sha256", base::sha256(bytes)}}));
  return std::unique_ptr<CampaignWriter>(new CampaignWriter(std::move(state)));
}

Result<void> CampaignWriter::add_run(const Json& entry) {
  Json data = entry;
  // The run's manifest holds the hashes of everything else in it.
  const std::string manifest = manifest_of(state_->directory, text(entry, "run"));
  data["manifest_sha256"] =
      base::exists(manifest) ? Json(TRY(base::sha256_file(manifest))) : Json();
  return state_->journal->append("run", "campaign", std::move(data));
}

Result<void> CampaignWriter::write_document(std::string_view name, const Json& document) {
  return write_text(name, base::pretty(document));
}

Result<void> CampaignWriter::write_text(std::string_view name, std::string_view bytes) {
  return base::write_file_atomic(base::join_path(state_->directory, name), bytes);
}

Result<void> CampaignWriter::finish(const Json& outcome) {
  Json data = outcome;
  for (const char* name : {"comparison.json", "report.html"}) {
    const std::string path = base::join_path(state_->directory, name);
    if (base::exists(path)) data["sha256"][name] = TRY(base::sha256_file(path));
  }
  return state_->journal->append("end", "campaign", std::move(data));
}

bool is_campaign(const std::string& directory) {
  return base::exists(base::join_path(directory, "campaign.json"));
}

Result<Campaign> read_campaign(const std::string& directory) {
  Campaign campaign;
  campaign.directory = directory;
  campaign.frozen = TRY(read_document(base::join_path(directory, "campaign.json")));
  const Lines journal = TRY(read_journal(base::join_path(directory, "journal.jsonl")));
  for (const Json& line : journal.lines) {
    if (text(line, "event") == "end") campaign.finished = true;
    if (text(line, "event") != "run") continue;
    const Json& data = member(line, "data");
    RunForComparison run;
    run.index = integer(data, "index").value_or(static_cast<int64_t>(campaign.runs.size()));
    run.arm = text(data, "arm");
    run.pair = integer(data, "pair").value_or(0);
    run.run = text(data, "run");
    if (const std::string why = text(data, "excluded"); !why.empty()) run.excluded = why;
    if (run.run.find('/') == std::string::npos && !run.run.empty()) {
      const auto reader = RunReader::open(base::join_path(directory, "runs/" + run.run));
      if (reader && reader->has("results.json"))
        if (auto document = reader->document("results.json")) run.results = std::move(*document);
    }
    campaign.runs.push_back(std::move(run));
  }
  return campaign;
}

Result<Json> derive_comparison(const Campaign& campaign) {
  return compare(member(campaign.frozen, "plan"), campaign.runs);
}

Result<Verification> verify_campaign(const std::string& directory, const RenderReport& render_run,
                                     const RenderCampaign& render_campaign) {
  Verification out;
  if (!base::exists(base::join_path(directory, "journal.jsonl"))) {
    out.mismatches.push_back({"journal.jsonl", "present", "missing"});
    return out;
  }
  const Campaign campaign = TRY(read_campaign(directory));
  const Lines journal = TRY(read_journal(base::join_path(directory, "journal.jsonl")));
  out.complete = campaign.finished;
  const auto differ = [&out](std::string where, std::string recorded, std::string recomputed) {
    out.mismatches.push_back({std::move(where), std::move(recorded), std::move(recomputed)});
  };
  const auto check_hash = [&](const std::string& name, const std::string& recorded) {
    const auto hash = base::sha256_file(base::join_path(directory, name));
    ++out.artifacts;
    const std::string found = hash ? *hash : "missing";
    if (found != recorded) differ(name, recorded, found);
  };

  if (!journal.break_at.empty())
    differ(journal.break_at, "a line that follows from the one before", "another one");
  for (const Json& line : journal.lines) {
    const Json& data = member(line, "data");
    if (text(line, "event") == "freeze") check_hash("campaign.json", text(data, "sha256"));
    if (text(line, "event") == "end" && flag(data, "cancelled")) out.complete = false;
    if (text(line, "event") == "run" && member(data, "manifest_sha256").is_string())
      check_hash("runs/" + text(data, "run") + "/manifest.json", text(data, "manifest_sha256"));
    if (text(line, "event") == "end")
      for (const char* name : {"comparison.json", "report.html"})
        if (member(data, "sha256").contains(name))
          check_hash(name, text(member(data, "sha256"), name));
  }
  std::set<std::string> known;
  for (const RunForComparison& run : campaign.runs) known.insert(run.run);
  for (const std::string& name : base::list_directory(base::join_path(directory, "runs"))
                                     .value_or(std::vector<std::string>()))
    if (!known.contains(name))
      differ("runs/" + name, "a run that the journal names", "another one");
  for (const std::string& name : TRY(base::list_directory(directory)))
    if (name != "campaign.json" && name != "journal.jsonl" && name != "runs" &&
        name != "comparison.json" && name != "report.html")
      differ(name, "no such file", "present");

  for (const RunForComparison& run : campaign.runs) {
    if (run.run.empty()) continue;
    const std::string place = "runs/" + run.run;
    auto verified = verify(base::join_path(directory, place), render_run);
    if (!verified) {
      differ(place, "a run directory", base::to_string(verified.error()));
      continue;
    }
    out.artifacts += verified->artifacts;
    out.numbers += verified->numbers;
    out.rows += verified->rows;
    for (auto& mismatch : verified->mismatches)
      differ(place + "/" + mismatch.where, mismatch.recorded, mismatch.recomputed);
    for (const auto& what : verified->not_compared) out.not_compared.push_back(place + ": " + what);
  }

  const auto recomputed = derive_comparison(campaign);
  const std::string comparison_path = base::join_path(directory, "comparison.json");
  if (!recomputed) {
    differ("comparison.json", "derived from the runs", base::to_string(recomputed.error()));
  } else if (base::exists(comparison_path) || campaign.finished) {
    const auto stored = read_document(comparison_path);
    out.numbers += count_numbers(*recomputed);
    if (!stored) {
      differ("comparison.json", base::to_string(stored.error()), "a JSON document");
    } else {
      for (const auto& difference : base::differences(*stored, *recomputed))
        differ("comparison.json#" + difference.pointer, base::canonical(difference.left),
               base::canonical(difference.right));
    }
    const std::string report_path = base::join_path(directory, "report.html");
    if (render_campaign && base::exists(report_path)) {
      const auto page = base::read_file(report_path);
      const auto rendered = render_campaign(campaign, *recomputed);
      const std::string writer = text(member(campaign.frozen, "tool"), "build");
      if (!page || !rendered)
        differ("report.html", "a report", "one that cannot be read or rendered");
      else if (*page != *rendered && writer == base::build_id())
        differ("report.html", "as stored", "rendered differently from the same evidence");
      else if (*page != *rendered)
        out.not_compared.push_back("report.html was written by build " + writer +
                                   ", which renders differently: it was not compared");
    }
  }
  out.ok = out.mismatches.empty();
  return out;
}

}  // namespace anvil::evidence
