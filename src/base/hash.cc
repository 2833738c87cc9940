#include "base/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace anvil::base {

namespace {
std::string to_hex(const unsigned char* bytes, size_t size) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(size * 2, '0');
  for (size_t i = 0; i < size; ++i) {
    out[2 * i] = kDigits[bytes[i] >> 4];
    out[2 * i + 1] = kDigits[bytes[i] & 15];
  }
  return out;
}
}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* md = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(md); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  // Fetched once: the lookup costs more than hashing a short row.
  static const EVP_MD* const kAlgorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_DigestInit_ex2(context_->md, kAlgorithm, nullptr);
}

Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
  EVP_DigestUpdate(context_->md, bytes.data(), bytes.size());
}

std::string Sha256::finish() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(context_->md, digest, &size);
  return to_hex(digest, size);
}

std::string sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Result<std::string> sha256_file(const std::string& path, bool (*progress)(void*, uint64_t),
                                void* user) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fail(from_errno(errno, "open " + path));
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  uint64_t done = 0;
  for (;;) {
    const ssize_t got = read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int saved = errno;
      close(fd);
      return fail(from_errno(saved, "read " + path));
    }
    if (got == 0) break;
    hash.update({buffer.data(), static_cast<size_t>(got)});
    done += static_cast<uint64_t>(got);
    if (progress && !progress(user, done)) {
      close(fd);
      return fail(Kind::kCancelled, Side::kClient, "hashing " + path + " was stopped");
    }
  }
  close(fd);
  return hash.finish();
}

bool is_hex_digest(std::string_view text, size_t digits) {
  if (text.size() != digits) return false;
  for (char c : text)
    if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
  return true;
}

std::string random_hex(size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = getrandom(buffer.data() + filled, bytes - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return to_hex(buffer.data(), bytes);
}

}  // namespace anvil::base
