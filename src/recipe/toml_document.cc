#include "recipe/toml_document.h"

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

#include "base/files.h"
#include "base/strings.h"

namespace anvil::recipe {

namespace {

// toml++ and everything that walks a document recurse once per level. Its own limit of 256 covers
// brackets only, so the parts of a dotted key are limited here: 256 * 16 levels fit any stack.
constexpr size_t kMaxKeyParts = 16;

bool is_bare(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  });
}

Position place(std::string_view text, size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const auto newline = before.rfind('\n');
  Position at;
  at.file = file;
  at.line = 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
  at.column =
      1 + static_cast<int>(newline == std::string_view::npos ? offset : offset - newline - 1);
  return at;
}

struct Flaw {
  size_t offset = 0;
  const char* problem = "";
  const char* remedy = "";
};

// Looks for what toml++ must not see outside of strings and comments: keys with too many dotted
// parts, and characters outside ASCII, which are never right there and which version 3.3 answers
// with undefined behaviour. Follows TOML's four kinds of strings and its comments.
std::optional<Flaw> find_flaw(std::string_view text) {
  size_t dots = 0;
  for (size_t i = text.starts_with("\xef\xbb\xbf") ? 3 : 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      while (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (c == '"' || c == '\'') {
      const std::string_view triple = c == '"' ? "\"\"\"" : "'''";
      const bool multi = text.substr(i, 3) == triple;
      i += multi ? 3 : 1;
      for (; i < text.size(); ++i) {
        if (c == '"' && text[i] == '\\') {
          ++i;
        } else if (multi && text.substr(i, 3) == triple) {
          i += 2;
          // Up to two quotes more belong to the text.
          for (int more = 0; more < 2 && i + 1 < text.size() && text[i + 1] == c; ++more) ++i;
          break;
        } else if (!multi && (text[i] == c || text[i] == '\n')) {
          break;
        }
      }
    } else if (c == '\n' || c == '=' || c == ',' || c == '[' || c == '{') {
      dots = 0;
    } else if (c == '.') {
      if (++dots >= kMaxKeyParts)
        return Flaw{i, "a key of more than 16 dotted parts", "no file of ours nests that deep"};
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      return Flaw{i, "a character outside ASCII where no text is",
                  "texts and keys with such characters stand in quotes"};
    }
  }
  return std::nullopt;
}

class Converter {
 public:
  explicit Converter(TomlDocument& document) : document_(document) {}

  Json table(const toml::table& from, const std::string& path) {
    Json out = Json::object();
    for (const auto& [key, node] : from) {
      const std::string below = path_join(path, key.str());
      // Tables made by a header have the header's place; keys have their own.
      remember(below, key.source().begin ? key.source() : node.source());
      out[std::string(key.str())] = value(node, below);
    }
    return out;
  }

 private:
  Json value(const toml::node& node, const std::string& path) {
    switch (node.type()) {
      case toml::node_type::table:
        return table(*node.as_table(), path);
      case toml::node_type::array: {
        Json out = Json::array();
        for (const auto& element : *node.as_array()) {
          const std::string below = path + "[" + std::to_string(out.size()) + "]";
          remember(below, element.source());
          out.push_back(value(element, below));
        }
        return out;
      }
      case toml::node_type::string:
        return node.as_string()->get();
      case toml::node_type::integer:
        return node.as_integer()->get();
      case toml::node_type::floating_point:
        return node.as_floating_point()->get();
      case toml::node_type::boolean:
        return node.as_boolean()->get();
      case toml::node_type::date:
        return text(node.as_date()->get());
      case toml::node_type::time:
        return text(node.as_time()->get());
      case toml::node_type::date_time:
        return text(node.as_date_time()->get());
      case toml::node_type::none:
        break;
    }
    return nullptr;
  }

  template <class T>
  static Json text(const T& moment) {
    std::ostringstream out;
    out << moment;
    return out.str();
  }

  void remember(const std::string& path, const toml::source_region& region) {
    Position at;
    at.file = document_.file;
    at.line = static_cast<int>(region.begin.line);
    at.column = static_cast<int>(region.begin.column);
    at.key = path;
    document_.positions.insert_or_assign(path, std::move(at));
  }

  TomlDocument& document_;
};

Loaded<TomlDocument> refuse(Position at, std::string problem, std::string remedy) {
  Loaded<TomlDocument> out;
  out.diagnostics.push_back(
      {Diagnostic::Severity::kError, std::move(at), std::move(problem), std::move(remedy)});
  return out;
}

Position whole(const std::string& file) {
  Position at;
  at.file = file;
  return at;
}

std::string too_large(uint64_t bytes, uint64_t limit) {
  return "has " + std::to_string(bytes) + " bytes, the limit is " + std::to_string(limit);
}

}  // namespace

Position TomlDocument::position(std::string_view path) const {
  for (std::string_view look = path; !look.empty();) {
    if (const auto found = positions.find(look); found != positions.end()) {
      Position at = found->second;
      at.key = std::string(path);
      return at;
    }
    const auto cut = look.find_last_of(".[");
    look = cut == std::string_view::npos ? std::string_view() : look.substr(0, cut);
  }
  Position at = whole(file);
  at.key = std::string(path);
  return at;
}

Loaded<TomlDocument> load_toml(const std::string& path, uint64_t limit) {
  const auto size = base::is_directory(path) ? Result<uint64_t>(0) : base::file_size(path);
  if (size && *size > limit)
    return refuse(whole(path), too_large(*size, limit), "is this the right file?");
  auto bytes = base::read_file(path, limit);
  if (!bytes) return refuse(whole(path), bytes.error().detail, bytes.error().hint);
  return parse_toml(*bytes, path, limit);
}

Loaded<TomlDocument> parse_toml(std::string_view text, const std::string& path, uint64_t limit) {
  if (text.size() > limit)
    return refuse(whole(path), too_large(text.size(), limit), "is this the right file?");
  Loaded<TomlDocument> out;
  const auto reject = [&](Position at, std::string problem, std::string remedy) {
    out = refuse(std::move(at), std::move(problem), std::move(remedy));
    out.source = std::string(text);
    return std::move(out);
  };
  if (const auto offset = base::first_invalid_utf8(text))
    return reject(place(text, *offset, path),
                  "not UTF-8: the byte at offset " + std::to_string(*offset) + " is invalid",
                  "save the file as UTF-8");
  if (const auto offset = text.find('\0'); offset != std::string_view::npos)
    return reject(place(text, offset, path), "a NUL byte at offset " + std::to_string(offset),
                  "this is not a text file, or it was damaged");
  if (const auto flaw = find_flaw(text))
    return reject(place(text, flaw->offset, path), flaw->problem, flaw->remedy);
  const toml::parse_result parsed = toml::parse(text, std::string_view(path));
  if (!parsed) {
    Position at = whole(path);
    at.line = static_cast<int>(parsed.error().source().begin.line);
    at.column = static_cast<int>(parsed.error().source().begin.column);
    return reject(std::move(at), "not valid TOML: " + std::string(parsed.error().description()),
                  "");
  }
  TomlDocument document;
  document.file = path;
  document.value = Converter(document).table(parsed.table(), "");
  out.value = std::move(document);
  out.source = std::string(text);
  return out;
}

std::string path_part(std::string_view key) {
  if (is_bare(key)) return std::string(key);
  std::string out = "\"";
  for (char c : key) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string path_join(std::string_view parent, std::string_view key) {
  if (parent.empty()) return path_part(key);
  return std::string(parent) + "." + path_part(key);
}

std::optional<std::vector<PathPart>> split_path(std::string_view path) {
  std::vector<PathPart> parts;
  size_t i = 0;
  while (i <= path.size()) {
    PathPart part;
    if (i < path.size() && path[i] == '"') {
      for (++i; i < path.size() && path[i] != '"'; ++i) {
        if (path[i] == '\\' && i + 1 < path.size()) ++i;
        part.key += path[i];
      }
      if (i >= path.size()) return std::nullopt;
      ++i;
    } else {
      const size_t end = std::min(path.find_first_of(".[", i), path.size());
      if (end == i) return std::nullopt;
      part.key = std::string(path.substr(i, end - i));
      i = end;
    }
    while (i < path.size() && path[i] == '[') {
      const size_t end = path.find(']', i);
      if (end == std::string_view::npos) return std::nullopt;
      const auto index = base::parse_int(path.substr(i + 1, end - i - 1));
      if (!index || *index < 0) return std::nullopt;
      part.indexes.push_back(static_cast<size_t>(*index));
      i = end + 1;
    }
    parts.push_back(std::move(part));
    if (i == path.size()) return parts;
    if (path[i] != '.') return std::nullopt;
    ++i;
  }
  return std::nullopt;
}

const Json* find_value(const Json& document, std::string_view path) {
  const auto parts = split_path(path);
  if (!parts) return nullptr;
  const Json* at = &document;
  for (const auto& part : *parts) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(part.key);
    if (found == at->end()) return nullptr;
    at = &*found;
    for (const size_t index : part.indexes) {
      if (!at->is_array() || index >= at->size()) return nullptr;
      at = &(*at)[index];
    }
  }
  return at;
}

}  // namespace anvil::recipe
