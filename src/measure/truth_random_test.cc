// 10,000 random streams: what the client says of each, against a few lines of arithmetic on what
// the engine's ledger says it sent.
#include <map>
#include <optional>

#include "base/strings.h"
#include "measure/truth_testing.h"
#include "scripted/tokens.h"
#include "stats/random.h"

namespace anvil::measure {
namespace {

using evidence::Outcome;
using evidence::RequestRow;
using scripted::FaultKind;
using scripted::LedgerEntry;
using scripted::StepKind;

constexpr int kStreams = 500;
constexpr int kBatches = 20;

bool chance(stats::Random& random, double share) {
  return random.uniform() < share;
}

scripted::Stream random_stream(stats::Random& random, std::string name) {
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random.below(n)); };
  const auto micros = [&](uint64_t n) { return below(n) * kMicrosecond; };
  scripted::Stream stream;
  stream.name = std::move(name);
  stream.role = static_cast<scripted::Role>(below(3));
  stream.reasoning_tokens = chance(random, 0.3) ? below(6) : 0;
  stream.content_tokens = below(12);
  stream.tool_calls = chance(random, 0.2) ? 1 + below(2) : 0;
  stream.tool_pieces = 1 + below(4);
  stream.chunk_tokens = {1 + below(5), 1 + below(3)};
  stream.finish_own = chance(random, 0.7);
  stream.first_at = micros(50);
  stream.role_at = stream.first_at / 2;
  stream.gap = chance(random, 0.5) ? micros(40) : 0;
  stream.gaps = static_cast<scripted::Gaps>(below(3));
  stream.burst_events = 1 + below(4);
  stream.finish_after = micros(20);
  stream.usage_after = stream.finish_after + micros(20);
  stream.done_after = stream.usage_after + micros(20);
  stream.ping = chance(random, 0.1) ? 10 * kMicrosecond : 0;
  stream.usage = static_cast<scripted::UsageMode>(below(4));
  stream.usage_empty_text = chance(random, 0.3);
  stream.usage_completion_off = chance(random, 0.1) ? below(5) - 2 : 0;
  switch (below(8)) {
    case 0:
      stream.coalesce = 1 + below(5);
      break;
    case 1:
      stream.split_at = {1 + below(20), 30 + below(100)};
      break;
    case 2:
      stream.split_every = 20 + below(100);
      break;
    case 3:
      stream.buffer_bytes = 1 + below(1500);
      break;
    default:
      break;
  }
  stream.data_space = chance(random, 0.7);
  stream.line_end = std::vector<std::string>{"\n", "\r\n", "\r"}[random.below(3)];
  stream.chunked = chance(random, 0.9);
  if (chance(random, 0.15)) {
    const FaultKind kinds[] = {FaultKind::kStatus, FaultKind::kEvent, FaultKind::kReset,
                               FaultKind::kClose,  FaultKind::kEnd,   FaultKind::kGarbage};
    stream.fault.kind = kinds[below(6)];
    stream.fault.after_events = below(8);
    stream.fault.done = chance(random, 0.5);
  }
  return stream;
}

struct Case {
  wire::Api api = wire::Api::kChat;
  bool counts = false;  // asks for counts in every event
};

std::string body_for(const Case& what, const std::string& model) {
  const std::string head = R"({"stream":true,"model":")" + model + "\",";
  if (what.api == wire::Api::kResponses) return head + R"("input":"go"})";
  const std::string options = std::string(R"("stream_options":{"include_usage":true)") +
                              (what.counts ? R"(,"continuous_usage_stats":true)" : "") + "}}";
  if (what.api == wire::Api::kCompletions) return head + R"("prompt":"go",)" + options;
  return head + R"("messages":[{"role":"user","content":"go"}],)" + options;
}

// How the attempt had to end.
Outcome expected_outcome(const scripted::Stream& stream, const LedgerEntry& sent) {
  const bool met = std::any_of(sent.events.begin(), sent.events.end(),
                               [](const auto& event) { return event.kind == StepKind::kFault; });
  if (!met) return Outcome::kOk;
  switch (stream.fault.kind) {
    case FaultKind::kStatus:
      return Outcome::kHttpError;
    case FaultKind::kEvent:
      return Outcome::kErrorInStream;
    case FaultKind::kGarbage:
      return Outcome::kProtocolError;
    default:
      return Outcome::kTruncated;
  }
}

// What went out before the fault, if it met one: the client stops reading at garbage and errors.
std::vector<scripted::LedgerEvent> outputs_before_fault(const LedgerEntry& sent) {
  std::vector<scripted::LedgerEvent> out;
  for (const auto& event : sent.events) {
    if (event.kind == StepKind::kFault) break;
    if (scripted::is_output(event.kind)) out.push_back(event);
  }
  return out;
}

// Both sides of an exchange in microseconds since its start, for a person who looks for the error.
std::string told(const RequestRow& row, const LedgerEntry& sent) {
  std::string out = "\nsent:";
  const auto us = [&](Nanos at) { return " " + std::to_string((at - sent.start) / 1000); };
  for (const auto& event : sent.events)
    out += "\n  " + std::string(name(event.kind)) + us(event.due) + us(event.write_begin) +
           us(event.write_end) + " bytes " + std::to_string(event.bytes);
  out += "\nread:";
  for (const auto& chunk : row.chunks) out += us(*row.stamps.sent + chunk.since_sent);
  for (const auto& [what, at] :
       {std::pair("usage", row.stamps.usage), std::pair("done", row.stamps.done),
        std::pair("eof", row.stamps.eof)})
    if (at) out += std::string("; ") + what + us(*at);
  return out;
}

std::string framing(const scripted::Stream& stream) {
  return "coalesce " + std::to_string(stream.coalesce) + ", cuts " +
         std::to_string(stream.split_at.size()) + "/" + std::to_string(stream.split_every) +
         ", buffer " + std::to_string(stream.buffer_bytes) + ", line end of " +
         std::to_string(stream.line_end.size()) + (stream.chunked ? ", chunked" : ", close");
}

void check(const Case& what, const scripted::Stream& stream, const RequestRow& row,
           const LedgerEntry& sent) {
  EXPECT_EQ(row.outcome, expected_outcome(stream, sent)) << row.error_detail;
  const auto events = outputs_before_fault(sent);
  const bool chat = what.api == wire::Api::kChat;
  std::string wanted_kinds;
  for (const auto& event : events)
    wanted_kinds += event.kind == StepKind::kTool ? 't'
                    : event.kind == StepKind::kReasoning && what.api != wire::Api::kCompletions
                        ? 'r'
                        : 'c';
  EXPECT_EQ(kinds(row), wanted_kinds)
      << "fault " << static_cast<int>(stream.fault.kind) << "; " << row.error_detail;
  if (row.chunks.size() != events.size()) return;

  // Stamps: each behind its write, first and last where they belong.
  // A step of Responses can be several events, and the one with the output not the last of them:
  // where they are cut or buffered, it may leave with an earlier write than the ledger has.
  const bool apart =
      what.api == wire::Api::kResponses &&
      (!stream.split_at.empty() || stream.split_every > 0 || stream.buffer_bytes > 0);
  for (size_t i = apart ? 1 : 0; i < events.size(); ++i)
    EXPECT_GE(*row.stamps.sent + row.chunks[i].since_sent,
              events[apart ? i - 1 : i].write_begin - kClockError)
        << "output event " << i << " of " << events.size() << ", " << framing(stream)
        << told(row, sent);
  if (events.empty()) {
    EXPECT_FALSE(row.stamps.first_output);
  } else {
    EXPECT_EQ(*row.stamps.first_output, *row.stamps.sent + row.chunks.front().since_sent);
    EXPECT_EQ(*row.stamps.last_output, *row.stamps.sent + row.chunks.back().since_sent);
  }
  if (row.outcome != Outcome::kOk) return;
  EXPECT_TRUE(row.stamps.done);

  int64_t reasoning = 0, content = 0, tools = 0;
  for (const auto& event : events)
    (event.kind == StepKind::kReasoning ? reasoning
     : event.kind == StepKind::kContent ? content
                                        : tools) += event.tokens;
  if (what.api != wire::Api::kCompletions) {
    EXPECT_EQ(static_cast<int64_t>(scripted::tokenize(row.answer.content).size()), content);
    EXPECT_EQ(static_cast<int64_t>(scripted::tokenize(row.answer.reasoning).size()), reasoning);
    EXPECT_EQ(static_cast<int64_t>(row.answer.tool_calls.size()), tools / (1 + stream.tool_pieces));
    for (const auto& call : row.answer.tool_calls) EXPECT_EQ(call.arguments, stream.tool_arguments);
  }
  EXPECT_EQ(sent.completion_tokens, reasoning + content + tools);

  // Counts: what the engine claimed, wrong or not; nothing where it claimed nothing.
  const bool claimed = stream.usage != scripted::UsageMode::kNone;
  const int64_t shown = std::max<int64_t>(0, sent.completion_tokens + stream.usage_completion_off);
  const auto metrics = evidence::measure(row);
  EXPECT_EQ(metrics.completion_tokens, claimed ? std::optional(shown) : std::nullopt);
  EXPECT_EQ(row.token_source, claimed ? "usage" : "none");
  EXPECT_EQ(row.answer.finish, what.api == wire::Api::kResponses ? "completed"
                               : stream.tool_calls > 0 && chat   ? "tool_calls"
                                                                 : "stop");

  // The same again with the times of the schedule.
  Seen seen{row, sent};
  const RequestRow exact = on_time(seen);
  const auto derived = evidence::measure(exact);
  const auto since = [&](Nanos at) { return std::optional<int64_t>(at - sent.start); };
  if (events.empty()) {
    EXPECT_FALSE(derived.ttfo);
    EXPECT_FALSE(derived.tpot_ms);
    return;
  }
  EXPECT_EQ(derived.ttfo, since(events.front().due));
  EXPECT_EQ(derived.e2e, since(events.back().due));
  EXPECT_EQ(derived.done, since(sent.events.back().due));
  const Nanos window = events.back().due - events.front().due;
  EXPECT_EQ(derived.generation, window);
  // Counts of wrong usage shift together, so the first event's own is wrong by as much.
  const bool per_event = what.api != wire::Api::kResponses &&
                         (stream.usage == scripted::UsageMode::kContinuous ||
                          (stream.usage == scripted::UsageMode::kAsked && what.counts));
  EXPECT_EQ(derived.per_chunk, per_event);
  if (!claimed) {
    EXPECT_FALSE(derived.tpot_ms);
    return;
  }
  const auto count = static_cast<double>(events.size());
  const double after =
      per_event ? static_cast<double>(shown - std::max<int64_t>(0, events.front().tokens +
                                                                       stream.usage_completion_off))
                : static_cast<double>(shown) * (count - 1) / count;
  if (events.size() > 1 && after > 0 && window > 0) {
    ASSERT_TRUE(derived.tpot_ms);
    EXPECT_DOUBLE_EQ(*derived.tpot_ms, static_cast<double>(window) / after / 1e6);
  } else {
    EXPECT_FALSE(derived.tpot_ms);
  }
}

class RandomStreams : public testing::TestWithParam<int> {};

TEST_P(RandomStreams, AreReadAsTheyWereSent) {
  const int batch = GetParam();
  stats::Random random(static_cast<uint64_t>(batch) + 1);
  scripted::Schedule schedule;
  schedule.name = "random";
  schedule.seed = static_cast<uint64_t>(batch);
  schedule.choose = scripted::Choose::kModel;
  schedule.engine.stamps = batch % 2 == 0;
  std::vector<Case> cases(kStreams);
  std::vector<Attempt> attempts(kStreams);
  for (size_t i = 0; i < kStreams; ++i) {
    schedule.streams.push_back(random_stream(random, std::to_string(i)));
    cases[i].api = std::vector{wire::Api::kChat, wire::Api::kChat, wire::Api::kCompletions,
                               wire::Api::kResponses}[random.below(4)];
    cases[i].counts = chance(random, 0.5);
    attempts[i].row.api = cases[i].api;
    attempts[i].row.item = schedule.streams.back().name;
    attempts[i].body = body_for(cases[i], schedule.streams.back().name);
  }
  const std::vector<scripted::Stream> streams = schedule.streams;
  auto server = scripted::Server::start(std::move(schedule));
  ASSERT_TRUE(server) << base::to_string(server.error());
  const base::Cancel cancel;
  Endpoint endpoint;
  endpoint.base_url = (*server)->base_url();
  const auto rows = Client(endpoint, {}).run(std::move(attempts), 8, cancel);
  (*server)->stop();
  const scripted::Ledger ledger = (*server)->ledger();
  std::map<size_t, const LedgerEntry*> sent;
  for (const auto& entry : ledger.entries) sent[static_cast<size_t>(entry.stream)] = &entry;
  ASSERT_EQ(rows.size(), static_cast<size_t>(kStreams));
  ASSERT_EQ(ledger.entries.size(), static_cast<size_t>(kStreams));
  ASSERT_EQ(sent.size(), static_cast<size_t>(kStreams));
  for (const auto& row : rows) {
    const auto i = static_cast<size_t>(*base::parse_int(row.item));
    SCOPED_TRACE("batch " + std::to_string(batch) + ", stream " + row.item);
    check(cases[i], streams[i], row, *sent.at(i));
    if (testing::Test::HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Truth, RandomStreams, testing::Range(0, kBatches));

}  // namespace
}  // namespace anvil::measure
