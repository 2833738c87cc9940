#pragma once

#include <string_view>
#include <vector>

namespace anvil::report {

// A metric of ours beside the names that other load tools give to what comes closest to it; empty
// where a tool has nothing like it.
struct ToolNames {
  std::string_view ours, vllm_bench, guidellm, aiperf, difference;
};
const std::vector<ToolNames>& tool_names();

}  // namespace anvil::report
