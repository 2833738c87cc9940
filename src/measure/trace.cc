#include "measure/trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "measure/lines.h"

namespace anvil::measure {

namespace {

constexpr int64_t kMostTokens = 1 << 24;
constexpr size_t kMostEntries = 1'000'000;
constexpr double kLongestSeconds = 30.0 * 86400;
constexpr const char* kColumns = "timestamp_s,prompt_tokens,output_tokens[,session]";

// Entries with their times as they stand in the file.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  Result<void> add(double seconds, TraceEntry entry) {
    if (!std::isfinite(seconds) || seconds < 0)
      return wrong(entry.line, "the time is negative or not finite",
                   "times count from the beginning of the trace");
    for (const int64_t tokens : {entry.prompt_tokens, entry.output_tokens})
      if (tokens < 1 || tokens > kMostTokens)
        return wrong(entry.line, std::to_string(tokens) + " tokens",
                     "lengths must be from 1 to " + std::to_string(kMostTokens));
    const int64_t most = (entry.prompt_tokens + kTraceBlockTokens - 1) / kTraceBlockTokens;
    if (static_cast<int64_t>(entry.blocks.size()) > most)
      return wrong(entry.line,
                   std::to_string(entry.blocks.size()) + " hash_ids, but " +
                       std::to_string(entry.prompt_tokens) + " tokens have " +
                       std::to_string(most) + " blocks of 512",
                   "each id stands for 512 tokens, the last one for what is left");
    if (entries_.size() == kMostEntries)
      return wrong(entry.line, "more than 1000000 requests", "take a part of the trace");
    seconds_.push_back(seconds);
    entries_.push_back(std::move(entry));
    return {};
  }

  Result<Trace> finish(std::string_view text) {
    if (entries_.empty())
      return fail(Kind::kInvalidInput, Side::kClient, name_ + " holds no requests",
                  std::string("wanted Mooncake JSON Lines, or CSV with the columns ") + kColumns);
    Trace trace;
    trace.sha256 = base::sha256(text);
    const double first = *std::min_element(seconds_.begin(), seconds_.end());
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (seconds_[i] - first > kLongestSeconds)
        return wrong(entries_[i].line, "the time lies more than 30 days after the first request",
                     "is it in seconds (CSV) or milliseconds (JSON Lines)?");
      entries_[i].at = static_cast<Nanos>(std::llround((seconds_[i] - first) * 1e9));
      if (i > 0 && entries_[i].at < entries_[i - 1].at) ++trace.unordered;
    }
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const TraceEntry& a, const TraceEntry& b) { return a.at < b.at; });
    trace.entries = std::move(entries_);
    return trace;
  }

  tl::unexpected<Error> wrong(int line, std::string what, std::string hint = {}) const {
    return bad_line(name_, line, std::move(what), std::move(hint));
  }

 private:
  const std::string& name_;
  std::vector<double> seconds_;
  std::vector<TraceEntry> entries_;
};

std::optional<int64_t> whole(const Json& value) {
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<int64_t>();
}

Result<void> read_json_line(std::string_view line, int number, Reader& reader) {
  const auto parsed = base::parse_json(line, "the line");
  if (!parsed) return reader.wrong(number, parsed.error().detail);
  if (!parsed->is_object()) return reader.wrong(number, "is not an object");
  TraceEntry entry;
  entry.line = number;
  const auto time = parsed->find("timestamp");
  if (time == parsed->end() || !time->is_number())
    return reader.wrong(number, "timestamp is missing or no number",
                        "wanted milliseconds since the beginning of the trace");
  for (const auto& [key, into] :
       {std::pair<const char*, int64_t*>{"input_length", &entry.prompt_tokens},
        {"output_length", &entry.output_tokens}}) {
    const auto found = parsed->find(key);
    const auto value = found == parsed->end() ? std::nullopt : whole(*found);
    if (!value)
      return reader.wrong(number, std::string(key) + " is missing or no integer", "wanted tokens");
    *into = *value;
  }
  if (const auto ids = parsed->find("hash_ids"); ids != parsed->end()) {
    if (!ids->is_array()) return reader.wrong(number, "hash_ids is no list");
    for (const Json& id : *ids) {
      const auto value = whole(id);
      if (!value) return reader.wrong(number, "hash_ids holds something that is no integer");
      entry.blocks.push_back(*value);
    }
  }
  if (const auto session = parsed->find("session");
      session != parsed->end() && session->is_string())
    entry.session = session->get<std::string>();
  return reader.add(time->get<double>() / 1000, std::move(entry));
}

// Columns of a header line; cells are trimmed, quotes are not needed by any known column.
class Csv {
 public:
  Result<void> header(std::string_view line, int number, const Reader& reader) {
    const auto cells = base::split(line, ',');
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string name = base::lower(base::trim(cells[i]));
      if (name == "timestamp_s") time_ = i;
      if (name == "prompt_tokens") prompt_ = i;
      if (name == "output_tokens") output_ = i;
      if (name == "session") session_ = i;
    }
    if (!time_ || !prompt_ || !output_)
      return reader.wrong(number, "the header lacks a column",
                          std::string("wanted ") + kColumns + ", or JSON Lines");
    return {};
  }

  Result<void> row(std::string_view line, int number, Reader& reader) const {
    const auto cells = base::split(line, ',');
    TraceEntry entry;
    entry.line = number;
    const auto cell = [&](size_t i) {
      return i < cells.size() ? base::trim(cells[i]) : std::string_view();
    };
    const auto time = base::parse_double(cell(*time_));
    if (!time)
      return reader.wrong(number, "timestamp_s is \"" + std::string(cell(*time_)) + "\"",
                          "wanted seconds since the beginning of the trace");
    for (const auto& [name, column, into] :
         {std::tuple{"prompt_tokens", *prompt_, &entry.prompt_tokens},
          {"output_tokens", *output_, &entry.output_tokens}}) {
      const auto value = base::parse_int(cell(column));
      if (!value)
        return reader.wrong(number, std::string(name) + " is \"" + std::string(cell(column)) + "\"",
                            "wanted an integer");
      *into = *value;
    }
    if (session_) entry.session = std::string(cell(*session_));
    return reader.add(*time, std::move(entry));
  }

 private:
  std::optional<size_t> time_, prompt_, output_, session_;
};

}  // namespace

Result<Trace> parse_trace(std::string_view text, const std::string& name) {
  Reader reader(name);
  Csv csv;
  bool json = false, begun = false;
  TRY(each_line(text, [&](std::string_view line, int number) -> Result<void> {
    if (!begun) {
      begun = true;
      json = line[0] == '{';
      if (!json) return csv.header(line, number, reader);
    }
    return json ? read_json_line(line, number, reader) : csv.row(line, number, reader);
  }));
  return reader.finish(text);
}

Result<Trace> load_trace(const std::string& path) {
  const auto text = base::read_file(path, kInputFileLimit);
  if (!text) return fail(Error(text.error()).with_context("reading the trace"));
  return parse_trace(*text, path);
}

}  // namespace anvil::measure
