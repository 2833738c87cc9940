#include "base/json.h"

#include <set>

namespace anvil::base {

namespace {
constexpr int kMaxDepth = 200;

std::string escape_pointer(std::string_view key) {
  std::string out;
  for (char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

void compare(const Json& left, const Json& right, const std::string& pointer, size_t limit,
             std::vector<JsonDifference>& out) {
  if (out.size() >= limit) return;
  if (left.is_object() && right.is_object()) {
    std::set<std::string> keys;
    for (const auto& [key, value] : left.items()) keys.insert(key);
    for (const auto& [key, value] : right.items()) keys.insert(key);
    for (const auto& key : keys) {
      const std::string below = pointer + "/" + escape_pointer(key);
      if (!left.contains(key))
        out.push_back({below, nullptr, right[key]});
      else if (!right.contains(key))
        out.push_back({below, left[key], nullptr});
      else
        compare(left[key], right[key], below, limit, out);
      if (out.size() >= limit) return;
    }
    return;
  }
  if (left.is_array() && right.is_array()) {
    for (size_t i = 0; i < std::max(left.size(), right.size()) && out.size() < limit; ++i) {
      const std::string below = pointer + "/" + std::to_string(i);
      if (i >= left.size())
        out.push_back({below, nullptr, right[i]});
      else if (i >= right.size())
        out.push_back({below, left[i], nullptr});
      else
        compare(left[i], right[i], below, limit, out);
    }
    return;
  }
  // Types differ (1 against 1.0 too) or values differ: the written form is what was published.
  if (left.type() != right.type() || left != right) {
    const bool both_integers = left.is_number_integer() && right.is_number_integer();
    if (both_integers && left == right) return;
    out.push_back({pointer, left, right});
  }
}
}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  std::vector<std::set<std::string>> open;
  bool duplicate = false;
  bool too_deep = false;
  std::string duplicate_key;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      too_deep = true;
      return false;
    }
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end && !open.empty()) open.pop_back();
    if (event == Json::parse_event_t::key && !open.empty()) {
      auto key = parsed.get<std::string>();
      if (!open.back().insert(key).second) {
        duplicate = true;
        duplicate_key = std::move(key);
      }
    }
    return true;
  };
  try {
    Json value = Json::parse(text.begin(), text.end(), watch, true, false);
    if (too_deep)
      return fail(Kind::kInvalidInput, Side::kClient,
                  std::string(what) + ": nested deeper than 200 levels");
    if (duplicate)
      return fail(
          Kind::kInvalidInput, Side::kClient,
          std::string(what) + ": the key \"" + duplicate_key + "\" stands twice in one object");
    return value;
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    if (const auto colon = reason.find("] "); colon != std::string::npos)
      reason = reason.substr(colon + 2);
    return fail(Kind::kInvalidInput, Side::kClient,
                std::string(what) + " is not valid JSON: " + reason);
  }
}

std::string canonical(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string pretty(const Json& value) {
  return value.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<JsonDifference> differences(const Json& left, const Json& right, size_t limit) {
  std::vector<JsonDifference> out;
  compare(left, right, "", limit, out);
  return out;
}

}  // namespace anvil::base
