#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cancel.h"
#include "evidence/row_metrics.h"
#include "measure/client.h"
#include "scripted/server.h"

namespace anvil::measure {

// What the tests share that hold the client against the scripted engine's ledger.

// The kernel's receive stamps are on the wall clock and come over by an offset that is known this
// well.
inline constexpr Nanos kClockError = 50 * kMicrosecond;

inline scripted::Schedule shipped_schedule(const std::string& name) {
  auto loaded = scripted::load(std::string(ANVIL_SOURCE_DIR) + "/schedules/" + name + ".toml");
  for (const auto& diagnostic : loaded.diagnostics) ADD_FAILURE() << recipe::to_string(diagnostic);
  return loaded.ok() ? std::move(*loaded.value) : scripted::Schedule{};
}

struct Seen {
  evidence::RequestRow row;
  scripted::LedgerEntry sent;
};

// The client's side and the server's side of one exchange. `options` and `tls` belong together.
inline Seen exchange(scripted::Schedule schedule, std::string body, const Limits& limits = {},
                     const scripted::Options& options = {}, const net::TlsOptions& tls = {}) {
  Seen seen;
  auto server = scripted::Server::start(std::move(schedule), options);
  if (!server) {
    ADD_FAILURE() << base::to_string(server.error());
    return seen;
  }
  Attempt attempt;
  attempt.body = std::move(body);
  const base::Cancel cancel;
  Endpoint endpoint;
  endpoint.base_url = (*server)->base_url();
  endpoint.tls = tls;
  seen.row = Client(endpoint, limits).run_one(std::move(attempt), cancel);
  // A fault that waits for the client to give up ends when the server stops.
  (*server)->stop();
  auto entries = (*server)->ledger().entries;
  EXPECT_EQ(entries.size(), 1u);
  if (!entries.empty()) seen.sent = std::move(entries.front());
  return seen;
}

inline std::vector<scripted::LedgerEvent> outputs(const scripted::LedgerEntry& sent) {
  std::vector<scripted::LedgerEvent> out;
  for (const auto& event : sent.events)
    if (scripted::is_output(event.kind) && event.write_begin > 0) out.push_back(event);
  return out;
}

// The row as it would be if every event had been sent and read when it was due: the client's
// reading of the stream with the schedule's times, so that what is derived from it is exact.
inline evidence::RequestRow on_time(const Seen& seen) {
  using scripted::StepKind;
  evidence::RequestRow row = seen.row;
  evidence::Stamps& at = row.stamps;
  const Nanos sent = seen.sent.start;
  at = {};
  at.intended = sent;
  at.sent = sent;
  const auto due = outputs(seen.sent);
  EXPECT_EQ(row.chunks.size(), due.size());
  for (size_t i = 0; i < std::min(due.size(), row.chunks.size()); ++i)
    row.chunks[i].since_sent = due[i].due - sent;
  for (const auto& event : seen.sent.events) {
    if (event.kind == StepKind::kHead || event.kind == StepKind::kPing || event.write_begin == 0)
      continue;
    if (!at.first_event) at.first_event = event.due;
    if (event.kind == StepKind::kUsage) at.usage = event.due;
    if (event.kind == StepKind::kDone) at.done = event.due;
  }
  if (!due.empty()) {
    at.first_output = due.front().due;
    at.last_output = due.back().due;
    for (const auto& event : due)
      if (event.kind != StepKind::kReasoning && !at.first_visible) at.first_visible = event.due;
  }
  return row;
}

// Every event was stamped after its write began, and in the order in which they were written.
inline void expect_stamps_behind_writes(const Seen& seen) {
  const auto sent = outputs(seen.sent);
  const auto& row = seen.row;
  ASSERT_EQ(row.chunks.size(), sent.size());
  ASSERT_TRUE(row.stamps.sent);
  Nanos before = 0;
  for (size_t i = 0; i < sent.size(); ++i) {
    const Nanos at = *row.stamps.sent + row.chunks[i].since_sent;
    EXPECT_GE(at, sent[i].write_begin - kClockError) << "output event " << i;
    EXPECT_GE(at, before) << "output event " << i;
    before = at;
  }
  if (sent.empty()) return;
  EXPECT_EQ(*row.stamps.first_output, *row.stamps.sent + row.chunks.front().since_sent);
  EXPECT_EQ(*row.stamps.last_output, before);
  if (row.stamps.done && seen.sent.events.back().kind == scripted::StepKind::kDone) {
    EXPECT_GE(*row.stamps.done, seen.sent.events.back().write_begin - kClockError);
  }
}

inline std::vector<double> gaps_ms(const evidence::RequestRow& row) {
  std::vector<double> out;
  for (size_t i = 1; i < row.chunks.size(); ++i)
    out.push_back(static_cast<double>(row.chunks[i].since_sent - row.chunks[i - 1].since_sent) /
                  1e6);
  return out;
}

inline std::string kinds(const evidence::RequestRow& row) {
  std::string out;
  for (const auto& chunk : row.chunks) out += chunk.kind;
  return out;
}

}  // namespace anvil::measure
