#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace anvil::measure {

enum class DatasetForm {
  kShareGpt,  // JSON list of {"conversations": [{"from": "human", "value": "..."}, ...]}
  kMessages,  // JSON Lines of {"messages": [{"role": "user", "content": "..."}, ...]}
  kText,      // one prompt a line
};

// One message, as it will be sent.
struct PromptMessage {
  std::string role;
  std::string content;
};

// One prompt of a dataset: messages that end with one of the user.
struct DatasetItem {
  std::vector<PromptMessage> messages;
  std::string id;  // "line-7", "element-12"
};

// Prompts from a file, immutable once read.
struct Dataset {
  std::string path;
  std::string sha256;  // of the file
  std::vector<DatasetItem> items;
  int64_t left_out = 0;  // ShareGPT: conversations that do not begin with a question
};

// ShareGPT: the system message, if there is one, and the first question of each conversation;
// conversations without one are counted in `left_out`. Messages: everything up to the last user
// message. Text: every line that is not blank, as it stands.
//
// Refused with FILE:LINE or "element N": what does not parse, a wrong type, an unknown role, a
// list without a user message, bytes that are not UTF-8, no prompt at all. `name` is the file in
// messages.
Result<Dataset> parse_dataset(std::string_view text, DatasetForm form, const std::string& name);
// The same from a file of at most 1 GiB.
Result<Dataset> load_dataset(const std::string& path, DatasetForm form);

// `count` different indexes below `size`, in the order in which they are used: the beginning of a
// seeded shuffle, so that a longer sample begins with a shorter one. kInvalidInput when there are
// not so many.
Result<std::vector<size_t>> sample_without_replacement(size_t size, size_t count, uint64_t seed);

}  // namespace anvil::measure
