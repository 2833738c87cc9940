#include "engine/python_literal.h"

#include <optional>
#include <string>

#include "base/strings.h"

namespace anvil::engine {

namespace {

constexpr int kDepth = 32;

// A recursive reader of literals. Nothing is an unreadable text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::optional<Json> value(int depth = 0) {
    skip_space();
    if (at_ >= text_.size() || depth > kDepth) return std::nullopt;
    switch (text_[at_]) {
      case '{':
        return dictionary(depth);
      case '[':
        return list(']', depth);
      case '(':
        return list(')', depth);
      case '\'':
      case '"':
        return quoted();
      default:
        return bare();
    }
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::optional<Json> dictionary(int depth) {
    ++at_;
    Json object = Json::object();
    if (take('}')) return object;
    do {
      skip_space();
      if (at_ < text_.size() && text_[at_] == '}') break;
      const auto key = value(depth + 1);
      if (!key || !take(':')) return std::nullopt;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      object[key->is_string() ? key->get<std::string>() : key->dump()] = std::move(*item);
    } while (take(','));
    return take('}') ? std::optional(std::move(object)) : std::nullopt;
  }

  std::optional<Json> list(char close, int depth) {
    ++at_;
    Json items = Json::array();
    if (take(close)) return items;
    do {
      skip_space();
      if (at_ < text_.size() && text_[at_] == close) break;
      auto item = value(depth + 1);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
    } while (take(','));
    return take(close) ? std::optional(std::move(items)) : std::nullopt;
  }

  std::optional<Json> quoted() {
    const char quote = text_[at_++];
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char c = text_[++at_];
        out += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      } else {
        out += text_[at_];
      }
      ++at_;
    }
    if (at_ >= text_.size()) return std::nullopt;
    ++at_;
    return Json(base::to_valid_utf8(out));
  }

  // A number, True, False, None, or the text of something else with its brackets balanced.
  std::optional<Json> bare() {
    const size_t begin = at_;
    int open = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '(' || c == '[' || c == '{' || c == '<') ++open;
      if (open == 0 && (c == ',' || c == ':' || c == ')' || c == ']' || c == '}')) break;
      if (c == ')' || c == ']' || c == '}' || c == '>') --open;
    }
    const std::string_view word = base::trim(text_.substr(begin, at_ - begin));
    if (word.empty()) return std::nullopt;
    if (word == "None") return Json(nullptr);
    if (word == "True") return Json(true);
    if (word == "False") return Json(false);
    if (const auto integer = base::parse_int(word)) return Json(*integer);
    if (const auto decimal = base::parse_double(word)) return Json(*decimal);
    return Json(base::to_valid_utf8(word));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Json python_value(std::string_view text, std::string_view key) {
  const auto parsed = Reader(text).value();
  if (!parsed) return nullptr;
  Json current = *parsed;
  for (std::string_view part : base::split(key, '.')) {
    const auto found = current.find(std::string(part));
    if (!current.is_object() || found == current.end()) return nullptr;
    current = Json(*found);
  }
  return current;
}

}  // namespace anvil::engine
