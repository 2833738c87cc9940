#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace anvil::base {

// SHA-256, incremental. One object hashes one message.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::string_view bytes);
  // 64 lower-case hex digits. The object may not be used afterwards.
  std::string finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256(std::string_view bytes);
// Streams the file; calls `progress(bytes_done)` now and then if given, and stops with kCancelled
// if it returns false.
Result<std::string> sha256_file(const std::string& path,
                                bool (*progress)(void*, uint64_t) = nullptr, void* user = nullptr);

bool is_hex_digest(std::string_view text, size_t digits = 64);

// `bytes` random bytes from the system, as hex.
std::string random_hex(size_t bytes);

}  // namespace anvil::base
