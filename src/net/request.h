#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http_call.h"

namespace anvil::net {

struct RequestParts {
  std::string_view method = "GET";
  std::string_view path;     // appended to the url's prefix
  std::string_view api_key;  // bearer token; "" sends none
  std::string_view body;     // JSON; sent with its length unless empty (POST: always)
  bool keep_alive = false;
  bool events = false;  // asks for an event stream
};

// The bytes of a whole request, head and body. Asks for identity encoding. A method, path or key
// with a byte that could end its field early is kInvalidInput; the key is never quoted.
Result<std::string> request_text(const Url& url, const RequestParts& parts);

}  // namespace anvil::net
