#include "evidence/import/campaign.h"

#include <cmath>

#include "base/files.h"
#include "base/hash.h"
#include "evidence/json_access.h"

namespace anvil::evidence::imported {

namespace {

struct Schema {
  std::string_view name;
  std::string_view kind;
  void (*read)(Document&, Campaign&);
};

// Where a converted row begins on a clock of its own: a stamp of 0 would mean that it never came.
constexpr Nanos kRequestStart = kSecond;

constexpr Schema kSchemas[] = {
    {"anvil-serving.benchmark/v1", "capacity", read_capacity},
    {"anvil-serving.fast-tier-bakeoff/v1", "quality", read_bakeoff},
    {"preflight/v2", "preflight", read_preflight},
    {"anvil-serving.context-hardware-sampling/v1", "hardware-sampling", read_sampling},
    {"anvil-serving.hardware-snapshot/v1", "hardware-snapshot", read_snapshot},
    {"anvil-serving.speculative-decoding-snapshot/v1", "acceptance", read_acceptance},
    {"paired-capacity-comparison/v1", "comparison", read_comparison},
    {"anvil-serving.control-evidence/v1", "control", read_control},
    {"anvil-serving-research-source-registry/v1", "sources", read_registry},
};

// Suites carry no schema name; their shape tells them.
constexpr Schema kSuite = {"", "suite", read_suite};

const Schema* schema_of(Document& document) {
  document.schema = text(document.json, "schema");
  if (document.schema.empty()) document.schema = text(document.json, "schema_version");
  for (const Schema& schema : kSchemas)
    if (schema.name == document.schema) return &schema;
  if (document.schema.empty() && member(document.json, "suite").is_string() &&
      member(document.json, "evals").is_array())
    return &kSuite;
  return nullptr;
}

std::string known_schemas() {
  std::string out;
  for (const Schema& schema : kSchemas) out += (out.empty() ? "" : ", ") + std::string(schema.name);
  return out;
}

void read_document(const std::string& path, Document& document, Campaign& campaign) {
  document.kind = "unreadable";
  auto bytes = base::read_file(path);
  if (!bytes) return document.report("", bytes.error().detail);
  document.sha256 = base::sha256(*bytes);
  auto json = base::parse_json(*bytes, document.file);
  if (!json) return document.report("", json.error().detail);
  document.json = std::move(*json);
  const Schema* schema = schema_of(document);
  if (!schema) {
    document.kind = "unknown";
    return document.report(
        "/schema", document.schema.empty()
                       ? "is missing; known are " + known_schemas() + ", and suites by their shape"
                       : "is none of " + known_schemas());
  }
  document.kind = schema->kind;
  schema->read(document, campaign);
}

// The cached tokens of a request that hit the cache, from runs in which every request did.
std::optional<int64_t> hit_size(const std::vector<CapacityRun>& runs, const std::string& model) {
  std::optional<int64_t> size;
  for (const auto& run : runs) {
    if (run.model != model || !run.cache_hit_avg) continue;
    for (const Row* row : run.ok_rows()) {
      if (!row->prompt) continue;
      const auto here = static_cast<int64_t>(
          std::llround(*run.cache_hit_avg * static_cast<double>(*row->prompt)));
      if (!size || here > *size) size = here;
    }
  }
  return size;
}

template <class Find, class List>
auto find_by_file(const List& list, Find file) -> const typename List::value_type* {
  for (const auto& entry : list)
    if (entry.document->file == file) return &entry;
  return nullptr;
}

}  // namespace

std::optional<double> Row::generation_ms() const {
  if (!ttfo_ms || !e2e_ms || *e2e_ms < *ttfo_ms) return std::nullopt;
  return *e2e_ms - *ttfo_ms;
}

std::optional<int64_t> Row::chunks() const {
  if (!content_chunks || !reasoning_chunks) return std::nullopt;
  return *content_chunks + *reasoning_chunks;
}

std::vector<const Row*> CapacityRun::ok_rows() const {
  std::vector<const Row*> out;
  for (const auto& row : rows)
    if (row.ok) out.push_back(&row);
  return out;
}

RequestRow to_request_row(const Row& row, int64_t seq) {
  const auto nanos = [](std::optional<double> ms) -> std::optional<Nanos> {
    if (!ms) return std::nullopt;
    return kRequestStart + std::llround(*ms * static_cast<double>(kMillisecond));
  };
  RequestRow out;
  out.seq = seq;
  out.purpose = row.purpose;
  out.lane = row.lane;
  out.item = row.item;
  out.attempt = row.attempt;
  out.effort = row.effort;
  out.api = row.api;
  out.stream = row.stream;
  out.concurrency = row.concurrency;
  out.stamps.intended = kRequestStart;
  out.stamps.sent = kRequestStart;
  out.stamps.first_output = nanos(row.ttfo_ms);
  out.stamps.first_visible = nanos(row.ttfv_ms);
  out.stamps.done = nanos(row.e2e_ms);
  out.answer.model = row.model;
  out.answer.content = row.content;
  out.answer.finish = row.finish;
  out.answer.usage.prompt = row.prompt;
  out.answer.usage.completion = row.completion;
  out.answer.usage.cached = row.cached;
  out.token_source = row.completion ? "usage" : "none";
  if (!row.ok) {
    out.outcome = Outcome::kTruncated;
    out.error_kind = base::describe(Kind::kProtocol).name;
    out.error_detail = row.error;
  }
  return out;
}

void note_missing(Row& row, bool need_stamps) {
  const auto need = [&](bool there, const char* name) {
    if (!there) row.missing.emplace_back(name);
  };
  if (need_stamps) {
    need(row.ttfo_ms.has_value(), "ttfo");
    need(row.ttfv_ms.has_value(), "ttfv");
  }
  need(row.e2e_ms.has_value(), "e2e");
  need(row.prompt.has_value(), "prompt");
  need(row.completion.has_value(), "completion");
  need(row.cached.has_value(), "cached");
}

void infer_cached(CapacityRun& run, int64_t size) {
  if (!run.cache_hit_avg || size <= 0) return;
  auto rows = run.ok_rows();
  double share = 0;
  for (const Row* row : rows) {
    if (!row->prompt || *row->prompt < size || !row->ttfo_ms) return;
    share += static_cast<double>(size) / static_cast<double>(*row->prompt);
  }
  if (rows.empty() || share <= 0) return;
  const auto n = static_cast<double>(rows.size());
  const double hits = *run.cache_hit_avg * n * n / share;
  const auto cold = static_cast<int64_t>(rows.size()) - std::llround(hits);
  // Only whole requests hit or miss, and only identical prompts make the shares alike.
  if (std::fabs(hits - std::round(hits)) > 1e-6 || cold < 0) return;
  std::sort(rows.begin(), rows.end(),
            [](const Row* a, const Row* b) { return *a->ttfo_ms > *b->ttfo_ms; });
  for (size_t i = 0; i < rows.size(); ++i)
    for (auto& row : run.rows)
      if (&row == rows[i]) row.inferred_cached = static_cast<int64_t>(i) < cold ? 0 : size;
}

const Document* Campaign::document(std::string_view file) const {
  for (const auto& entry : documents)
    if (entry->file == file) return entry.get();
  return nullptr;
}

const CapacityRun* Campaign::run(std::string_view file) const {
  return find_by_file(capacity, file);
}

const Ladder* Campaign::ladder(std::string_view file) const {
  return find_by_file(ladders, file);
}

const Snapshot* Campaign::snapshot_of(std::string_view model) const {
  for (const auto& snapshot : snapshots)
    if (snapshot.model == model) return &snapshot;
  return nullptr;
}

std::vector<const Row*> Campaign::rows() const {
  std::vector<const Row*> out;
  for (const auto& run : capacity)
    for (const auto& row : run.rows) out.push_back(&row);
  for (const auto& one : preflights)
    for (const auto& row : one.rows) out.push_back(&row);
  for (const auto& one : quality)
    for (const auto& item : one.items)
      for (const auto& row : item.attempts) out.push_back(&row);
  for (const auto& one : ladders)
    for (const auto& rung : one.rungs) out.push_back(&rung.row);
  return out;
}

size_t Campaign::problems() const {
  size_t count = 0;
  for (const auto& one : documents) count += one->problems.size();
  return count;
}

Result<Campaign> read_campaign(const std::string& directory) {
  if (!base::is_directory(directory))
    return fail(Kind::kNotFound, Side::kClient, directory + " is not a directory",
                "give the folder that holds the campaign's JSON files");
  Campaign campaign;
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  campaign.name = base::base_name(path);
  for (const auto& name : TRY(base::list_directory(directory))) {
    if (!name.ends_with(".json")) continue;
    campaign.documents.push_back(std::make_unique<Document>());
    campaign.documents.back()->file = name;
    read_document(base::join_path(directory, name), *campaign.documents.back(), campaign);
  }
  if (campaign.documents.empty())
    return fail(Kind::kNotFound, Side::kClient, "no *.json file in " + directory,
                "give the folder that holds the campaign's JSON files; folders below it are not "
                "searched");
  for (auto& run : campaign.capacity)
    if (const auto size = hit_size(campaign.capacity, run.model)) infer_cached(run, *size);
  return campaign;
}

}  // namespace anvil::evidence::imported
