#include "report/tool_names.h"

namespace anvil::report {

const std::vector<ToolNames>& tool_names() {
  static const std::vector<ToolNames> kNames = {
      {"TTFE", "ttft (chat)", "", "",
       "vLLM bench takes the first chunk of a chat stream for the first token, one that only names "
       "a role too"},
      {"TTFO", "ttft", "time_to_first_token_ms", "time_to_first_token",
       "the same where no role-only chunk comes first; all count reasoning as output"},
      {"TTFV", "", "time_to_first_output_token_ms", "time_to_first_output_token",
       "first piece that a reader sees, reasoning aside"},
      {"E2E", "e2el", "request_latency", "request_latency",
       "GuideLLM ends with the stream (our end of stream), the others with the last content"},
      {"service latency", "", "", "",
       "to the terminal marker; the others end at content or at the end of the connection"},
      {"schedule latency", "", "", "",
       "from the planned moment; the others measure from the real one and give lateness apart"},
      {"send delay", "client_queue_time", "request_targeted_start_delay_avg", "credit_drop_latency",
       "GuideLLM gives the mean only"},
      {"chunk gap", "itl", "", "inter_chunk_latency",
       "time between events, whatever they carry; vLLM bench counts the gap after a role-only "
       "chunk"},
      {"TPOT", "tpot", "inter_token_latency_ms", "inter_token_latency",
       "they divide by tokens - 1; we divide by the tokens after the first event, which may carry "
       "several"},
      {"none", "", "time_per_output_token_ms", "",
       "E2E over all tokens: the wait for the first one is inside"},
      {"decode tok/s", "1000 / tpot", "1000 / inter_token_latency_ms",
       "output_token_throughput_per_user", "as TPOT"},
      {"aggregate output", "output_throughput", "output_tokens_per_second",
       "output_token_throughput",
       "vLLM bench divides by the wall time of the whole run; we by first sent to last output"},
      {"steady tok/s", "", "", "",
       "filling up and draining left out; tokens credited by the moment of their event"},
      {"goodput", "request_goodput", "", "goodput",
       "a failed request stays in our denominator, and each objective says whether luck is ruled "
       "out"},
      {"output tokens", "output_lens", "output_token_count", "output_sequence_length",
       "without a count from the engine GuideLLM counts chunks and AIPerf retokenises; we say "
       "unknown"},
      {"effective prefill", "", "", "", "prompt tokens over TTFO"},
      {"acceptance", "acceptance rate", "", "", "both from differences of the engine's counters"},
  };
  return kNames;
}

}  // namespace anvil::report
