#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/files.h"

namespace anvil::evidence::testing {

// A folder that lives as long as the object; sealed files in it included.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "anvil-evidence-XXXXXX").string();
    if (const char* made = mkdtemp(name.data())) path_ = made;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return base::join_path(path_, name); }

 private:
  std::string path_;
};

// Replaces the bytes of a file, read-only or not.
inline void overwrite(const std::string& path, std::string_view bytes) {
  std::error_code ignored;
  std::filesystem::permissions(path, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add, ignored);
  if (auto done = base::write_file_atomic(path, bytes); !done) std::abort();
}

}  // namespace anvil::evidence::testing
