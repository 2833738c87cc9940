#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/http_call.h"
#include "net/socket.h"

namespace anvil::net {

bool port_is_free(const std::string& host, int port) {
  Url url;
  url.scheme = "http";
  url.host = host;
  url.port = port;
  const auto addresses = resolve(url);
  if (!addresses) return false;
  for (const Address& address : *addresses) {
    Dialer dialer(std::make_shared<const std::vector<Address>>(1, address));
    Dialer::State state = dialer.start();
    const Nanos deadline = mono_now() + kSecond;
    while (state == Dialer::State::kPending && mono_now() < deadline) {
      if (!wait_ready(dialer.fd(), POLLOUT, deadline, nullptr, "while connecting")) break;
      state = dialer.progress();
    }
    if (state != Dialer::State::kFailed) return false;
  }
  return true;
}

Result<int> pick_free_port() {
  const base::Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail(base::from_errno(errno, "socket"));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return fail(base::from_errno(errno, "bind to a free port on 127.0.0.1"));
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return fail(base::from_errno(errno, "getsockname"));
  return static_cast<int>(ntohs(address.sin_port));
}

}  // namespace anvil::net
