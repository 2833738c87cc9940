#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "evidence/import/document.h"
#include "evidence/request_row.h"

namespace anvil::evidence::imported {

// One request of the campaign in our words. Durations in milliseconds as the old client recorded
// them, from its request start (which includes connecting); absent where the file has none.
struct Row {
  const Document* document = nullptr;
  std::string pointer;
  std::string model;
  Purpose purpose = Purpose::kLane;
  std::string lane, item;
  int attempt = 0;
  std::string effort;
  wire::Api api = wire::Api::kChat;
  bool stream = true;
  int concurrency = 1;
  std::optional<int64_t> planned_context;  // estimated tokens that were asked for
  std::optional<int64_t> prompt, completion, cached;
  std::optional<int64_t> inferred_cached;  // follows from totals; the row itself does not say
  std::optional<double> ttfo_ms, ttfv_ms, e2e_ms;
  std::optional<int64_t> content_chunks, reasoning_chunks;
  std::string finish, content;
  bool ok = true;
  std::string error;                 // what the old client said of a failed attempt
  std::vector<std::string> missing;  // of: ttfo, ttfv, e2e, prompt, completion, cached, outcome
  bool complete() const { return missing.empty(); }
  std::optional<double> generation_ms() const;
  // Output chunks that carried reasoning or content.
  std::optional<int64_t> chunks() const;
};

// The row in the form of requests.jsonl, on a clock of its own that reads one second when the
// request starts. An attempt that the old client called failed keeps no more than that: outcome
// `truncated` with its message.
RequestRow to_request_row(const Row& row, int64_t seq);

struct CapacityRun {
  const Document* document = nullptr;
  std::string model, engine, started_at;
  std::optional<int64_t> requests, completed, failed, concurrency, context_tokens,
      max_context_tokens, max_tokens;
  std::optional<double> wall_ms, cache_hit_avg;
  std::vector<Row> rows;  // the ones that succeeded, then the ones that failed
  std::vector<const Row*> ok_rows() const;
};

struct Rung {
  Row row;
  std::optional<int64_t> target, attempted;
  std::optional<double> chars_per_token;
};
struct Ladder {
  const Document* document = nullptr;
  std::string model, started_at;
  std::optional<int64_t> cap_tokens;
  std::vector<Rung> rungs;
};

struct Preflight {
  const Document* document = nullptr;
  std::string model, effort;
  std::vector<Row> rows;
};

// A check of a quality suite: the same task several times.
struct QualityItem {
  std::string id;
  std::string section;  // "tool", "session", "intelligence", or the name of a suite
  std::string pointer;
  std::optional<int64_t> pass_count;
  std::vector<Row> attempts;
};
struct Quality {
  const Document* document = nullptr;
  std::string model, started_at;
  std::vector<QualityItem> items;
};

struct SampledGpu {
  std::string role, pointer;
  std::optional<double> max_used_mib, min_free_mib, max_power_w;
  std::optional<bool> reserve_pass;
};
struct SampledSegment {
  std::string pointer, first_sample, last_sample;
  std::optional<int64_t> samples, prompt_tokens;
  std::vector<SampledGpu> gpus;
};
struct Sampling {
  const Document* document = nullptr;
  std::string model, source_artifact;
  std::optional<double> interval_ms, reserve_mib;
  std::vector<SampledSegment> segments;
};

struct SnapshotGpu {
  std::string role, pointer;
  std::optional<int64_t> total_mib, used_mib, free_mib;
  std::optional<bool> reserve_pass;
};
struct Snapshot {
  const Document* document = nullptr;
  std::string model;
  std::optional<double> reserve_mib;
  std::vector<SnapshotGpu> gpus;
};

struct Acceptance {
  const Document* document = nullptr;
  std::string model, observed_at;
  std::optional<int64_t> draft_length, drafts, draft_tokens, accepted, chat_requests,
      responses_requests;
  std::vector<int64_t> per_position;
};

struct Arm {
  std::string name, model;
  std::vector<std::string> artifacts;
};
struct Comparison {
  const Document* document = nullptr;
  Arm treatment, control;  // "dspark" and "control" in the file
  std::string retained;    // file of a run that was left out of the medians, "" if none
};

// Everything that was found in a directory. Documents stay where they are, so that the rest may
// point to them; may be moved, not copied. Used by one thread.
struct Campaign {
  std::string name;                                  // the directory's own name
  std::vector<std::unique_ptr<Document>> documents;  // by file name
  std::vector<CapacityRun> capacity;
  std::vector<Ladder> ladders;
  std::vector<Preflight> preflights;
  std::vector<Quality> quality;
  std::vector<Sampling> samplings;
  std::vector<Snapshot> snapshots;
  std::vector<Acceptance> acceptance;
  std::vector<Comparison> comparisons;

  const Document* document(std::string_view file) const;
  const CapacityRun* run(std::string_view file) const;
  const Ladder* ladder(std::string_view file) const;
  const Snapshot* snapshot_of(std::string_view model) const;
  // All rows, in the order of the files and of the places in them.
  std::vector<const Row*> rows() const;
  size_t problems() const;
};

// Reads every *.json of the directory (not of folders below it). A file that cannot be read, is no
// JSON or of no known schema is a document with problems, not an error; a directory that cannot be
// read, or that holds no such file, is an error.
Result<Campaign> read_campaign(const std::string& directory);

// One reader per schema; each adds what it understands to the campaign.
void read_capacity(Document& document, Campaign& campaign);
void read_bakeoff(Document& document, Campaign& campaign);  // context ladders and quality suites
void read_preflight(Document& document, Campaign& campaign);
void read_sampling(Document& document, Campaign& campaign);
void read_snapshot(Document& document, Campaign& campaign);
void read_acceptance(Document& document, Campaign& campaign);
void read_comparison(Document& document, Campaign& campaign);
void read_suite(Document& document, Campaign& campaign);
void read_control(Document& document, Campaign& campaign);
void read_registry(Document& document, Campaign& campaign);

// What is derivable of cached tokens per request, where a capacity file has only their mean share.
void infer_cached(CapacityRun& run, int64_t hit_size);
// Notes in `missing` what a row lacks; `need_stamps` for rows of timing files.
void note_missing(Row& row, bool need_stamps);
// The token counts of an OpenAI `usage` object, or of a Responses one.
void read_usage(const Node& usage, Row& row);

}  // namespace anvil::evidence::imported
