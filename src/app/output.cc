#include <cstdio>
#include <cstdlib>

#include "app/app.h"
#include "base/files.h"
#include "base/strings.h"
#include "evidence/index.h"

namespace anvil::app {

int print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return base::kExitOk;
  std::fprintf(stderr, "anvil: cannot write to standard output\n");
  return base::kExitEnvironment;
}

int print_json(const Json& document) {
  return print(base::canonical(document) + "\n");
}

Json to_json(const Error& error) {
  Json out = {{"kind", base::describe(error.kind).name},
              {"side", base::name(error.side)},
              {"retry", base::name(error.retry)},
              {"detail", error.detail},
              {"hint", error.hint}};
  if (error.at)
    out["at"] = {{"file", error.at->file},
                 {"line", error.at->line},
                 {"column", error.at->column},
                 {"key", error.at->key}};
  return out;
}

int print_error(const Error& error, bool json) {
  if (json)
    print_json({{"error", to_json(error)}});
  else
    std::fprintf(stderr, "anvil: %s\n", base::to_string(error).c_str());
  return base::describe(error.kind).exit_code;
}

Json to_json(const recipe::Diagnostic& diagnostic) {
  return {{"severity",
           diagnostic.severity == recipe::Diagnostic::Severity::kError ? "error" : "warning"},
          {"file", diagnostic.at.file},
          {"line", diagnostic.at.line},
          {"column", diagnostic.at.column},
          {"key", diagnostic.at.key},
          {"problem", diagnostic.problem},
          {"remedy", diagnostic.remedy}};
}

int print_diagnostics(const std::vector<recipe::Diagnostic>& diagnostics, bool json) {
  if (json) {
    Json list = Json::array();
    for (const auto& diagnostic : diagnostics) list.push_back(to_json(diagnostic));
    print_json({{"error", {{"kind", "invalid_input"}, {"detail", "the file has errors"}}},
                {"diagnostics", list}});
  } else {
    for (const auto& diagnostic : diagnostics) {
      std::fprintf(stderr, "%s\n", recipe::to_string(diagnostic).c_str());
    }
  }
  return base::kExitUsage;
}

std::string default_runs_dir() {
  if (const char* runs = std::getenv("ANVIL_RUNS"); runs && *runs) return runs;
  return base::join_path(base::state_home(), "runs");
}

Result<evidence::RunIndex> open_index(const std::string& runs_dir) {
  return evidence::RunIndex::open(evidence::RunIndex::default_path(), {runs_dir});
}

Result<std::string> find_run(const std::string& path_or_id, const std::string& runs_dir) {
  if (base::is_directory(path_or_id)) return path_or_id;
  if (path_or_id.find('/') != std::string::npos)
    return fail(Kind::kNotFound, Side::kClient, "no run directory at " + path_or_id,
                "'anvil runs' lists the runs that are known");
  std::vector<std::string> found;
  if (auto names = base::list_directory(runs_dir))
    for (const auto& name : *names) {
      const bool by_start = name.starts_with(path_or_id);
      const bool by_short_id = path_or_id.size() >= 4 && name.ends_with("-" + path_or_id);
      if (by_start || by_short_id) found.push_back(base::join_path(runs_dir, name));
    }
  if (found.empty()) {
    if (auto index = open_index(runs_dir))
      if (auto known = index->find(path_or_id)) found.push_back(known->directory);
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1)
    return fail(
        Kind::kUsage, Side::kClient,
        "\"" + path_or_id + "\" is the beginning of " + std::to_string(found.size()) + " runs",
        "give more of the id");
  return fail(Kind::kNotFound, Side::kClient, "no run named " + path_or_id + " in " + runs_dir,
              "'anvil runs' lists the runs that are known; give a directory, or --runs-dir");
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  const auto width = [](std::string_view text) {
    size_t columns = 0;
    for (unsigned char c : text) columns += (c & 0xC0) != 0x80;
    return columns;
  };
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += row[i];
      if (i + 1 < row.size()) out.append(widths[i] - width(row[i]) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

}  // namespace anvil::app
