#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"

namespace anvil::engine {

// What identifies the content of a file without reading it: if all of these are unchanged, so is
// the content.
struct FileStamp {
  uint64_t device = 0, inode = 0, bytes = 0;
  int64_t modified_ns = 0, changed_ns = 0;

  bool operator==(const FileStamp&) const = default;
};
std::optional<FileStamp> stamp_of(const std::string& path);

// SHA-256 digests that were computed before, by path and stamp. Loads when made; put() writes the
// file at once, and a file that cannot be read or written is as good as an empty one.
class HashCache {
 public:
  // A JSON file.
  explicit HashCache(std::string path);

  std::optional<std::string> find(const std::string& path, const FileStamp& stamp) const;
  void put(const std::string& path, const FileStamp& stamp, const std::string& sha256);

 private:
  std::string path_;
  Json entries_ = Json::object();
};

}  // namespace anvil::engine
