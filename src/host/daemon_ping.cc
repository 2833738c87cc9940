#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/files.h"
#include "base/strings.h"
#include "host/doctor.h"

namespace anvil::host {

namespace {

constexpr std::string_view kRequest =
    "GET /_ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
constexpr size_t kMaxReply = 16 * 1024;

// True when the descriptor is ready before the deadline.
bool wait_for(int fd, short events, Nanos deadline) {
  for (;;) {
    const Nanos left = deadline - mono_now();
    if (left <= 0) return false;
    pollfd ready = {fd, events, 0};
    const int count = poll(&ready, 1, static_cast<int>(left / kMillisecond + 1));
    if (count > 0) return true;
    if (count < 0 && errno != EINTR) return false;
  }
}

std::string header(std::string_view reply, std::string_view name) {
  for (std::string_view line : base::split(reply.substr(0, reply.find("\r\n\r\n")), '\n')) {
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos && base::iequals(base::trim(line.substr(0, colon)), name)) {
      return base::to_valid_utf8(base::trim(line.substr(colon + 1)));
    }
  }
  return {};
}

}  // namespace

DaemonPing ping_daemon(const std::string& socket_path, Nanos limit) {
  using State = DaemonPing::State;
  DaemonPing ping;
  const Nanos deadline = mono_now() + limit;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path || !base::exists(socket_path)) return ping;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);

  const base::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ping;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    // A full backlog (EAGAIN) is a daemon that does not answer.
    ping.state = errno == EACCES || errno == EPERM ? State::kDenied
                 : errno == EAGAIN                 ? State::kSilent
                                                   : State::kRefused;
    return ping;
  }
  ping.state = State::kSilent;
  const auto sent = send(fd.get(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(kRequest.size())) return ping;

  std::string reply;
  while (reply.find("\r\n\r\n") == std::string::npos && reply.size() < kMaxReply) {
    if (!wait_for(fd.get(), POLLIN, deadline)) return ping;
    char buffer[4096];
    const auto got = recv(fd.get(), buffer, sizeof buffer, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    reply.append(buffer, static_cast<size_t>(got));
  }
  if (reply.empty()) return ping;
  const bool ok = reply.starts_with("HTTP/1.") && reply.size() > 12 && reply.substr(9, 3) == "200";
  ping.state = ok ? State::kOk : State::kNotDaemon;
  if (!ok) return ping;
  ping.api_version = header(reply, "Api-Version");
  const std::string server = header(reply, "Server");
  ping.server = server.substr(0, std::min(server.find('/'), server.size()));
  return ping;
}

}  // namespace anvil::host
