#include "net/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "net/kernel_stamp.h"

namespace anvil::net {

namespace {

std::string text_of(const sockaddr_storage& storage) {
  char buffer[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, buffer, sizeof buffer);
    return std::string(buffer) + ":" + std::to_string(ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  inet_ntop(AF_INET6, &v6.sin6_addr, buffer, sizeof buffer);
  return "[" + std::string(buffer) + "]:" + std::to_string(ntohs(v6.sin6_port));
}

// getaddrinfo's answers appended to `out`; its error code, 0 for success.
int look_up(const std::string& host, int port, int flags, std::vector<Address>& out) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (code != 0) return code;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (at->ai_family != AF_INET && at->ai_family != AF_INET6) continue;
    Address address;
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    address.text = text_of(address.storage);
    out.push_back(std::move(address));
  }
  freeaddrinfo(found);
  return 0;
}

// A connect to a port of the ephemeral range where nobody listens can meet itself: the kernel picks
// that very port as the source. Such a socket would answer us with our own request.
bool connected_to_itself(int fd) {
  sockaddr_storage local{}, peer{};
  socklen_t local_length = sizeof local, peer_length = sizeof peer;
  return getsockname(fd, reinterpret_cast<sockaddr*>(&local), &local_length) == 0 &&
         getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_length) == 0 &&
         local.ss_family != AF_UNIX && text_of(local) == text_of(peer);
}

}  // namespace

Result<std::vector<Address>> resolve(const Url& url) {
  std::vector<Address> out;
  if (url.scheme == "unix") {
    Address address;
    auto& path = reinterpret_cast<sockaddr_un&>(address.storage);
    if (url.socket_path.empty() || url.socket_path.size() >= sizeof path.sun_path)
      return fail(Kind::kInvalidInput, Side::kClient,
                  "the socket path \"" + url.socket_path + "\" is empty or too long");
    path.sun_family = AF_UNIX;
    std::memcpy(path.sun_path, url.socket_path.c_str(), url.socket_path.size() + 1);
    address.length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + url.socket_path.size() + 1);
    address.text = "unix:" + url.socket_path;
    out.push_back(std::move(address));
    return out;
  }
  if (url.host == "localhost") {
    look_up("127.0.0.1", url.port, AI_NUMERICHOST, out);
    look_up("::1", url.port, AI_NUMERICHOST, out);
    return out;
  }
  if (look_up(url.host, url.port, AI_NUMERICHOST, out) == 0 && !out.empty()) return out;
  const int code = look_up(url.host, url.port, 0, out);
  if (code != 0 || out.empty())
    return fail(Error(Kind::kConnect, Side::kHost,
                      "the host name \"" + url.host + "\" has no address: " +
                          (code != 0 ? gai_strerror(code) : "no TCP address"),
                      "check the name, or use an address such as 127.0.0.1"));
  return out;
}

Error connect_error(int errno_value, const std::string& address) {
  const std::string detail = "connect to " + address + ": " + std::strerror(errno_value);
  switch (errno_value) {
    case EACCES:
    case EPERM:
      return {Kind::kPermission, Side::kHost, detail,
              "this user may not open the address: check the socket file's mode or the firewall"};
    case ENOENT:
      return Error(Kind::kConnect, Side::kUpstream, detail,
                   "the socket file does not exist: is the engine running, and at this path?")
          .with_retry(Retry::kYes);
    case EMFILE:
    case ENFILE:
      return {Kind::kConnect, Side::kHost, detail,
              "too many open descriptors: raise `ulimit -n` or lower the concurrency"};
    case EADDRNOTAVAIL:
      return {Kind::kConnect, Side::kHost, detail,
              "no free local port or no such address family here: lower the concurrency or use "
              "another address"};
    case ENETUNREACH:
    case EHOSTUNREACH:
      return Error(Kind::kConnect, Side::kUpstream, detail,
                   "no route to the address from this host")
          .with_retry(Retry::kYes);
    case ETIMEDOUT:
      return Error(Kind::kConnect, Side::kUpstream, detail,
                   "the host does not answer: is the address right, does a firewall drop it?")
          .with_retry(Retry::kYes);
    default:
      return Error(Kind::kConnect, Side::kUpstream, detail,
                   "is the engine running, and at this address?")
          .with_retry(Retry::kYes);
  }
}

Dialer::Dialer(std::shared_ptr<const std::vector<Address>> addresses)
    : addresses_(std::move(addresses)),
      error_(Kind::kConnect, Side::kHost, "there is no address to connect to") {}

Dialer::State Dialer::start() {
  return begin_next();
}

Dialer::State Dialer::begin_next() {
  while (next_ < addresses_->size()) {
    const Address& address = (*addresses_)[next_];
    fd_.reset(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd_) {
      error_ = connect_error(errno, address.text);
      ++next_;
      continue;
    }
    ++made_;
    if (address.family() != AF_UNIX) {
      const int one = 1;
      setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      enable_receive_stamps(fd_.get());
    }
    if (connect(fd_.get(), address.get(), address.length) == 0) return State::kConnected;
    // An interrupted connect goes on in the background, like EINPROGRESS.
    if (errno == EINPROGRESS || errno == EINTR) return State::kPending;
    if (errno == EAGAIN && address.family() == AF_UNIX) {
      error_ = connect_error(errno, address.text);
      fd_.reset();
      return State::kBusy;
    }
    error_ = connect_error(errno, address.text);
    fd_.reset();
    ++next_;
  }
  return State::kFailed;
}

Dialer::State Dialer::progress() {
  if (!fd_) return begin_next();
  pollfd ready{fd_.get(), POLLOUT, 0};
  if (poll(&ready, 1, 0) == 0) return State::kPending;
  int problem = 0;
  socklen_t length = sizeof problem;
  if (getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &problem, &length) != 0) problem = errno;
  if (problem == 0 && connected_to_itself(fd_.get())) problem = ECONNREFUSED;
  return problem == 0 ? State::kConnected : refused(problem);
}

Dialer::State Dialer::refused(int errno_value) {
  error_ = connect_error(errno_value, (*addresses_)[next_].text);
  fd_.reset();
  ++next_;
  return begin_next();
}

Result<void> wait_ready(int fd, short events, Nanos deadline, const base::Cancel* cancel,
                        const std::string& what) {
  for (;;) {
    if (cancel != nullptr && cancel->requested()) return fail(base::cancelled_error());
    timespec timeout{};
    if (deadline > 0) {
      const Nanos left = deadline - mono_now();
      if (left <= 0) return fail(Kind::kTimeout, Side::kUpstream, "the time limit ran out " + what);
      timeout.tv_sec = static_cast<time_t>(left / kSecond);
      timeout.tv_nsec = static_cast<long>(left % kSecond);
    }
    // poll ignores negative descriptors, so a missing fd or cancel just waits for the other.
    pollfd waiting[2] = {{fd, events, 0}, {cancel != nullptr ? cancel->fd() : -1, POLLIN, 0}};
    const int ready = ppoll(waiting, 2, deadline > 0 ? &timeout : nullptr, nullptr);
    if (ready < 0 && errno != EINTR) return fail(base::from_errno(errno, "poll"));
    if (ready > 0 && waiting[0].revents != 0) return {};
  }
}

}  // namespace anvil::net
