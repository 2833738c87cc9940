#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "base/hash.h"

namespace anvil::base {

void Fd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

namespace {
Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t put = write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(from_errno(errno, "write " + path));
    bytes.remove_prefix(static_cast<size_t>(put));
  }
  return {};
}

Result<void> sync_folder(const std::string& path) {
  const std::string folder = parent_path(path);
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail(from_errno(errno, "open " + folder));
  if (fsync(fd.get()) != 0) return fail(from_errno(errno, "fsync " + folder));
  return {};
}

std::string xdg(const char* variable, const char* fallback) {
  if (const char* value = std::getenv(variable); value && *value) return join_path(value, "anvil");
  const char* home = std::getenv("HOME");
  return join_path(join_path(home && *home ? home : "/root", fallback), "anvil");
}
}  // namespace

Result<std::string> read_file(const std::string& path, uint64_t limit) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail(from_errno(errno, "open " + path));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return fail(from_errno(errno, "stat " + path));
  if (S_ISDIR(status.st_mode))
    return fail(Kind::kInvalidInput, Side::kClient, path + " is a directory, not a file",
                "name a file in it");
  if (!S_ISREG(status.st_mode))
    return fail(Kind::kInvalidInput, Side::kClient, path + " is not a regular file");
  if (static_cast<uint64_t>(status.st_size) > limit)
    return fail(Kind::kTooLarge, Side::kClient,
                path + " has " + std::to_string(status.st_size) + " bytes, the limit is " +
                    std::to_string(limit),
                "is this the right file?");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t filled = 0;
  for (;;) {
    if (filled == bytes.size()) {
      if (bytes.size() >= limit) break;
      bytes.resize(std::min<uint64_t>(
          limit, bytes.size() + 4096));  // the file may have grown, or say size 0 as in /proc
    }
    const ssize_t got = read(fd.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(from_errno(errno, "read " + path));
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

namespace {
// A device or a pipe cannot be replaced as a whole, only written to.
Result<void> write_through(const std::string& path, std::string_view bytes) {
  Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail(from_errno(errno, "open " + path));
  return write_all(fd.get(), bytes, path);
}
}  // namespace

Result<void> write_file_atomic(const std::string& given, std::string_view bytes) {
  std::string path = given;
  struct stat status {};
  if (lstat(given.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    // The file that a link points at is replaced, not the link.
    std::error_code unknown;
    const auto target = std::filesystem::weakly_canonical(given, unknown);
    if (!unknown) path = target.string();
  }
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    return write_through(path, bytes);
  const std::string temporary = path + ".tmp-" + random_hex(4);
  const auto write_temporary = [&]() -> Result<void> {
    Fd fd(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return fail(from_errno(errno, "create " + temporary));
    if (auto done = write_all(fd.get(), bytes, temporary); !done) return done;
    if (fsync(fd.get()) != 0) return fail(from_errno(errno, "fsync " + temporary));
    if (rename(temporary.c_str(), path.c_str()) != 0)
      return fail(from_errno(errno, "rename to " + path));
    return {};
  };
  if (auto done = write_temporary(); !done) {
    unlink(temporary.c_str());
    return done;
  }
  return sync_folder(path);
}

Result<AppendFile> AppendFile::open(const std::string& path) {
  AppendFile file;
  file.fd_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.fd_) return fail(from_errno(errno, "open " + path));
  struct stat status {};
  if (fstat(file.fd_.get(), &status) != 0) return fail(from_errno(errno, "stat " + path));
  file.size_ = static_cast<uint64_t>(status.st_size);
  file.path_ = path;
  return file;
}

Result<void> AppendFile::append(std::string_view bytes) {
  if (auto done = write_all(fd_.get(), bytes, path_); !done) return done;
  size_ += bytes.size();
  return {};
}

Result<void> AppendFile::sync() {
  if (fdatasync(fd_.get()) != 0) return fail(from_errno(errno, "fdatasync " + path_));
  return {};
}

Result<void> make_directories(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return fail(from_errno(code.value(), "create the folder " + path));
  return {};
}

Result<void> prove_writable(const std::string& folder) {
  const std::string probe = join_path(folder, ".anvil-probe-" + random_hex(4));
  const auto attempt = [&]() -> Result<void> {
    Fd fd(open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd) return fail(from_errno(errno, "create a file in " + folder));
    const std::string page(4096, 'x');
    if (auto done = write_all(fd.get(), page, probe); !done) return done;
    if (fsync(fd.get()) != 0) return fail(from_errno(errno, "fsync in " + folder));
    return {};
  };
  auto outcome = attempt();
  unlink(probe.c_str());
  return outcome;
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  DIR* dir = opendir(path.c_str());
  if (!dir) return fail(from_errno(errno, "open the folder " + path));
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string_view entry_name = entry->d_name;
    if (entry_name != "." && entry_name != "..") names.emplace_back(entry_name);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Result<uint64_t> file_size(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return fail(from_errno(errno, "stat " + path));
  return static_cast<uint64_t>(status.st_size);
}

std::string join_path(std::string_view folder, std::string_view name) {
  if (folder.empty() || (!name.empty() && name.front() == '/')) return std::string(name);
  std::string out(folder);
  if (out.back() != '/') out += '/';
  out += name;
  return out;
}

std::string parent_path(std::string_view path) {
  const size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos) return ".";
  if (slash == 0) return "/";
  return std::string(path.substr(0, slash));
}

std::string base_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t slash = path.find_last_of('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string state_home() {
  if (const char* home = std::getenv("ANVIL_HOME"); home && *home) return home;
  return xdg("XDG_STATE_HOME", ".local/state");
}

std::string models_home() {
  if (const char* home = std::getenv("ANVIL_HOME"); home && *home) return join_path(home, "models");
  return join_path(xdg("XDG_DATA_HOME", ".local/share"), "models");
}

std::string tools_home() {
  return join_path(parent_path(models_home()), "bin");
}

}  // namespace anvil::base
