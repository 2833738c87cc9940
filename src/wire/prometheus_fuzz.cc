#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/prometheus.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto samples = anvil::wire::parse_prometheus({reinterpret_cast<const char*>(data), size});
  if (!samples) return 0;
  for (const auto& sample : *samples) {
    if (sample.name.empty()) std::abort();
    (void)anvil::wire::sum(*samples, sample.name);
  }
  return 0;
}
