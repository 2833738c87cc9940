#include "measure/dataset.h"

#include <simdjson.h>

#include <numeric>
#include <optional>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "measure/lines.h"
#include "stats/random.h"

namespace anvil::measure {

namespace {

namespace od = simdjson::ondemand;

bool is_user(std::string_view from) {
  return from == "human" || from == "user";
}

// What is wrong with an element of a ShareGPT file, or nothing.
using Problem = std::optional<std::string>;

// One turn of a conversation.
Problem read_turn(od::value value, std::string& from, std::string& text) {
  od::object turn;
  if (value.get_object().get(turn)) return "a turn is no object";
  std::string_view role, content;
  if (turn["from"].get_string().get(role)) return "a turn has no text \"from\"";
  from = role;
  if (turn["value"].get_string().get(content)) return "a turn has no text \"value\"";
  text = content;
  return std::nullopt;
}

Problem read_conversation(od::value value, Dataset& out, size_t index) {
  od::object element;
  if (value.get_object().get(element)) return "is no object";
  od::array turns;
  if (element["conversations"].get_array().get(turns)) return "has no list \"conversations\"";
  DatasetItem item;
  item.id = "element-" + std::to_string(index);
  bool asked = false, begun = false;
  for (auto each : turns) {
    od::value turn;
    if (const auto code = each.get(turn)) return std::string(simdjson::error_message(code));
    std::string from, text;
    if (auto problem = read_turn(turn, from, text)) return problem;
    if (asked || (begun && !is_user(from))) continue;
    begun = true;
    if (from == "system" && item.messages.empty()) {
      item.messages.push_back({"system", std::move(text)});
      begun = false;
    } else if (is_user(from)) {
      asked = !base::trim(text).empty();
      item.messages.push_back({"user", std::move(text)});
      if (!asked) break;
    }
  }
  if (asked)
    out.items.push_back(std::move(item));
  else
    ++out.left_out;
  return std::nullopt;
}

Result<void> read_sharegpt(std::string_view text, Dataset& out) {
  const auto wrong = [&](const std::string& what) {
    return fail(Kind::kInvalidInput, Side::kClient, out.path + ": " + what,
                "wanted a list of {\"conversations\": [{\"from\": \"human\", \"value\": ...}]}");
  };
  od::parser parser(kInputFileLimit);
  const simdjson::padded_string padded(text);
  od::document document;
  od::array list;
  if (const auto code = parser.iterate(padded).get(document))
    return wrong(simdjson::error_message(code));
  if (document.get_array().get(list)) return wrong("is not a JSON list");
  size_t index = 0;
  for (auto each : list) {
    od::value element;
    Problem problem;
    if (const auto code = each.get(element))
      problem = simdjson::error_message(code);
    else
      problem = read_conversation(element, out, index);
    if (problem) return wrong("element " + std::to_string(index) + ": " + *problem);
    ++index;
  }
  // A document that was read to its end has no location any more.
  if (const char* rest = nullptr; document.current_location().get(rest) == simdjson::SUCCESS)
    return wrong("something follows the list");
  return {};
}

Result<void> read_messages(std::string_view line, int number, Dataset& out) {
  const auto wrong = [&](std::string what) {
    return bad_line(out.path, number, std::move(what),
                    "wanted {\"messages\": [{\"role\": \"user\", \"content\": \"...\"}]}");
  };
  const auto parsed = base::parse_json(line, "the line");
  if (!parsed) return wrong(parsed.error().detail);
  const auto list = parsed->is_object() ? parsed->find("messages") : parsed->end();
  if (!parsed->is_object() || list == parsed->end() || !list->is_array())
    return wrong("has no list \"messages\"");
  DatasetItem item;
  item.id = "line-" + std::to_string(number);
  size_t last_question = 0;
  for (const Json& message : *list) {
    const std::string where = "messages[" + std::to_string(item.messages.size()) + "]";
    if (!message.is_object() || !message.contains("role") || !message["role"].is_string())
      return wrong(where + " has no text \"role\"");
    if (!message.contains("content") || !message["content"].is_string())
      return wrong(where + " has no text \"content\"");
    const auto& role = message["role"].get_ref<const std::string&>();
    if (role != "system" && role != "user" && role != "assistant")
      return wrong(where + ": role \"" + role + "\" is not system, user or assistant");
    item.messages.push_back({role, message["content"].get<std::string>()});
    if (role == "user") last_question = item.messages.size();
  }
  if (last_question == 0) return wrong("no message is the user's");
  item.messages.resize(last_question);
  out.items.push_back(std::move(item));
  return {};
}

Result<void> read_text(std::string_view line, int number, Dataset& out) {
  if (line.find('\0') != std::string_view::npos)
    return bad_line(out.path, number, "holds a NUL byte", "wanted text, one prompt a line");
  out.items.push_back({{{"user", std::string(line)}}, "line-" + std::to_string(number)});
  return {};
}

// The line that a byte stands in.
int line_of(std::string_view text, size_t byte) {
  return 1 + static_cast<int>(
                 std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(byte), '\n'));
}

}  // namespace

Result<Dataset> parse_dataset(std::string_view text, DatasetForm form, const std::string& name) {
  Dataset out;
  out.path = name;
  out.sha256 = base::sha256(text);
  if (const auto bad = base::first_invalid_utf8(text))
    return bad_line(name, line_of(text, *bad), "holds bytes that are not UTF-8",
                    "convert the file, e.g. with iconv");
  if (form == DatasetForm::kShareGpt) {
    TRY(read_sharegpt(text, out));
  } else {
    TRY(each_line(text, [&](std::string_view line, int number) {
      return form == DatasetForm::kMessages ? read_messages(line, number, out)
                                            : read_text(line, number, out);
    }));
  }
  if (out.items.empty())
    return fail(Kind::kInvalidInput, Side::kClient, name + " holds no prompts",
                out.left_out > 0 ? "none of its " + std::to_string(out.left_out) +
                                       " conversations begins with a question"
                                 : "");
  return out;
}

Result<Dataset> load_dataset(const std::string& path, DatasetForm form) {
  const auto text = base::read_file(path, kInputFileLimit);
  if (!text) return fail(Error(text.error()).with_context("reading the prompts"));
  return parse_dataset(*text, form, path);
}

Result<std::vector<size_t>> sample_without_replacement(size_t size, size_t count, uint64_t seed) {
  if (count > size)
    return fail(
        Kind::kInvalidInput, Side::kClient,
        std::to_string(count) + " prompts are wanted, but there are " + std::to_string(size),
        "ask for fewer requests (warm-up included), or give a larger file");
  std::vector<size_t> all(size);
  std::iota(all.begin(), all.end(), size_t{0});
  stats::Random random(seed);
  for (size_t i = 0; i < count; ++i)
    std::swap(all[i], all[i + static_cast<size_t>(random.below(size - i))]);
  all.resize(count);
  return all;
}

}  // namespace anvil::measure
