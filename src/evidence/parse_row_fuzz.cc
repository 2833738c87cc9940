#include <cstdlib>

#include "base/hash.h"
#include "evidence/request_row.h"
#include "evidence/row_metrics.h"

// Any bytes, as they are and with a row_sha that fits: a row that is read must be written and read
// again the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anvil::evidence;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const std::string sealed =
      input + ",\"row_sha\":\"" + anvil::base::sha256(input).substr(0, 16) + "\"}";
  for (const std::string& line : {input, sealed}) {
    const auto row = parse_row(line);
    if (!row) continue;
    (void)measure(*row);
    const std::string written = to_line(*row);
    const auto again = parse_row(written);
    if (!again || to_line(*again) != written) std::abort();
  }
  return 0;
}
