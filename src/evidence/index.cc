#include "evidence/index.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "base/files.h"
#include "base/strings.h"
#include "evidence/json_access.h"

namespace anvil::evidence {

namespace {
constexpr int kBusyMilliseconds = 10'000;
constexpr char kSchema[] =
    "CREATE TABLE IF NOT EXISTS runs("
    "run TEXT PRIMARY KEY, dir TEXT NOT NULL, recipe TEXT NOT NULL, digest TEXT NOT NULL,"
    "policy TEXT NOT NULL, started TEXT NOT NULL, status TEXT NOT NULL, decision TEXT NOT NULL,"
    "failed_step TEXT NOT NULL) WITHOUT ROWID;";
constexpr char kNewestFirst[] =
    "SELECT run,dir,recipe,digest,policy,started,status,decision,failed_step FROM runs "
    "ORDER BY started DESC, run DESC";

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;

Error database_error(sqlite3* database, std::string_view doing) {
  const int code = database ? sqlite3_errcode(database) : SQLITE_NOMEM;
  const Kind kind = code == SQLITE_FULL                               ? Kind::kDiskFull
                    : code == SQLITE_READONLY || code == SQLITE_PERM  ? Kind::kPermission
                    : code == SQLITE_NOTADB || code == SQLITE_CORRUPT ? Kind::kTampered
                    : code == SQLITE_BUSY                             ? Kind::kTimeout
                                                                      : Kind::kIo;
  return Error(kind, Side::kHost,
               std::string(doing) + ": " + (database ? sqlite3_errmsg(database) : "out of memory"),
               "the index can be rebuilt with anvil runs reindex");
}

// A prepared statement. Values are bound in order, text only.
class Statement {
 public:
  static Result<Statement> prepare(sqlite3* database, std::string_view sql) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(database, sql.data(), static_cast<int>(sql.size()), &raw, nullptr) !=
        SQLITE_OK)
      return fail(database_error(database, "reading the index"));
    return Statement(database, raw);
  }

  void bind(const std::string& value) {
    sqlite3_bind_text(raw_.get(), ++bound_, value.data(), static_cast<int>(value.size()),
                      SQLITE_TRANSIENT);
  }
  // True for a row, false at the end.
  Result<bool> step() {
    const int code = sqlite3_step(raw_.get());
    if (code == SQLITE_ROW) return true;
    if (code == SQLITE_DONE) return false;
    return fail(database_error(database_, "using the index"));
  }
  std::string column(int index) const {
    const unsigned char* value = sqlite3_column_text(raw_.get(), index);
    return value ? reinterpret_cast<const char*>(value) : "";
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3* database, sqlite3_stmt* raw) : database_(database), raw_(raw) {}

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> raw_;
  int bound_ = 0;
};

Result<void> execute(sqlite3* database, const char* sql) {
  if (sqlite3_exec(database, sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(database_error(database, "using the index"));
  return {};
}

Result<Database> open_database(const std::string& path) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) return fail(database_error(raw, "opening the index " + path));
  sqlite3_busy_timeout(raw, kBusyMilliseconds);
  for (const char* sql : {"PRAGMA journal_mode=WAL;", "PRAGMA synchronous=NORMAL;", kSchema})
    if (auto done = execute(raw, sql); !done) return fail(std::move(done).error());
  Statement check = TRY(Statement::prepare(raw, "PRAGMA quick_check;"));
  if (!TRY(check.step()) || check.column(0) != "ok")
    return fail(Kind::kTampered, Side::kHost, "the index " + path + " is damaged");
  TRY(Statement::prepare(raw, kNewestFirst));
  return database;
}

IndexedRun row_of(const Statement& row) {
  return {row.column(0), row.column(1), row.column(2), row.column(3), row.column(4),
          row.column(5), row.column(6), row.column(7), row.column(8)};
}

std::string absolute(const std::string& path) {
  std::error_code code;
  const auto full = std::filesystem::absolute(path, code).lexically_normal();
  if (code) return path;
  std::string out = full.string();
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  return out;
}
}  // namespace

IndexedRun describe(const RunReader& run) {
  const Json& manifest = run.manifest();
  IndexedRun out;
  out.run = text(manifest, "run");
  out.directory = absolute(run.directory());
  out.recipe = text(member(manifest, "recipe"), "name");
  out.digest = text(member(manifest, "recipe"), "digest");
  out.policy = text(member(manifest, "policy"), "name");
  out.started = text(member(manifest, "anchor"), "utc");
  out.status = run.state().status == RunState::Status::kSealed ? "sealed" : "incomplete";
  if (run.has("decision.json"))
    if (const auto decision = run.document("decision.json"))
      out.decision = text(*decision, "decision");
  out.failed_step = run.state().failed_step;
  return out;
}

struct RunIndex::State {
  Database database;
};

RunIndex::RunIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunIndex::RunIndex(RunIndex&&) noexcept = default;
RunIndex& RunIndex::operator=(RunIndex&&) noexcept = default;
RunIndex::~RunIndex() = default;

std::string RunIndex::default_path() {
  return base::join_path(base::state_home(), "index.db");
}

Result<RunIndex> RunIndex::open(const std::string& path,
                                const std::vector<std::string>& runs_dirs) {
  if (auto made = base::make_directories(base::parent_path(path)); !made)
    return fail(std::move(made).error());
  bool rebuild = !base::exists(path);
  auto database = open_database(path);
  if (!database && database.error().kind == Kind::kTampered) {
    std::rename(path.c_str(), (path + ".damaged").c_str());
    unlink((path + "-wal").c_str());
    unlink((path + "-shm").c_str());
    rebuild = true;
    database = open_database(path);
  }
  if (!database) return fail(std::move(database).error());
  RunIndex index(std::make_unique<State>(State{std::move(*database)}));
  if (rebuild) TRY(index.reindex(runs_dirs));
  return index;
}

Result<void> RunIndex::put(const IndexedRun& run) {
  Statement statement = TRY(Statement::prepare(
      state_->database.get(), "INSERT OR REPLACE INTO runs VALUES(?,?,?,?,?,?,?,?,?)"));
  for (const std::string* value : {&run.run, &run.directory, &run.recipe, &run.digest, &run.policy,
                                   &run.started, &run.status, &run.decision, &run.failed_step})
    statement.bind(*value);
  TRY(statement.step());
  return {};
}

Result<std::vector<IndexedRun>> RunIndex::list() const {
  Statement statement = TRY(Statement::prepare(state_->database.get(), kNewestFirst));
  std::vector<IndexedRun> out;
  while (TRY(statement.step())) out.push_back(row_of(statement));
  return out;
}

Result<IndexedRun> RunIndex::find(std::string_view prefix) const {
  const std::vector<IndexedRun> all = TRY(list());
  std::vector<std::string> ids, matching;
  const IndexedRun* found = nullptr;
  for (const IndexedRun& run : all) {
    if (run.run == prefix) return run;
    ids.push_back(run.run);
    if (!run.run.starts_with(prefix)) continue;
    matching.push_back(run.run);
    found = &run;
  }
  if (matching.size() == 1) return *found;
  if (matching.size() > 1)
    return fail(
        Kind::kInvalidInput, Side::kClient,
        "several runs begin with \"" + std::string(prefix) + "\": " + base::join(matching, ", "),
        "write more of the id");
  const auto near = base::did_you_mean(prefix, ids);
  return fail(Kind::kNotFound, Side::kClient, "there is no run \"" + std::string(prefix) + "\"",
              near ? "did you mean " + *near + "?" : "anvil runs list shows the runs");
}

Result<int> RunIndex::reindex(const std::vector<std::string>& runs_dirs) {
  std::vector<IndexedRun> found;
  for (const std::string& folder : runs_dirs) {
    const auto names = base::list_directory(folder);
    if (!names) continue;
    for (const std::string& name : *names)
      if (const auto run = RunReader::open(base::join_path(folder, name)))
        if (!base::exists(base::join_path(run->directory(), "campaign.json")))
          found.push_back(describe(*run));
  }
  sqlite3* database = state_->database.get();
  if (auto begun = execute(database, "BEGIN IMMEDIATE; DELETE FROM runs;"); !begun)
    return fail(std::move(begun).error());
  for (const IndexedRun& run : found)
    if (auto put = this->put(run); !put) {
      (void)execute(database, "ROLLBACK;");
      return fail(std::move(put).error());
    }
  if (auto done = execute(database, "COMMIT;"); !done) return fail(std::move(done).error());
  return static_cast<int>(found.size());
}

}  // namespace anvil::evidence
