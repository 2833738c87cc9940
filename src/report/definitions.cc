#include "report/view.h"

namespace anvil::report {

const std::vector<Definition>& definitions() {
  static const std::vector<Definition> kDefinitions = {
      {"sent",
       "the moment when the last byte of the request was written; every latency counts from it"},
      {"TTFE",
       "sent to the first stream event of any kind; an event that only names a role counts here "
       "and nowhere else"},
      {"TTFO",
       "sent to the first non-empty generated piece: reasoning, content or tool-call arguments"},
      {"TTFV", "sent to the first visible piece: content or a tool call"},
      {"generation", "first output to last output"},
      {"E2E", "sent to the last output"},
      {"chunk gap",
       "time between two output events; says nothing about tokens when one event carries several"},
      {"end of stream", "sent to the terminal marker of the stream"},
      {"send delay", "the planned moment of sending to the real one: our own lateness"},
      {"TPOT", "generation time divided by the tokens after the first output event"},
      {"decode tok/s",
       "tokens after the first output event divided by generation time, per stream"},
      {"effective prefill", "prompt tokens divided by TTFO; queueing and cached tokens are inside"},
      {"computed prefill", "the same with prompt tokens minus those served from the prefix cache"},
      {"aggregate output",
       "completion tokens of all finished requests of a lane divided by its window: first sent to "
       "last output"},
      {"steady window",
       "the part of a lane in which it ran as planned: filling up and draining are outside; tokens "
       "are credited by the moment of their event"},
      {"service latency", "sent to the end of the answer"},
      {"schedule latency",
       "the planned moment to the end of the answer: in an open loop it holds what waiting for our "
       "client or for a place cost"},
      {"goodput",
       "requests per second that met every objective of the lane; a failed one meets none"},
      {"holds, proven",
       "the share that met an objective is at least its percentile; and luck is ruled out at 99 % "
       "confidence"},
      {"client error",
       "our own error at the same load, measured in this run against a scripted engine; a "
       "percentile with an error above 2 % of it and above 1 ms is refused"},
      {"path",
       "buffered: at least half of the events arrived together with the one before, so times are "
       "those of a buffer on the way"},
      {"acceptance",
       "accepted over drafted tokens, from differences of the engine's counters over the lane; "
       "mean "
       "length = 1 + accepted / drafts; by position: accepted there / drafts"},
      {"cold, prefix-cached",
       "declared states, proven from the engine's count of cached tokens; a cold row with cached "
       "tokens is refused"},
      {"token source",
       "where token counts come from: the engine's usage object unless marked otherwise"},
      {"p50, p90, p95, p99",
       "nearest-rank on the raw values; refused below 11, 64, 130 and 662 samples (99 % "
       "confidence)"},
      {"success rate",
       "finished requests over all requests of the lane; failures stay in the denominator"},
      {"ladder",
       "prompts of exact token length, each with facts hidden at three depths that the answer must "
       "return"},
      {"retrieval", "mean grade of the answers about those facts, 0 to 1"},
      {"fingerprint",
       "prompt tokens of one fixed conversation per reasoning effort: shows which chat template is "
       "served"},
  };
  return kDefinitions;
}

}  // namespace anvil::report
