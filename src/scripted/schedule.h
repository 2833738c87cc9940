#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "recipe/diagnostic.h"
#include "recipe/fields.h"

namespace anvil::scripted {

enum class Choose { kRoundRobin, kIndex, kMix, kModel };
enum class Flavour { kVllm, kLlamaCpp };
enum class Role { kEmpty, kNull, kNone };
enum class Gaps { kConstant, kGamma, kBurst };
enum class UsageMode { kAsked, kFinal, kContinuous, kNone };
enum class FaultKind { kNone, kStatus, kEvent, kReset, kClose, kEnd, kStall, kGarbage };

// What goes wrong with a stream.
struct Fault {
  FaultKind kind = FaultKind::kNone;
  int64_t after_events = 0;
  int64_t first_requests = 0;  // 0 = every request
  int status = 500;
  std::optional<int64_t> retry_after_s;
  std::string message = "scripted failure";
  std::string type = "scripted_error";
  bool done = true;
};

// One answer, as docs/schedule.md describes its fields. Times count from the request's last byte,
// or from the moment when it got a slot.
struct Stream {
  std::string name;
  double weight = 1;
  Role role = Role::kEmpty;
  Nanos role_at = 0;
  int64_t reasoning_tokens = 0;
  int64_t content_tokens = 64;
  std::optional<std::string> text;
  std::optional<std::string> token_text;
  int64_t tool_calls = 0;
  std::string tool_name = "scripted_tool";
  std::string tool_arguments = "{\"value\":1}";
  int64_t tool_pieces = 2;
  std::vector<int64_t> chunk_tokens = {1};  // the last holds for all that follow
  bool honours_max_tokens = true;
  bool honours_ignore_eos = true;
  std::string finish = "auto";
  bool finish_own = true;

  Nanos headers_at = 0;
  std::vector<Nanos> times;
  Nanos first_at = 0;
  Nanos gap = 0;
  Gaps gaps = Gaps::kConstant;
  double gap_shape = 1;
  int64_t burst_events = 8;
  Nanos finish_after = 0, usage_after = 0, done_after = 0;
  Nanos ping = 0;

  UsageMode usage = UsageMode::kAsked;
  bool usage_empty_text = false;
  int64_t usage_completion_off = 0;
  int64_t usage_prompt_off = 0;

  int64_t coalesce = 1;
  std::vector<int64_t> split_at;
  int64_t split_every = 0;
  Nanos split_gap = 0;
  int64_t buffer_bytes = 0;
  bool data_space = true;
  std::string line_end = "\n";
  bool chunked = true;

  Fault fault;
};

// What all streams share.
struct EngineSpec {
  std::string model = "scripted";
  Flavour flavour = Flavour::kVllm;
  int64_t context_tokens = 131072;
  int64_t slots = 0;  // 0 = no limit
  double prefill_tok_s = 0;
  bool prefix_cache = false;
  int64_t cache_block_tokens = 16;
  int64_t cache_tokens = 4194304;
  bool report_cached = true;
  int64_t template_tokens = 8;
  int64_t tokenizer_surplus = 0;
  int64_t draft_tokens = 0;  // 0 = no speculation
  std::vector<double> acceptance;
  bool stamps = true;
  Nanos spin = 0;
  Nanos health_after = 0;
  std::string api_key;  // empty = none asked for
};

// A checked schedule. Immutable; may be built in code too (tests, calibration), then it must keep
// the rules that parse() enforces. At least one stream.
struct Schedule {
  std::string name;
  std::string path;
  uint64_t seed = 1;
  Choose choose = Choose::kRoundRobin;
  EngineSpec engine;
  std::vector<Stream> streams;
  Json canonical;      // the file with every default; null if built in code
  std::string digest;  // SHA-256 of the canonical form
};

recipe::Loaded<Schedule> load(const std::string& path);
recipe::Loaded<Schedule> parse(std::string_view toml, const std::string& path);

const recipe::Schema& schedule_schema();
// The field reference of docs/schedule.md.
std::string schedule_reference();

}  // namespace anvil::scripted
