#include "engine/artifacts.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/hash.h"
#include "base/strings.h"
#include "engine/hash_cache.h"
#include "wire/gguf.h"

namespace anvil::engine {

namespace {

constexpr uint64_t kFirstPrefix = 4 << 20;
constexpr uint64_t kLongestPrefix = 512 << 20;

std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  char buffer[4096];
  return getcwd(buffer, sizeof buffer) == nullptr ? path : base::join_path(buffer, path);
}

const Json& artifacts_of(const recipe::Recipe& recipe) {
  static const Json kNone = Json::array();
  const Json& list = recipe.at("model.artifact");
  return list.is_array() ? list : kNone;
}

Error missing(const recipe::Recipe& recipe, std::string_view name, const std::string& key) {
  return Error(Kind::kNotFound, Side::kHost, "there is no file \"" + std::string(name) + "\"",
               "looked for " + base::join(search_places(recipe, name), ", "))
      .with_position(recipe.position(key));
}

Result<std::string> read_prefix(const std::string& path, uint64_t bytes) {
  const base::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(base::from_errno(errno, "open " + path));
  std::string text(bytes, '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = read(fd.get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(base::from_errno(errno, "read " + path));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  text.resize(filled);
  return text;
}

// The header must parse and every tensor must lie within the file.
Result<void> check_gguf(const std::string& path, uint64_t bytes) {
  uint64_t want = kFirstPrefix;
  for (;;) {
    const std::string prefix = TRY(read_prefix(path, std::min(want, bytes)));
    auto outcome = wire::parse_gguf(prefix);
    if (!outcome) return fail(outcome.error().with_context(path));
    const wire::GgufParse& parsed = *outcome;
    if (parsed.header) {
      if (bytes >= parsed.header->minimum_file_bytes) return {};
      return fail(Kind::kMismatch, Side::kHost,
                  path + " is truncated: it lists tensors up to " +
                      std::to_string(parsed.header->minimum_file_bytes) + " bytes and has " +
                      std::to_string(bytes),
                  "fetch the file again");
    }
    if (want >= bytes || parsed.need_bytes > bytes) {
      return fail(Kind::kMismatch, Side::kHost, path + " is truncated: it ends within its header",
                  "fetch the file again");
    }
    if (want >= kLongestPrefix) {
      return fail(Kind::kProtocol, Side::kHost, path + " has a header of more than 512 MiB",
                  "this is no usable GGUF file");
    }
    want = std::max(parsed.need_bytes, want * 2);
  }
}

struct HashCall {
  const HashProgress* progress;
  const base::Cancel* cancel;
  const std::string* file;
  uint64_t total;
};

bool hash_step(void* user, uint64_t done) {
  const HashCall& call = *static_cast<const HashCall*>(user);
  if (call.cancel->requested()) return false;
  return !*call.progress || (*call.progress)(*call.file, done, call.total);
}

Result<void> check_content(const Json& artifact, ArtifactCheck& check, HashCache& cache,
                           const HashProgress& progress, const base::Cancel& cancel) {
  const auto stamp = stamp_of(check.path);
  if (!stamp) return fail(base::from_errno(errno, "look at " + check.path));
  if (base::is_directory(check.path)) {
    return fail(Kind::kInvalidInput, Side::kHost, check.path + " is a folder",
                "an artifact is one file; name the files inside");
  }
  check.bytes = stamp->bytes;
  if (const auto declared = artifact.find("bytes"); declared != artifact.end()) {
    const uint64_t bytes = declared->get<uint64_t>();
    if (bytes != stamp->bytes) {
      return fail(Kind::kMismatch, Side::kHost,
                  check.path + " has " + std::to_string(stamp->bytes) + " bytes, declared are " +
                      std::to_string(bytes),
                  stamp->bytes < bytes ? "the download is incomplete: fetch the file again"
                                       : "this is another file than the recipe means");
    }
  }
  if (check.path.ends_with(".gguf")) {
    if (auto sane = check_gguf(check.path, stamp->bytes); !sane) return sane;
  }
  const std::string declared = artifact.value("sha256", "");
  if (declared.empty()) return {};
  if (const auto known = cache.find(check.path, *stamp)) {
    check.sha256 = *known;
    check.remembered = true;
  } else {
    HashCall call{&progress, &cancel, &check.file, stamp->bytes};
    check.sha256 = TRY(base::sha256_file(check.path, hash_step, &call));
    // Written to while it was read: the digest is of neither content.
    if (stamp_of(check.path) == stamp) cache.put(check.path, *stamp, check.sha256);
  }
  if (check.sha256 != base::lower(declared)) {
    return fail(Kind::kMismatch, Side::kHost,
                check.path + " has SHA-256 " + check.sha256 + ", declared is " + declared,
                "the file is damaged or another one: fetch it again");
  }
  return {};
}

}  // namespace

std::vector<std::string> search_places(const recipe::Recipe& recipe, std::string_view name) {
  if (name.starts_with('/')) return {std::string(name)};
  return {absolute(base::join_path(base::parent_path(recipe.path()), name)),
          base::join_path(base::models_home(), name)};
}

std::optional<std::string> find_file(const recipe::Recipe& recipe, std::string_view name) {
  for (std::string& place : search_places(recipe, name)) {
    if (base::exists(place)) return std::move(place);
  }
  return std::nullopt;
}

Result<std::string> resolve_model_path(const recipe::Recipe& recipe, const InterfaceTable& table) {
  if (const std::string path = recipe.text("launch.model_path"); !path.empty()) {
    // A container has its own file system: what it says is taken as it is.
    return find_file(recipe, path).value_or(path);
  }
  const Json& artifacts = artifacts_of(recipe);
  for (size_t i = 0; i < artifacts.size(); ++i) {
    if (artifacts[i].value("kind", "weights") != "weights") continue;
    const std::string name = artifacts[i].value("file", "");
    const auto path = find_file(recipe, name);
    if (!path) {
      return fail(missing(recipe, name, "model.artifact[" + std::to_string(i) + "].file"));
    }
    return table.document().value("model", "folder") == "file" ? *path : base::parent_path(*path);
  }
  return recipe.text("model.repo");
}

Result<LaunchOptions> resolve_launch_files(const recipe::Recipe& recipe,
                                           const InterfaceTable& table, LaunchOptions options) {
  options.model_path = TRY(resolve_model_path(recipe, table));
  const std::string chat_template = recipe.text("model.chat_template");
  if (!chat_template.empty() && chat_template != "default") {
    const auto path = find_file(recipe, chat_template);
    if (!path) return fail(missing(recipe, chat_template, "model.chat_template"));
    options.chat_template = *path;
  }
  return options;
}

Json to_json(const std::vector<ArtifactCheck>& checks) {
  Json list = Json::array();
  for (const ArtifactCheck& check : checks) {
    list.push_back({{"file", check.file},
                    {"path", check.path},
                    {"kind", check.kind},
                    {"bytes", check.bytes},
                    {"sha256", check.sha256},
                    {"remembered", check.remembered},
                    {"error", check.error ? Json(to_string(*check.error)) : Json()}});
  }
  return list;
}

Result<std::vector<ArtifactCheck>> verify_artifacts(const recipe::Recipe& recipe,
                                                    const HashProgress& progress,
                                                    const base::Cancel& cancel) {
  HashCache cache(base::join_path(base::state_home(), "hash-cache.json"));
  const Json& artifacts = artifacts_of(recipe);
  std::vector<ArtifactCheck> checks;
  for (size_t i = 0; i < artifacts.size(); ++i) {
    if (cancel.requested()) return fail(base::cancelled_error());
    const std::string key = "model.artifact[" + std::to_string(i) + "]";
    ArtifactCheck check;
    check.file = artifacts[i].value("file", "");
    check.kind = artifacts[i].value("kind", "weights");
    if (const auto path = find_file(recipe, check.file)) {
      check.path = *path;
      if (auto checked = check_content(artifacts[i], check, cache, progress, cancel); !checked) {
        if (checked.error().kind == Kind::kCancelled) return fail(std::move(checked.error()));
        check.error = std::move(checked.error());
        if (!check.error->at) check.error->with_position(recipe.position(key + ".file"));
      }
    } else {
      check.error = missing(recipe, check.file, key + ".file");
    }
    checks.push_back(std::move(check));
  }
  return checks;
}

}  // namespace anvil::engine
