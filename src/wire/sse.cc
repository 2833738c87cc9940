#include "wire/sse.h"

#include <cstring>

namespace anvil::wire {

namespace {

constexpr std::string_view kBom = "\xEF\xBB\xBF";
constexpr uint8_t kBomDone = 3;

// Position of the first CR or LF. Eight bytes at a time: a byte b of `word` is c exactly when the
// same byte of word ^ cccccccc is zero, and the borrow trick finds the lowest zero byte.
size_t find_line_end(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101ull;
  constexpr uint64_t kHighs = 0x8080808080808080ull;
  const auto zero_bytes = [](uint64_t word) { return (word - kOnes) & ~word & kHighs; };
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if (zero_bytes(word ^ (kOnes * '\n')) | zero_bytes(word ^ (kOnes * '\r'))) break;
  }
  for (; i < text.size(); ++i) {
    if (text[i] == '\n' || text[i] == '\r') return i;
  }
  return std::string_view::npos;
}

std::optional<uint64_t> plain_number(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  uint64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

}  // namespace

void SseSplitter::reset() {
  line_.clear();
  id_.clear();
  data_view_ = event_view_ = {};
  retry_ms_.reset();
  event_bytes_ = 0;
  bom_ = 0;
  has_data_ = data_kept_ = after_cr_ = dispatched_ = comment_ = false;
}

Result<bool> SseSplitter::next(std::string_view& input, SseEvent& event) {
  if (dispatched_) {
    dispatched_ = has_data_ = data_kept_ = false;
    data_view_ = event_view_ = {};
    retry_ms_.reset();
  }
  while (bom_ < kBomDone && !input.empty()) {
    if (input.front() == kBom[bom_]) {
      ++bom_;
      input.remove_prefix(1);
    } else {
      line_.assign(kBom.substr(0, bom_));
      bom_ = kBomDone;
    }
  }
  while (!input.empty()) {
    if (std::exchange(after_cr_, false) && input.front() == '\n') {
      input.remove_prefix(1);
      continue;
    }
    const size_t end = find_line_end(input);
    const size_t length = end == std::string_view::npos ? input.size() : end;
    if (event_bytes_ + line_.size() + length > max_event_bytes_) {
      return fail(Kind::kTooLarge, Side::kUpstream,
                  "a server-sent event is larger than the limit event_bytes of " +
                      std::to_string(max_event_bytes_) + " bytes");
    }
    if (end == std::string_view::npos) {
      line_.append(input);
      input = {};
      break;
    }
    after_cr_ = input[end] == '\r';
    const bool whole = line_.empty();
    if (!whole) line_.append(input.substr(0, end));
    const std::string_view line = whole ? input.substr(0, end) : std::string_view(line_);
    input.remove_prefix(end + 1);
    if (!line.empty()) {
      event_bytes_ += line.size();
      take_line(line, whole);
      line_.clear();
      continue;
    }
    event_bytes_ = 0;
    if (has_data_) {
      event = {event_view_, data_view_, id_, retry_ms_};
      dispatched_ = true;
      return true;
    }
    event_view_ = {};
  }
  keep();
  return false;
}

// One complete, non-empty line. `stays`: it lies in the input, which outlives this event's dispatch
// if the event ends there.
void SseSplitter::take_line(std::string_view line, bool stays) {
  if (line.front() == ':') {
    comment_ = true;
    return;
  }
  const size_t colon = line.find(':');
  const std::string_view field = line.substr(0, colon);
  std::string_view value;
  if (colon != std::string_view::npos) {
    value = line.substr(colon + 1);
    if (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  }
  if (field == "data") {
    if (!has_data_ && stays) {
      data_view_ = value;
    } else {
      if (!has_data_) {
        data_.assign(value);
      } else {
        if (!data_kept_) data_.assign(data_view_);
        data_.append("\n").append(value);
      }
      data_kept_ = true;
      data_view_ = data_;
    }
    has_data_ = true;
  } else if (field == "event") {
    if (stays) {
      event_view_ = value;
    } else {
      event_name_.assign(value);
      event_view_ = event_name_;
    }
  } else if (field == "id") {
    if (value.find('\0') == std::string_view::npos) id_.assign(value);
  } else if (field == "retry") {
    if (auto number = plain_number(value)) retry_ms_ = number;
  }
}

// Copies what the unfinished event still holds of an input that is about to go away.
void SseSplitter::keep() {
  if (has_data_ && !data_kept_) {
    data_.assign(data_view_);
    data_view_ = data_;
    data_kept_ = true;
  }
  if (!event_view_.empty() && event_view_.data() != event_name_.data()) {
    event_name_.assign(event_view_);
    event_view_ = event_name_;
  }
}

}  // namespace anvil::wire
