#include "evidence/artifact.h"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/files.h"
#include "base/hash.h"

namespace anvil::evidence {

namespace {
constexpr size_t kPiece = 256u << 10;
constexpr size_t kLongestLine = 256u << 20;
constexpr int kLevel = 3;
constexpr size_t kFrameEnd = 64;  // more than the last empty block and the checksum take

std::string part_name(std::string_view name, size_t part) {
  char suffix[24];
  std::snprintf(suffix, sizeof suffix, ".%03zu.zst", part);
  return std::string(name) + suffix;
}

using Sink = std::function<Result<void>(std::string_view)>;

Result<void> read_pieces(const std::string& path, const Sink& sink) {
  const base::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail(base::from_errno(errno, "open " + path));
  std::string buffer(kPiece, '\0');
  for (;;) {
    const ssize_t got = read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail(base::from_errno(errno, "read " + path));
    if (got == 0) return {};
    if (auto done = sink({buffer.data(), static_cast<size_t>(got)}); !done) return done;
  }
}

Error damaged(const std::string& path, std::string_view why) {
  return Error(Kind::kTampered, Side::kClient, path + ": " + std::string(why),
               "the file is damaged or was cut short");
}

class Decompressor {
 public:
  Decompressor() : stream_(ZSTD_createDStream()), buffer_(ZSTD_DStreamOutSize() * 4, '\0') {}

  Result<void> file(const std::string& path, const Sink& sink) {
    ZSTD_DCtx_reset(stream_.get(), ZSTD_reset_session_only);
    size_t pending = 1;  // 0 at the end of a frame
    auto done = read_pieces(path, [&](std::string_view bytes) -> Result<void> {
      ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
      for (;;) {
        ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
        pending = ZSTD_decompressStream(stream_.get(), &out, &in);
        if (ZSTD_isError(pending)) return fail(damaged(path, ZSTD_getErrorName(pending)));
        if (out.pos > 0)
          if (auto put = sink({buffer_.data(), out.pos}); !put) return put;
        if (in.pos == in.size && out.pos < out.size) return {};
      }
    });
    if (done && pending != 0) return fail(damaged(path, "the zstd frame is not complete"));
    return done;
  }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  std::string buffer_;
};

// Compresses one file into parts. A part ends before it could grow above the limit.
class PartWriter {
 public:
  PartWriter(const std::string& directory, const std::string& name)
      : directory_(directory), name_(name), context_(ZSTD_createCCtx()) {
    ZSTD_CCtx_setParameter(context_.get(), ZSTD_c_compressionLevel, kLevel);
  }

  Result<void> add(std::string_view block) {
    if (!part_.empty() &&
        part_.size() + ZSTD_compressBound(block.size()) + kFrameEnd > kLargestFile)
      if (auto done = end_part(); !done) return done;
    // Flushed, so that the size of the part is known exactly.
    return run(block, ZSTD_e_flush);
  }

  Result<std::vector<std::string>> finish() {
    if (!part_.empty() || parts_.empty())
      if (auto done = end_part(); !done) return fail(std::move(done).error());
    if (parts_.size() == 1) {
      const std::string single = name_ + ".zst";
      if (std::rename(path(parts_[0]).c_str(), path(single).c_str()) != 0)
        return fail(base::from_errno(errno, "rename " + path(parts_[0])));
      parts_[0] = single;
    }
    return parts_;
  }

  void discard() {
    for (const std::string& part : parts_) unlink(path(part).c_str());
  }

 private:
  std::string path(const std::string& file) const { return base::join_path(directory_, file); }

  Result<void> run(std::string_view block, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{block.data(), block.size(), 0};
    for (;;) {
      const size_t used = part_.size();
      part_.resize(used + ZSTD_CStreamOutSize());
      ZSTD_outBuffer out{part_.data() + used, part_.size() - used, 0};
      const size_t left = ZSTD_compressStream2(context_.get(), &out, &in, directive);
      part_.resize(used + out.pos);
      if (ZSTD_isError(left))
        return fail(Kind::kInternal, Side::kInternal,
                    std::string("zstd: ") + ZSTD_getErrorName(left));
      if (left == 0 && in.pos == in.size) return {};
    }
  }

  Result<void> end_part() {
    if (auto done = run({}, ZSTD_e_end); !done) return done;
    parts_.push_back(part_name(name_, parts_.size()));
    auto done = base::write_file_atomic(path(parts_.back()), part_);
    part_.clear();
    return done;
  }

  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  const std::string& directory_;
  const std::string& name_;
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::string part_;
  std::vector<std::string> parts_;
};
}  // namespace

std::vector<std::string> artifact_files(const std::string& directory, std::string_view name) {
  const auto there = [&](const std::string& file) {
    return base::exists(base::join_path(directory, file));
  };
  if (there(std::string(name))) return {std::string(name)};
  if (there(std::string(name) + ".zst")) return {std::string(name) + ".zst"};
  std::vector<std::string> parts;
  while (there(part_name(name, parts.size()))) parts.push_back(part_name(name, parts.size()));
  return parts;
}

std::string artifact_name(std::string_view file) {
  if (!file.ends_with(".zst")) return std::string(file);
  file.remove_suffix(4);
  const size_t dot = file.find_last_of('.');
  if (dot != std::string_view::npos && file.size() - dot == 4 &&
      std::all_of(file.begin() + static_cast<std::ptrdiff_t>(dot) + 1, file.end(),
                  [](char c) { return c >= '0' && c <= '9'; }))
    file = file.substr(0, dot);
  return std::string(file);
}

Result<void> stream_artifact(const std::string& directory, std::string_view name,
                             const Sink& piece) {
  const std::vector<std::string> files = artifact_files(directory, name);
  if (files.empty())
    return fail(Kind::kNotFound, Side::kClient, directory + " has no " + std::string(name));
  if (!files.front().ends_with(".zst") || files.front() == name)
    return read_pieces(base::join_path(directory, files.front()), piece);
  Decompressor decompressor;
  for (const std::string& file : files)
    if (auto done = decompressor.file(base::join_path(directory, file), piece); !done) return done;
  return {};
}

Result<uint64_t> stream_lines(const std::string& directory, std::string_view name,
                              const std::function<Result<void>(std::string_view, int64_t)>& line) {
  std::string carried;  // the begun line
  int64_t position = 0;
  auto done = stream_artifact(directory, name, [&](std::string_view bytes) -> Result<void> {
    while (!bytes.empty()) {
      const void* found = std::memchr(bytes.data(), '\n', bytes.size());
      if (!found) {
        if (carried.size() + bytes.size() > kLongestLine)
          return fail(Kind::kTooLarge, Side::kClient,
                      std::string(name) + " has a line above 256 MiB");
        carried += bytes;
        return {};
      }
      const size_t length = static_cast<size_t>(static_cast<const char*>(found) - bytes.data());
      std::string_view whole = bytes.substr(0, length);
      if (!carried.empty()) {
        carried += whole;
        whole = carried;
      }
      if (auto put = line(whole, position); !put) return put;
      carried.clear();
      bytes.remove_prefix(length + 1);
      ++position;
    }
    return {};
  });
  if (!done) return fail(std::move(done).error());
  return carried.size();
}

Result<std::vector<std::string>> compress_artifact(const std::string& directory,
                                                   const std::string& name) {
  PartWriter writer(directory, name);
  std::string block;
  auto done =
      read_pieces(base::join_path(directory, name), [&](std::string_view bytes) -> Result<void> {
        block += bytes;
        const size_t cut = block.find_last_of('\n');
        if (cut == std::string::npos && block.size() < kPiece) return {};
        const size_t length = cut == std::string::npos ? block.size() : cut + 1;
        auto put = writer.add(std::string_view(block).substr(0, length));
        block.erase(0, length);
        return put;
      });
  if (done && !block.empty()) done = writer.add(block);
  if (!done) {
    writer.discard();
    return fail(std::move(done).error());
  }
  auto parts = writer.finish();
  if (!parts) {
    writer.discard();
    return parts;
  }
  const std::string original = base::join_path(directory, name);
  if (unlink(original.c_str()) != 0) return fail(base::from_errno(errno, "remove " + original));
  return parts;
}

}  // namespace anvil::evidence
