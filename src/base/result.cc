#include "base/result.h"

#include <cerrno>
#include <cstring>

namespace anvil::base {

namespace {
constexpr KindInfo kKinds[] = {
    {"usage", kExitUsage, 400},
    {"invalid_input", kExitUsage, 400},
    {"not_found", kExitUsage, 404},
    {"permission", kExitEnvironment, 403},
    {"disk_full", kExitEnvironment, 507},
    {"io", kExitEnvironment, 500},
    {"port_in_use", kExitEnvironment, 503},
    {"connect", kExitEnvironment, 502},
    {"reset", kExitGate, 502},
    {"timeout", kExitGate, 504},
    {"protocol", kExitGate, 502},
    {"too_large", kExitUsage, 413},
    {"http_status", kExitGate, 502},
    {"upstream_error", kExitGate, 502},
    {"engine_exited", kExitGate, 502},
    {"engine_stuck", kExitGate, 504},
    {"mismatch", kExitGate, 409},
    {"tampered", kExitGate, 409},
    {"unsupported", kExitUsage, 501},
    {"cancelled", kExitGate, 499},
    {"internal", kExitInternal, 500},
};
static_assert(std::size(kKinds) == static_cast<size_t>(Kind::kInternal) + 1);
}  // namespace

const KindInfo& describe(Kind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

std::string_view name(Side side) {
  switch (side) {
    case Side::kClient:
      return "client";
    case Side::kUpstream:
      return "upstream";
    case Side::kEngine:
      return "engine";
    case Side::kHost:
      return "host";
    case Side::kInternal:
      return "internal";
  }
  return "internal";
}

std::string_view name(Retry retry) {
  switch (retry) {
    case Retry::kNo:
      return "no";
    case Retry::kIfReused:
      return "if_reused";
    case Retry::kYes:
      return "yes";
  }
  return "no";
}

std::string to_string(const Position& at) {
  std::string out = at.file;
  if (at.line > 0) out += ":" + std::to_string(at.line);
  if (at.line > 0 && at.column > 0) out += ":" + std::to_string(at.column);
  if (!at.key.empty()) out += (out.empty() ? "" : ": ") + at.key;
  return out;
}

Error& Error::with_context(std::string_view context) {
  detail = std::string(context) + ": " + detail;
  return *this;
}

std::string to_string(const Error& error) {
  std::string out;
  if (error.at) out = to_string(*error.at) + ": ";
  out += error.detail;
  if (!error.hint.empty()) out += "; " + error.hint;
  return out;
}

Error from_errno(int errno_value, std::string what) {
  const std::string detail = std::move(what) + ": " + std::strerror(errno_value);
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
      return {Kind::kNotFound, Side::kHost, detail, "check the path"};
    case EACCES:
    case EPERM:
      return {Kind::kPermission, Side::kHost, detail,
              "check the owner and mode, or choose another folder"};
    case ENOSPC:
    case EDQUOT:
      return {Kind::kDiskFull, Side::kHost, detail,
              "free some space, or choose a folder on another disk"};
    case EROFS:
      return {Kind::kDiskFull, Side::kHost, detail,
              "the file system is read-only; choose another folder"};
    case EADDRINUSE:
      return {Kind::kPortInUse, Side::kHost, detail,
              "another process holds the port; stop it or choose another port"};
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Error(Kind::kConnect, Side::kUpstream, detail,
                   "is the engine running, and at this address?")
          .with_retry(Retry::kYes);
    case ECONNRESET:
    case EPIPE:
      return {Kind::kReset, Side::kUpstream, detail};
    case ETIMEDOUT:
      return {Kind::kTimeout, Side::kUpstream, detail};
    default:
      return {Kind::kIo, Side::kHost, detail};
  }
}

}  // namespace anvil::base
