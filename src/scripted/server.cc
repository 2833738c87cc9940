#include "scripted/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.h"
#include "scripted/engine.h"
#include "scripted/loop.h"
#include "scripted/transport.h"

namespace anvil::scripted {

namespace {

constexpr int kBacklog = 4096;

struct Place {
  sockaddr_storage storage{};
  socklen_t length = 0;
  std::string host;  // "" for unix
  std::string path;  // unix
};

tl::unexpected<Error> bad_address(const std::string& address) {
  return fail(Kind::kUsage, Side::kClient, "cannot listen on '" + address + "'",
              "wanted ADDRESS:PORT with a literal address, e.g. 127.0.0.1:8000 or [::1]:8000, or "
              "unix:PATH; port 0 takes any free port");
}

Result<Place> parse_place(const std::string& address) {
  Place place;
  if (address.starts_with("unix:")) {
    place.path = address.substr(5);
    auto& local = reinterpret_cast<sockaddr_un&>(place.storage);
    if (place.path.empty() || place.path.size() >= sizeof local.sun_path)
      return bad_address(address);
    local.sun_family = AF_UNIX;
    place.path.copy(local.sun_path, place.path.size());
    place.length = sizeof local;
    return place;
  }
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return bad_address(address);
  const auto port = base::parse_int(std::string_view(address).substr(colon + 1));
  place.host = address.substr(0, colon);
  if (!port || *port < 0 || *port > 65535) return bad_address(address);
  const auto network_port = htons(static_cast<uint16_t>(*port));
  auto& v4 = reinterpret_cast<sockaddr_in&>(place.storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(place.storage);
  if (inet_pton(AF_INET, place.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = network_port;
    place.length = sizeof v4;
    return place;
  }
  const std::string& host = place.host;
  if (host.size() < 2 || host.front() != '[' || host.back() != ']' ||
      inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &v6.sin6_addr) != 1)
    return bad_address(address);
  v6.sin6_family = AF_INET6;
  v6.sin6_port = network_port;
  place.length = sizeof v6;
  return place;
}

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Server::Server() = default;

Server::~Server() {
  stop();
}

const Schedule& Server::schedule() const {
  return engine_->schedule();
}

Result<void> Server::listen(const std::string& address, bool tls) {
  Place place = TRY(parse_place(address));
  const std::string what = "listen on " + address;
  listener_.reset(socket(place.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_) return fail(base::from_errno(errno, what));
  const int one = 1;
  if (place.path.empty()) setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  // Accepted sockets inherit it, so that a request that comes before its accept is stamped too.
  net::enable_receive_stamps(listener_.get());
  auto* name = reinterpret_cast<sockaddr*>(&place.storage);
  if (bind(listener_.get(), name, place.length) != 0 || ::listen(listener_.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE)
      return fail(Kind::kPortInUse, Side::kHost, address + " is in use",
                  "another program listens there; choose another port, or 0 for any");
    return fail(base::from_errno(errno, what));
  }
  const std::string scheme = tls ? "https" : "http";
  if (!place.path.empty()) {
    socket_path_ = place.path;
    url_ = "unix:" + place.path;
    return {};
  }
  getsockname(listener_.get(), name, &place.length);
  const auto port = place.storage.ss_family == AF_INET
                        ? reinterpret_cast<sockaddr_in&>(place.storage).sin_port
                        : reinterpret_cast<sockaddr_in6&>(place.storage).sin6_port;
  url_ = scheme + "://" + place.host + ":" + std::to_string(ntohs(port));
  return {};
}

Result<std::unique_ptr<Server>> Server::start(Schedule schedule, const Options& options) {
  std::shared_ptr<const TlsIdentity> tls;
  if (options.tls_certificate.empty() != options.tls_key.empty())
    return fail(Kind::kUsage, Side::kClient, "TLS needs a certificate and a key",
                "give both or none");
  if (!options.tls_certificate.empty())
    tls = TRY(TlsIdentity::load(options.tls_certificate, options.tls_key));
  raise_descriptor_limit();
  std::unique_ptr<Server> server(new Server());
  TRY(server->listen(options.listen, tls != nullptr));
  const Nanos spin = options.spin.value_or(schedule.engine.spin);
  server->engine_ = std::make_unique<Engine>(std::move(schedule), options.ledger_events);
  for (int i = 0; i < std::max(1, options.threads); ++i)
    server->loops_.push_back(std::make_unique<Loop>(*server->engine_, tls, spin));
  // The first loop accepts, so it starts when the others run.
  for (size_t i = server->loops_.size(); i-- > 1;) TRY(server->loops_[i]->start(-1, {}));
  Server* self = server.get();
  TRY(server->loops_[0]->start(server->listener_.get(), [self](base::Fd fd) {
    self->loops_[self->next_loop_++ % self->loops_.size()]->adopt(std::move(fd));
  }));
  return server;
}

Ledger Server::ledger() {
  Ledger sums;
  for (auto& loop : loops_) loop->add_sums(sums);
  Ledger ledger = engine_->ledger();
  ledger.events = sums.events;
  ledger.bytes = sums.bytes;
  ledger.writes = sums.writes;
  ledger.lateness = sums.lateness;
  ledger.cpu = sums.cpu;
  return ledger;
}

void Server::stop() {
  for (auto& loop : loops_) loop->stop();
  listener_.reset();
  if (!socket_path_.empty()) unlink(socket_path_.c_str());
  socket_path_.clear();
}

}  // namespace anvil::scripted
