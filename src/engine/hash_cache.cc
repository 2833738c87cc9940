#include "engine/hash_cache.h"

#include <sys/stat.h>

#include "base/files.h"
#include "base/hash.h"

namespace anvil::engine {

namespace {

// Old entries are dropped as a whole rather than kept for ever.
constexpr size_t kMostEntries = 4096;

int64_t nanos_of(const timespec& time) {
  return static_cast<int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

Json to_json(const FileStamp& stamp) {
  return {{"device", stamp.device},
          {"inode", stamp.inode},
          {"bytes", stamp.bytes},
          {"modified_ns", stamp.modified_ns},
          {"changed_ns", stamp.changed_ns}};
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return FileStamp{static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino),
                   static_cast<uint64_t>(info.st_size), nanos_of(info.st_mtim),
                   nanos_of(info.st_ctim)};
}

HashCache::HashCache(std::string path) : path_(std::move(path)) {
  const auto text = base::read_file(path_);
  if (!text) return;
  auto parsed = base::parse_json(*text, path_);
  if (parsed && parsed->is_object() && parsed->size() <= kMostEntries) {
    entries_ = std::move(*parsed);
  }
}

std::optional<std::string> HashCache::find(const std::string& path, const FileStamp& stamp) const {
  const auto entry = entries_.find(path);
  if (entry == entries_.end() || !entry->is_object()) return std::nullopt;
  const auto known = entry->find("stamp");
  const auto digest = entry->find("sha256");
  if (known == entry->end() || digest == entry->end() || *known != to_json(stamp) ||
      !digest->is_string() || !base::is_hex_digest(digest->get<std::string>())) {
    return std::nullopt;
  }
  return digest->get<std::string>();
}

void HashCache::put(const std::string& path, const FileStamp& stamp, const std::string& sha256) {
  entries_[path] = {{"stamp", to_json(stamp)}, {"sha256", sha256}};
  if (base::make_directories(base::parent_path(path_))) {
    // A digest that is not remembered is computed again.
    [[maybe_unused]] const auto written = base::write_file_atomic(path_, base::pretty(entries_));
  }
}

}  // namespace anvil::engine
