#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"

namespace anvil::net {

// A server for tests that sends raw bytes: what it says is written out in the test. Listens from
// construction to destruction on loopback, one thread per connection; destruction ends the
// connections and joins. The handler runs once per connection on that connection's thread.
class TestServer {
 public:
  // One accepted connection, used by the handler's thread only.
  class Peer {
   public:
    Peer(base::Fd fd, int number) : fd_(std::move(fd)), number_(number) {}

    // A whole request, head and declared body; "" when the client closed.
    std::string read_request() {
      size_t need = std::string::npos;
      for (;;) {
        if (need == std::string::npos) {
          const size_t end = pending_.find("\r\n\r\n");
          if (end != std::string::npos) need = end + 4 + declared_length(pending_.substr(0, end));
        }
        if (need != std::string::npos && pending_.size() >= need) {
          std::string request = pending_.substr(0, need);
          pending_.erase(0, need);
          return request;
        }
        char buffer[16 * 1024];
        const ssize_t got = recv(fd_.get(), buffer, sizeof buffer, 0);
        if (got <= 0) return {};
        pending_.append(buffer, static_cast<size_t>(got));
      }
    }

    // False when the client is gone.
    bool write(std::string_view bytes) {
      while (!bytes.empty()) {
        const ssize_t put = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (put <= 0) return false;
        bytes.remove_prefix(static_cast<size_t>(put));
      }
      return true;
    }
    bool write_bytewise(std::string_view bytes) {
      for (size_t i = 0; i < bytes.size(); ++i)
        if (!write(bytes.substr(i, 1))) return false;
      return true;
    }
    // Waits until the client closes or resets.
    void wait_closed() {
      char buffer[4096];
      while (recv(fd_.get(), buffer, sizeof buffer, 0) > 0) {
      }
    }
    // Ends the connection with RST instead of FIN.
    void reset() {
      const linger now{1, 0};
      setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
      close();
    }
    void close() {
      const std::lock_guard lock(closing_);
      fd_.reset();
    }
    int number() const { return number_; }  // 0 for the first connection
    int fd() const { return fd_.get(); }

   private:
    friend class TestServer;
    static size_t declared_length(std::string_view head) {
      const std::string text = base::lower(head);
      const std::string_view name = "content-length: ";
      const size_t at = text.find(name);
      size_t length = 0;
      if (at != std::string::npos)
        std::from_chars(text.data() + at + name.size(), text.data() + text.size(), length);
      return length;
    }
    void interrupt() {
      const std::lock_guard lock(closing_);
      if (fd_) shutdown(fd_.get(), SHUT_RDWR);
    }

    base::Fd fd_;
    int number_;
    std::string pending_;
    std::mutex closing_;
  };
  using Handler = std::function<void(Peer&)>;

  enum class Family { kV4, kV6, kUnix };

  // ok() is false where the host lacks the family. `path` is the unix socket's.
  explicit TestServer(Handler handler, Family family = Family::kV4, std::string path = {})
      : handler_(std::move(handler)), family_(family), path_(std::move(path)) {
    listen_now();
    if (ok()) acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TestServer() {
    stopping_ = true;
    if (listener_) shutdown(listener_.get(), SHUT_RDWR);
    if (acceptor_.joinable()) acceptor_.join();
    for (auto& peer : peers_) peer->interrupt();
    for (auto& thread : threads_) thread.join();
    if (family_ == Family::kUnix) unlink(path_.c_str());
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  bool ok() const { return port_ != 0; }
  int port() const { return port_; }
  int accepted() const { return accepted_; }
  std::string url() const {
    if (family_ == Family::kUnix) return "unix:" + path_;
    const std::string host = family_ == Family::kV4 ? "127.0.0.1" : "[::1]";
    return "http://" + host + ":" + std::to_string(port_);
  }

 private:
  void listen_now() {
    sockaddr_storage storage{};
    socklen_t length = 0;
    if (family_ == Family::kV4) {
      auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
      v4.sin_family = AF_INET;
      v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      length = sizeof v4;
    } else if (family_ == Family::kV6) {
      auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
      v6.sin6_family = AF_INET6;
      v6.sin6_addr = in6addr_loopback;
      length = sizeof v6;
    } else {
      auto& local = reinterpret_cast<sockaddr_un&>(storage);
      local.sun_family = AF_UNIX;
      path_.copy(local.sun_path, sizeof local.sun_path - 1);
      length = sizeof local;
    }
    listener_.reset(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    if (!listener_ || bind(listener_.get(), address, length) != 0 ||
        listen(listener_.get(), 1024) != 0)
      return;
    getsockname(listener_.get(), address, &length);
    port_ = family_ == Family::kV4   ? ntohs(reinterpret_cast<sockaddr_in&>(storage).sin_port)
            : family_ == Family::kV6 ? ntohs(reinterpret_cast<sockaddr_in6&>(storage).sin6_port)
                                     : 1;
  }
  void accept_all() {
    for (;;) {
      base::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (stopping_ || !fd) return;
      const int one = 1;
      if (family_ != Family::kUnix)
        setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      peers_.push_back(std::make_unique<Peer>(std::move(fd), accepted_++));
      Peer& peer = *peers_.back();
      threads_.emplace_back([this, &peer] {
        handler_(peer);
        peer.close();
      });
    }
  }

  Handler handler_;
  Family family_;
  std::string path_;
  base::Fd listener_;
  int port_ = 0;
  std::atomic<int> accepted_{0};
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
  std::vector<std::unique_ptr<Peer>> peers_;  // acceptor thread, then the destructor after join
  std::vector<std::thread> threads_;
};

}  // namespace anvil::net
