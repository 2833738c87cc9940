#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/json.h"
#include "recipe/diagnostic.h"

namespace anvil::recipe {

// A TOML file as a Json object (dates and times as strings) with the place of everything in it.
// Paths are dotted: "serving.context_tokens", "source[2].url", "launch.env.NAME"; a key that is not
// a bare TOML key is quoted: `field[0].when."speculation.method"`.
struct TomlDocument {
  std::string file;
  Json value = Json::object();
  std::map<std::string, Position, std::less<>> positions;  // of the keys, and of list elements

  // The place of a path, else of the nearest table around it, else of the file; `key` is the path.
  Position position(std::string_view path) const;
};

inline constexpr uint64_t kTomlLimit = 1ull << 20;

// Reads and parses a file. Refused with a diagnostic: a missing file, a directory, more than
// `limit` bytes (without reading them), bytes that are not UTF-8, NUL bytes, keys of more than 16
// dotted parts, any syntax error and any key that stands twice.
Loaded<TomlDocument> load_toml(const std::string& path, uint64_t limit = kTomlLimit);
// The same from memory; `path` is used in diagnostics.
Loaded<TomlDocument> parse_toml(std::string_view text, const std::string& path,
                                uint64_t limit = kTomlLimit);

// `key` as one part of a path: as it is, or quoted.
std::string path_part(std::string_view key);
// "a.b" from "a" and "b"; the parent may be empty.
std::string path_join(std::string_view parent, std::string_view key);

// The parts of a path, quotes removed: `a[2]."b.c"` -> {a, 2}, {b.c}. Nothing if it is malformed.
struct PathPart {
  std::string key;
  std::vector<size_t> indexes;
};
std::optional<std::vector<PathPart>> split_path(std::string_view path);

// The value at a path in a document, or nullptr.
const Json* find_value(const Json& document, std::string_view path);

}  // namespace anvil::recipe
