#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace anvil::wire {

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> shape;
  uint32_t type = 0;    // ggml type number
  uint64_t offset = 0;  // from the beginning of the tensor data
  uint64_t bytes = 0;   // 0 when the type is not known here
};

// What a GGUF file says about itself. Arrays (vocabulary, merges) are skipped.
struct GgufHeader {
  uint32_t version = 0;
  std::string architecture;                    // general.architecture
  std::string name;                            // general.name
  std::optional<uint64_t> context_length;      // <architecture>.context_length
  std::optional<uint64_t> file_type;           // general.file_type, see quantisation()
  std::string tokenizer_model;                 // tokenizer.ggml.model
  std::string chat_template;                   // tokenizer.chat_template
  std::map<std::string, uint64_t> integers;    // every integer and bool key
  std::map<std::string, std::string> strings;  // every string key up to 64 KiB but the template
  std::vector<GgufTensor> tensors;
  uint64_t data_offset = 0;         // where tensor data begins in the file
  uint64_t minimum_file_bytes = 0;  // a shorter file is truncated
};

// "Q4_K_M", "BF16", ... of general.file_type; "" if absent or unknown.
std::string_view quantisation(const GgufHeader& header);
// "q4_K", "bf16", ... of a tensor's type; "" if unknown.
std::string_view ggml_type_name(uint32_t type);

struct GgufParse {
  std::optional<GgufHeader> header;  // nothing while the prefix is too short
  uint64_t need_bytes = 0;           // then: a longer prefix, at least this long, is needed
};

// Reads the header from the first bytes of a file (little-endian, versions 2 and 3). kProtocol for
// anything that is no GGUF header.
Result<GgufParse> parse_gguf(std::string_view prefix);

}  // namespace anvil::wire
