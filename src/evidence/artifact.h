#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace anvil::evidence {

// Largest file in a sealed run, for everything that can be compressed.
inline constexpr uint64_t kLargestFile = 1u << 20;

// The files that hold an artifact: itself, else "<name>.zst", else "<name>.000.zst",
// "<name>.001.zst", ... in order. Empty if there is none.
std::vector<std::string> artifact_files(const std::string& directory, std::string_view name);

// The name without ".zst" or ".NNN.zst".
std::string artifact_name(std::string_view file);

// Hands the decompressed bytes over in order, in pieces of at most 1 MiB.
Result<void> stream_artifact(const std::string& directory, std::string_view name,
                             const std::function<Result<void>(std::string_view)>& piece);

// Calls `line` for each complete line, without its line feed, with its position from 0. Returns the
// number of bytes after the last line feed. Lines above 256 MiB are kTooLarge.
Result<uint64_t> stream_lines(const std::string& directory, std::string_view name,
                              const std::function<Result<void>(std::string_view, int64_t)>& line);

// Replaces a file by zstd parts of at most kLargestFile each, cut at line ends where there are any,
// and returns their names. A crash leaves the file, or the parts, or both; then the file counts.
Result<std::vector<std::string>> compress_artifact(const std::string& directory,
                                                   const std::string& name);

}  // namespace anvil::evidence
