#pragma once

#include <initializer_list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "net/test_server.h"

namespace anvil::engine {

// An engine's small endpoints, for tests: "GET /props" -> body. Everything else is 404. Remembers
// the bodies that were posted.
class RouteServer {
 public:
  RouteServer(std::initializer_list<std::pair<const std::string, std::string>> routes)
      : routes_(routes), server_([this](net::TestServer::Peer& peer) { serve(peer); }) {}

  std::string url() const { return server_.url(); }
  int port() const { return server_.port(); }
  std::vector<std::pair<std::string, Json>> posted() const {
    const std::lock_guard lock(mutex_);
    return posted_;
  }

 private:
  void serve(net::TestServer::Peer& peer) {
    const std::string request = peer.read_request();
    const std::string route = request.substr(0, request.find(" HTTP/"));
    const size_t body = request.find("\r\n\r\n");
    if (route.starts_with("POST ") && body != std::string::npos) {
      const std::lock_guard lock(mutex_);
      posted_.emplace_back(route.substr(5), Json::parse(request.substr(body + 4)));
    }
    const auto found = routes_.find(route);
    const std::string text =
        found == routes_.end() ? "{\"error\":{\"message\":\"no such route\"}}" : found->second;
    peer.write(std::string("HTTP/1.1 ") + (found == routes_.end() ? "404 Not Found" : "200 OK") +
               "\r\nContent-Length: " + std::to_string(text.size()) +
               "\r\nConnection: close\r\n\r\n" + text);
  }

  std::map<std::string, std::string> routes_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::string, Json>> posted_;
  net::TestServer server_;
};

}  // namespace anvil::engine
