#include "evidence/run_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/strings.h"
#include "evidence/artifact.h"
#include "evidence/journal.h"

namespace anvil::evidence {

namespace {
constexpr uint64_t kReserve = 256u << 10;
constexpr std::string_view kReserveName = "reserve";

// Files that people open without tools, and those that the chain hangs on, stay as they are at any
// size.
bool may_compress(std::string_view file) {
  return file != "manifest.json" && file != "journal.jsonl" && file != "report.html" &&
         !file.ends_with(".toml") && !file.ends_with(".zst");
}

Result<void> take_reserve(const std::string& path) {
  const base::Fd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return fail(base::from_errno(errno, "create " + path));
  if (const int error = posix_fallocate(fd.get(), 0, static_cast<off_t>(kReserve)))
    return fail(base::from_errno(error, "reserve space in " + path));
  return {};
}

Result<std::string> checked_digest(const Json& document, const std::string& declared,
                                   std::string_view what) {
  std::string digest = base::sha256(base::canonical(document));
  if (!declared.empty() && declared != digest)
    return fail(Kind::kInternal, Side::kInternal,
                "the digest of the " + std::string(what) + " is not that of its canonical form");
  return digest;
}

// Everything that is fixed before the first request: the manifest of an open run, the frozen files,
// and the facts that the journal repeats so that neither can be changed alone.
struct Freeze {
  Json manifest;
  Json facts;
  std::vector<std::pair<std::string, std::string>> files;
};

Result<Freeze> freeze(const std::string& run, const Frozen& frozen, const base::WallAnchor& now) {
  Freeze out;
  Json recipe = frozen.recipe_summary.is_object() ? frozen.recipe_summary : Json::object();
  recipe["name"] = frozen.recipe_name;
  recipe["digest"] = TRY(checked_digest(frozen.recipe, frozen.recipe_digest, "recipe"));
  const std::string policy_digest =
      TRY(checked_digest(frozen.policy, frozen.policy_digest, "policy"));
  const std::string suite_digest = TRY(checked_digest(frozen.suite, frozen.suite_digest, "suite"));
  const Json policy{{"name", frozen.policy_name}, {"digest", policy_digest}};
  const Json suite{{"name", frozen.suite_name}, {"digest", suite_digest}};
  const Json plan{{"digest", base::sha256(base::canonical(frozen.plan))}};
  const Json anchor{{"mono_ns", now.mono}, {"wall_ns", now.wall}, {"utc", base::utc(now.wall)}};
  const Json fixed{{"run", run},       {"tool", frozen.tool}, {"anchor", anchor},
                   {"recipe", recipe}, {"policy", policy},    {"suite", suite},
                   {"plan", plan}};

  out.files = {
      {"recipe.toml", frozen.recipe_source},   {"recipe.json", base::pretty(frozen.recipe)},
      {"policy.toml", frozen.policy_source},   {"policy.json", base::pretty(frozen.policy)},
      {"suite.toml", frozen.suite_source},     {"suite.json", base::pretty(frozen.suite)},
      {"plan.json", base::pretty(frozen.plan)}};
  Json hashes = Json::object();
  for (const auto& [file, bytes] : out.files) hashes[file] = base::sha256(bytes);
  out.facts = Json{{"fixed", fixed}, {"files", hashes}};

  out.manifest = fixed;
  out.manifest["schema"] = "anvil/manifest/v1";
  out.manifest["status"] = "open";
  out.manifest["outcome"] = Json{{"decision", nullptr}, {"failed_step", nullptr}};
  out.manifest["artifacts"] = Json::array();
  out.manifest["journal_head"] = nullptr;
  return out;
}

Result<void> sync_folder(const std::string& path) {
  const base::Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || fsync(fd.get()) != 0) return fail(base::from_errno(errno, "fsync " + path));
  return {};
}

// Fills the folder `building` and renames it to `directory`, everything durable.
Result<Journal> build_run(const std::string& building, const std::string& directory,
                          const Freeze& frozen) {
  if (mkdir(building.c_str(), 0755) != 0)
    return fail(base::from_errno(errno, "create the folder " + building));
  const auto put = [&](std::string_view file, std::string_view bytes) {
    return base::write_file_atomic(base::join_path(building, file), bytes);
  };
  auto done = take_reserve(base::join_path(building, kReserveName));
  for (const auto& [file, bytes] : frozen.files)
    if (done) done = put(file, bytes);
  if (done) done = put("manifest.json", base::pretty(frozen.manifest));
  if (!done) return fail(std::move(done).error());

  Journal journal = TRY(Journal::open(base::join_path(building, "journal.jsonl")));
  done = journal.append("begin", "freeze", Json::object());
  if (done) done = journal.append("end", "freeze", frozen.facts);
  if (done) done = sync_folder(building);
  if (done && rename(building.c_str(), directory.c_str()) != 0)
    done = fail(base::from_errno(errno, "rename " + building));
  if (done) done = sync_folder(base::parent_path(directory));
  if (done) done = journal.reopen(base::join_path(directory, "journal.jsonl"));
  if (!done) return fail(std::move(done).error());
  return journal;
}
}  // namespace

struct RunWriter::State {
  explicit State(Journal opened) : journal(std::move(opened)) {}

  std::mutex mutex;
  std::string run, directory;
  Json manifest;
  Journal journal;
  std::optional<base::AppendFile> rows, samples;
  int64_t row_count = 0, sample_count = 0;
  std::string open_step;
  bool full = false;
  bool sealed = false;

  std::string path(std::string_view name) const { return base::join_path(directory, name); }

  // Gives the reserve up when `done` says that the disk is full. True if it makes sense to write
  // once more.
  bool made_room(const Result<void>& done) {
    if (done || done.error().kind != Kind::kDiskFull) return false;
    const bool first = !std::exchange(full, true);
    return unlink(path(kReserveName).c_str()) == 0 && first;
  }

  Result<void> log(std::string_view event, std::string_view step, const Json& data) {
    if (sealed) return fail(Kind::kInternal, Side::kInternal, "the run " + run + " is sealed");
    auto done = journal.append(event, step, data);
    if (made_room(done)) done = journal.append(event, step, data);
    return done;
  }

  Result<void> write(std::string_view name, std::string_view bytes) {
    if (sealed) return fail(Kind::kInternal, Side::kInternal, "the run " + run + " is sealed");
    auto done = base::write_file_atomic(path(name), bytes);
    if (made_room(done)) done = base::write_file_atomic(path(name), bytes);
    return done;
  }

  // One complete line or nothing.
  Result<void> append_line(std::optional<base::AppendFile>& file, std::string_view name,
                           std::string_view line) {
    if (sealed) return fail(Kind::kInternal, Side::kInternal, "the run " + run + " is sealed");
    if (full)
      return fail(Kind::kDiskFull, Side::kHost,
                  "the disk is full, so " + std::string(name) + " takes no more");
    if (!file) file = TRY(base::AppendFile::open(path(name)));
    const uint64_t before = file->size();
    auto done = file->append(line);
    if (!done) {
      file.reset();
      if (truncate(path(name).c_str(), static_cast<off_t>(before)) != 0)
        return fail(std::move(done).error().with_context(std::string(name) + " is torn"));
      made_room(done);
    }
    return done;
  }

  Result<void> sync() {
    for (auto* file : {&rows, &samples})
      if (*file)
        if (auto done = (*file)->sync(); !done) return done;
    return {};
  }

  // A step must be open to end or fail.
  Result<void> close_step(std::string_view step) {
    if (open_step != step)
      return fail(Kind::kInternal, Side::kInternal,
                  "the step " + std::string(step) + " ends, but " +
                      (open_step.empty() ? "no step" : open_step) + " is open");
    open_step.clear();
    return sync();
  }

  Result<void> compress_large_files() {
    for (const std::string& file : TRY(base::list_directory(directory))) {
      if (!may_compress(file) || base::is_directory(path(file))) continue;
      if (TRY(base::file_size(path(file))) <= kLargestFile) continue;
      if (auto parts = compress_artifact(directory, file); !parts)
        return fail(std::move(parts).error().with_context("compressing " + file));
    }
    return {};
  }

  Result<Json> artifact(const std::string& file) const {
    const uint64_t bytes = TRY(base::file_size(path(file)));
    const std::string hash = TRY(base::sha256_file(path(file)));
    return Json{{"name", file}, {"bytes", bytes}, {"sha256", hash}};
  }

  Result<Json> artifacts() const {
    Json out = Json::array();
    for (const std::string& file : TRY(base::list_directory(directory)))
      if (file != "manifest.json" && !base::is_directory(path(file)))
        out.push_back(TRY(artifact(file)));
    return out;
  }
};

RunWriter::RunWriter() = default;
RunWriter::~RunWriter() = default;

Result<std::unique_ptr<RunWriter>> RunWriter::create(const std::string& runs_dir,
                                                     const Frozen& frozen) {
  const base::WallAnchor now = base::wall_anchor();
  const std::string run = base::utc_compact(now.wall) + "-" +
                          base::in_file_name(frozen.recipe_name) + "-" + base::random_hex(3);
  const Freeze frozen_run = TRY(freeze(run, frozen, now));
  if (auto made = base::make_directories(runs_dir); !made) return fail(std::move(made).error());
  if (auto proven = base::prove_writable(runs_dir); !proven)
    return fail(std::move(proven).error().with_context("evidence cannot be kept"));

  // Made under another name, so that a folder with a run's name always holds a frozen run.
  const std::string building = base::join_path(runs_dir, ".creating-" + run);
  const std::string directory = base::join_path(runs_dir, run);
  auto journal = build_run(building, directory, frozen_run);
  if (!journal) {
    std::error_code ignored;
    std::filesystem::remove_all(building, ignored);
    std::filesystem::remove_all(directory, ignored);
    return fail(std::move(journal).error().with_context("the run cannot be recorded"));
  }
  std::unique_ptr<RunWriter> writer(new RunWriter);
  writer->state_ = std::make_unique<State>(std::move(*journal));
  writer->state_->run = run;
  writer->state_->directory = directory;
  writer->state_->manifest = frozen_run.manifest;
  return writer;
}

const std::string& RunWriter::run_id() const {
  return state_->run;
}

const std::string& RunWriter::directory() const {
  return state_->directory;
}

std::string RunWriter::engine_log_path() const {
  return state_->path("engine.log");
}

Result<void> RunWriter::begin_step(std::string_view step) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->open_step.empty())
    return fail(
        Kind::kInternal, Side::kInternal,
        "the step " + std::string(step) + " begins while " + state_->open_step + " is open");
  auto done = state_->log("begin", step, Json::object());
  if (done) state_->open_step = step;
  return done;
}

Result<void> RunWriter::end_step(std::string_view step, Json data) {
  const std::lock_guard lock(state_->mutex);
  if (auto closed = state_->close_step(step); !closed) return closed;
  return state_->log("end", step, data);
}

Result<void> RunWriter::fail_step(std::string_view step, const Error& error) {
  const std::lock_guard lock(state_->mutex);
  // The failure is written whatever else goes wrong; a step may also fail before it began.
  if (state_->open_step.empty()) state_->open_step = step;
  auto closed = state_->close_step(step);
  auto logged = state_->log("fail", step,
                            Json{{"kind", base::describe(error.kind).name},
                                 {"side", base::name(error.side)},
                                 {"detail", error.detail},
                                 {"hint", error.hint}});
  return logged ? closed : logged;
}

Result<void> RunWriter::note(std::string_view what, Json data) {
  const std::lock_guard lock(state_->mutex);
  return state_->log("note", state_->open_step, Json{{"what", what}, {"value", std::move(data)}});
}

Result<int64_t> RunWriter::append(RequestRow row) {
  const std::lock_guard lock(state_->mutex);
  row.seq = state_->row_count;
  if (auto done = state_->append_line(state_->rows, "requests.jsonl", to_line(row)); !done)
    return fail(std::move(done).error());
  return state_->row_count++;
}

Result<void> RunWriter::append_sample(const Json& sample) {
  const std::string line = base::canonical(sample) + "\n";
  const std::lock_guard lock(state_->mutex);
  auto done = state_->append_line(state_->samples, "samples.jsonl", line);
  if (done) ++state_->sample_count;
  return done;
}

Result<void> RunWriter::write_document(std::string_view name, const Json& document) {
  return write_text(name, base::pretty(document));
}

Result<void> RunWriter::write_text(std::string_view name, std::string_view bytes) {
  if (name.empty() || name.find('/') != std::string_view::npos || name.front() == '.' ||
      name == "manifest.json" || name == "journal.jsonl" || name == kReserveName)
    return fail(Kind::kInternal, Side::kInternal,
                "no document of a run may be called \"" + std::string(name) + "\"");
  const std::lock_guard lock(state_->mutex);
  return state_->write(name, bytes);
}

Result<void> RunWriter::seal(const Json& outcome) {
  const std::lock_guard lock(state_->mutex);
  State& state = *state_;
  if (state.open_step != "seal") {
    if (!state.open_step.empty())
      return fail(Kind::kInternal, Side::kInternal,
                  "the run is sealed while " + state.open_step + " is open");
    if (auto done = state.log("begin", "seal", Json::object()); !done) return done;
    state.open_step = "seal";
  }
  if (auto done = state.sync(); !done) return done;
  state.rows.reset();
  state.samples.reset();
  unlink(state.path(kReserveName).c_str());
  if (auto done = state.compress_large_files(); !done) return done;

  // The journal repeats the hashes, so that neither it nor the manifest can be changed alone.
  const Json sealed_files = TRY(state.artifacts());
  Json hashes = Json::object();
  for (const Json& artifact : sealed_files)
    if (artifact["name"] != "journal.jsonl")
      hashes[artifact["name"].get<std::string>()] = artifact["sha256"];
  const Json facts{{"outcome", outcome},
                   {"rows", state.row_count},
                   {"samples", state.sample_count},
                   {"files", hashes}};
  if (auto done = state.log("end", "seal", facts); !done) return done;
  state.open_step.clear();
  state.manifest["artifacts"] = sealed_files;
  for (Json& artifact : state.manifest["artifacts"])
    if (artifact["name"] == "journal.jsonl") artifact = TRY(state.artifact("journal.jsonl"));
  state.manifest["outcome"] = outcome;
  state.manifest["journal_head"] = state.journal.head();
  state.manifest["status"] = "sealed";
  for (const Json& artifact : state.manifest["artifacts"])
    if (chmod(state.path(artifact["name"].get<std::string>()).c_str(), 0444) != 0)
      return fail(base::from_errno(
          errno, "make " + state.path(artifact["name"].get<std::string>()) + " read-only"));
  if (auto done = state.write("manifest.json", base::pretty(state.manifest)); !done) return done;
  chmod(state.path("manifest.json").c_str(), 0444);
  state.sealed = true;
  return {};
}

}  // namespace anvil::evidence
