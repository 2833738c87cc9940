#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace anvil::base {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// The whole file. A directory, a device or more than `limit` bytes is an error that says so.
Result<std::string> read_file(const std::string& path, uint64_t limit = 64ull << 20);

// Replaces `path` as a whole: temporary file beside it, fsync, rename, fsync of the folder. After a
// crash the old or the new content is there, never a mixture.
Result<void> write_file_atomic(const std::string& path, std::string_view bytes);

// Appends to a file that stays open. Every append reaches the kernel before it returns (a crash of
// this process loses nothing); sync() makes it durable. Not thread-safe.
class AppendFile {
 public:
  static Result<AppendFile> open(const std::string& path);
  Result<void> append(std::string_view bytes);
  Result<void> sync();
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }

 private:
  Fd fd_;
  std::string path_;
  uint64_t size_ = 0;
};

Result<void> make_directories(const std::string& path);
// Creates, writes, syncs and removes a file in the folder: proves that evidence can be kept there.
Result<void> prove_writable(const std::string& folder);
// Names in a folder, sorted, without "." and "..".
Result<std::vector<std::string>> list_directory(const std::string& path);
bool exists(const std::string& path);
bool is_directory(const std::string& path);
Result<uint64_t> file_size(const std::string& path);
std::string join_path(std::string_view folder, std::string_view name);
std::string parent_path(std::string_view path);
std::string base_name(std::string_view path);

// $ANVIL_HOME, else $XDG_STATE_HOME/anvil, else ~/.local/state/anvil.
std::string state_home();
// $ANVIL_HOME/models, else $XDG_DATA_HOME/anvil/models, else ~/.local/share/anvil/models.
std::string models_home();
// Where set-up puts engine programs, searched after $PATH: "bin" beside the models folder.
std::string tools_home();

}  // namespace anvil::base
