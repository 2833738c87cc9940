#include "evidence/verify.h"

#include <algorithm>

#include "base/files.h"
#include "base/hash.h"
#include "base/version.h"
#include "evidence/artifact.h"
#include "evidence/derivation.h"
#include "evidence/derive.h"
#include "evidence/journal.h"
#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
constexpr size_t kMostMismatches = 1000;
constexpr size_t kLongestShown = 200;

std::string shown(std::string text) {
  if (text.size() <= kLongestShown) return text;
  text.resize(kLongestShown);
  text.append("...");
  return text;
}
std::string shown(const Json& value) {
  return shown(base::canonical(value));
}

// One verification: each check adds to the outcome and reads only the run directory.
class Verifier {
 public:
  Verifier(const RunReader& run, const RenderReport& render)
      : run_(run), render_(render), sealed_(run.state().status == RunState::Status::kSealed) {}

  Verification run() {
    out_.complete = sealed_;
    journal();
    artifacts();
    frozen();
    manifest();
    results();
    decision();
    report();
    out_.ok = out_.mismatches.empty();
    return std::move(out_);
  }

 private:
  void differ(std::string where, std::string recorded, std::string recomputed) {
    if (out_.mismatches.size() < kMostMismatches)
      out_.mismatches.push_back({std::move(where), std::move(recorded), std::move(recomputed)});
  }

  void compare(const std::string& artifact, const Json& recorded, const Json& recomputed) {
    out_.numbers += count_numbers(recomputed);
    for (const auto& difference : base::differences(recorded, recomputed))
      differ(artifact + "#" + difference.pointer, shown(difference.left), shown(difference.right));
  }

  std::string path(const std::string& file) const {
    return base::join_path(run_.directory(), file);
  }

  // Presence, size and hash of every file that the manifest lists, and no file besides. The end of
  // the journal repeats the hashes: where manifest and file disagree it tells which of the two was
  // changed.
  void artifacts() {
    if (!sealed_) return;
    const Json& sealed_files = member(sealing_, "files");
    const Json::array_t& listing = elements(member(run_.manifest(), "artifacts"));
    std::vector<std::string> listed = {"manifest.json"};
    for (size_t i = 0; i < listing.size(); ++i) {
      const std::string file = text(listing[i], "name");
      const std::string entry = "manifest.json#/artifacts/" + std::to_string(i);
      if (file.empty() || file.find('/') != std::string::npos ||
          std::find(listed.begin(), listed.end(), file) != listed.end()) {
        differ(entry, shown(listing[i]), "a file of the run, listed once");
        continue;
      }
      listed.push_back(file);
      const bool known = file == "journal.jsonl" || member(sealed_files, file).is_string();
      if (sealed_files.is_object() && !known)
        differ(entry + "/name", file, "not sealed by the journal");
      artifact(listing[i], file, entry, text(sealed_files, file));
    }
    if (sealed_files.is_object())
      for (const auto& [file, hash] : sealed_files.items())
        if (std::find(listed.begin(), listed.end(), file) == listed.end())
          differ("manifest.json#/artifacts", file + " is not listed", file + " " + shown(hash));
    for (const std::string& file : run_.files())
      if (std::find(listed.begin(), listed.end(), file) == listed.end())
        // Every run has a journal: a list without it is what was damaged.
        differ(file == "journal.jsonl" ? "manifest.json#/artifacts" : file, "not in the manifest",
               "present");
  }

  void artifact(const Json& recorded, const std::string& file, const std::string& entry,
                const std::string& sealed_hash) {
    const auto size = base::file_size(path(file));
    const auto hash =
        size ? base::sha256_file(path(file)) : Result<std::string>(fail(size.error()));
    if (!hash) {
      differ(file, "sha256 " + text(recorded, "sha256"),
             hash.error().kind == Kind::kNotFound ? "missing" : hash.error().detail);
      return;
    }
    ++out_.artifacts;
    // The journal cannot hold its own hash; its chain, whose end the manifest names, vouches for
    // it.
    const bool as_sealed = sealed_hash == *hash || (file == "journal.jsonl" && chain_proven_);
    const std::string listed_hash = text(recorded, "sha256");
    if (integer(recorded, "bytes") != static_cast<int64_t>(*size))
      differ(as_sealed ? entry + "/bytes" : file + "#", shown(member(recorded, "bytes")) + " bytes",
             std::to_string(*size) + " bytes");
    if (listed_hash != *hash)
      differ(as_sealed ? entry + "/sha256" : file + "#", "sha256 " + listed_hash,
             "sha256 " + *hash);
    else if (!sealed_hash.empty() && !as_sealed)
      differ(file + "#", "sealed as sha256 " + sealed_hash, "sha256 " + *hash);
  }

  // The chain of lines; remembers what the lines say about the rest of the run.
  void journal() {
    if (!run_.has("journal.jsonl")) {
      differ("journal.jsonl", "present", "missing");
      return;
    }
    const size_t before = out_.mismatches.size();
    std::string head(kNoPredecessor);
    auto done = run_.for_each_line(
        "journal.jsonl", [&](std::string_view bytes, int64_t position) -> Result<void> {
          const std::string where = "journal.jsonl#/" + std::to_string(position);
          const auto line = base::parse_json(bytes, "the line");
          if (!line) {
            differ(where, shown(std::string(bytes)), line.error().detail);
          } else {
            if (integer(*line, "seq") != position)
              differ(where + "/seq", shown(member(*line, "seq")), std::to_string(position));
            if (text(*line, "prev") != head) differ(where + "/prev", text(*line, "prev"), head);
            if (base::canonical(*line) != bytes)
              differ(where, shown(std::string(bytes)), shown(*line));
            note(*line);
          }
          head = base::sha256(std::string(bytes) + "\n");
          return {};
        });
    if (!done) differ("journal.jsonl#", "a readable journal", done.error().detail);
    if (sealed_ && text(run_.manifest(), "journal_head") != head)
      differ("manifest.json#/journal_head", text(run_.manifest(), "journal_head"), head);
    chain_proven_ = sealed_ && out_.mismatches.size() == before;
  }

  void note(const Json& line) {
    if (text(line, "event") != "end") return;
    const std::string step = text(line, "step");
    if (step == "freeze" && frozen_.is_null()) frozen_ = member(line, "data");
    if (step == "seal") sealing_ = member(line, "data");
  }

  // What was fixed before the first request: the files against the hashes in the journal, and the
  // digests of their canonical forms.
  void frozen() {
    if (!frozen_.is_object()) {
      differ("journal.jsonl#", "the end of the step freeze", "missing");
      return;
    }
    const Json& files = member(frozen_, "files");
    if (files.is_object())
      for (const auto& [file, recorded] : files.items()) {
        const auto bytes = run_.text(file);
        const std::string hash = bytes ? base::sha256(*bytes) : "missing or unreadable";
        if (recorded != hash)
          differ(file + "#", "frozen as sha256 " + shown(recorded), "sha256 " + hash);
      }
    for (const char* name : {"recipe", "policy", "suite", "plan"}) {
      const std::string file = std::string(name) + ".json";
      const auto document = run_.document(file);
      const std::string digest =
          document ? base::sha256(base::canonical(*document)) : document.error().detail;
      const std::string recorded = text(member(member(frozen_, "fixed"), name), "digest");
      if (digest != recorded) differ(file + "#", "digest " + recorded, "digest " + digest);
    }
  }

  // The manifest against what the rest of the run says it must be, and its written form.
  void manifest() {
    if (!run_.has("manifest.json")) {
      differ("manifest.json", "present", "missing");
      return;
    }
    const auto bytes = run_.text("manifest.json");
    const auto stored = run_.document("manifest.json");
    if (!bytes || !stored) {
      differ("manifest.json#", "a JSON document",
             stored ? bytes.error().detail : stored.error().detail);
      return;
    }
    if (base::pretty(*stored) != *bytes)
      differ("manifest.json#", "sha256 " + base::sha256(*bytes),
             "canonical form sha256 " + base::sha256(base::pretty(*stored)));
    if (!frozen_.is_object()) return;
    Json expected = member(frozen_, "fixed");
    if (!expected.is_object()) expected = Json::object();
    expected["schema"] = "anvil/manifest/v1";
    expected["status"] = sealed_ ? "sealed" : "open";
    expected["outcome"] = sealed_ ? member(sealing_, "outcome")
                                  : Json{{"decision", nullptr}, {"failed_step", nullptr}};
    // These two were compared with the files themselves.
    expected["artifacts"] = sealed_ ? member(*stored, "artifacts") : Json::array();
    expected["journal_head"] = sealed_ ? member(*stored, "journal_head") : Json(nullptr);
    compare("manifest.json", *stored, expected);
  }

  // Rows, samples, and results.json derived from them again.
  void results() {
    auto inputs = derivation_inputs(run_);
    if (!inputs) {
      differ("results.json#", "derived from readable documents", inputs.error().detail);
      rows(nullptr);
      return;
    }
    Derivation derivation(std::move(*inputs));
    rows(&derivation);
    const int64_t samples = this->samples(derivation);
    if (sealed_) {
      recount("requests.jsonl", "rows", out_.rows);
      recount("samples.jsonl", "samples", samples);
    }
    results_ = derivation.finish();
    if (!run_.has("results.json")) {
      if (sealed_) differ("results.json", "present", "missing");
      return;
    }
    const auto stored = run_.document("results.json");
    if (!stored)
      differ("results.json#", stored.error().detail, "a JSON document");
    else if (member(*stored, "schema") != member(results_, "schema"))
      // Another form has other members: each would be a difference, and none would mean anything.
      differ("results.json#/schema", shown(member(*stored, "schema")),
             shown(member(results_, "schema")) + ", the form that this build derives");
    else
      compare("results.json", *stored, results_);
  }

  void recount(const std::string& file, const char* what, int64_t found) {
    const auto recorded = integer(sealing_, what);
    if (recorded && *recorded != found)
      differ(file + "#", std::to_string(*recorded) + " " + what,
             std::to_string(found) + " " + what);
  }

  void rows(Derivation* derivation) {
    if (!run_.has("requests.jsonl")) return;
    auto done = run_.for_each_line(
        "requests.jsonl", [&](std::string_view line, int64_t position) -> Result<void> {
          ++out_.rows;
          const auto where = [position] { return "requests.jsonl#/" + std::to_string(position); };
          const auto row = parse_row(line);
          if (!row) {
            differ(where(), shown(std::string(line)), row.error().detail);
            return {};
          }
          // After a gap the rows are judged by what follows it, so that one gap is named once.
          if (row->seq != position + shift_) {
            differ(where() + "/seq", std::to_string(row->seq), std::to_string(position + shift_));
            shift_ = row->seq - position;
          }
          if (derivation) derivation->add(*row);
          return {};
        });
    if (!done) differ("requests.jsonl#", "readable rows", done.error().detail);
  }

  int64_t samples(Derivation& derivation) {
    if (!run_.has("samples.jsonl")) return 0;
    int64_t count = 0;
    auto done = run_.for_each_line("samples.jsonl",
                                   [&](std::string_view line, int64_t position) -> Result<void> {
                                     ++count;
                                     const auto sample = base::parse_json(line, "the sample");
                                     if (!sample)
                                       differ("samples.jsonl#/" + std::to_string(position),
                                              shown(std::string(line)), sample.error().detail);
                                     else
                                       derivation.add_sample(*sample);
                                     return {};
                                   });
    if (!done) differ("samples.jsonl#", "readable samples", done.error().detail);
    return count;
  }

  void decision() {
    if (!run_.has("decision.json")) {
      if (sealed_) differ("decision.json", "present", "missing");
      return;
    }
    const auto stored = run_.document("decision.json");
    const auto policy = run_.document("policy.json");
    if (!stored) {
      differ("decision.json#", stored.error().detail, "a JSON document");
      return;
    }
    // A policy that cannot be read was reported with the frozen files.
    if (policy)
      compare("decision.json", *stored,
              decide(results_, *policy, failed_step(run_), run_.manifest()["recipe"]));
    if (sealed_ &&
        member(member(run_.manifest(), "outcome"), "decision") != member(*stored, "decision"))
      differ("manifest.json#/outcome/decision",
             shown(member(member(run_.manifest(), "outcome"), "decision")),
             shown(member(*stored, "decision")));
  }

  void report() {
    if (!render_ || !run_.has("report.html")) return;
    const auto stored = run_.text("report.html");
    const auto rendered = render_(run_);
    if (!stored || !rendered) {
      differ("report.html#", "a report", stored ? rendered.error().detail : stored.error().detail);
      return;
    }
    if (*stored == *rendered) return;
    const std::string writer = text(member(run_.manifest(), "tool"), "build");
    if (writer != base::build_id()) {
      out_.not_compared.push_back("report.html was written by build " + shown(writer) +
                                  " and this is build " + base::build_id() +
                                  ", which renders differently: its tables were not compared");
      return;
    }
    const auto [left, right] =
        std::mismatch(stored->begin(), stored->end(), rendered->begin(), rendered->end());
    const auto offset = static_cast<size_t>(left - stored->begin());
    differ("report.html#byte=" + std::to_string(offset), excerpt(*stored, offset),
           excerpt(*rendered, offset));
  }

  static std::string excerpt(const std::string& text, size_t offset) {
    return offset >= text.size() ? "end of file" : text.substr(offset, 60);
  }

  const RunReader& run_;
  const RenderReport& render_;
  const bool sealed_;
  Verification out_;
  Json frozen_ = nullptr;      // data of the journal's end of "freeze"
  Json sealing_ = nullptr;     // and of "seal"
  Json results_ = nullptr;     // recomputed
  bool chain_proven_ = false;  // every line of the journal follows from the one before, to the end
  int64_t shift_ = 0;          // seq minus position, after rows that are missing
};
}  // namespace

Result<Verification> verify(const std::string& directory, const RenderReport& render) {
  const RunReader run = TRY(RunReader::open(directory));
  return Verifier(run, render).run();
}

}  // namespace anvil::evidence
