#include "net/request.h"

#include <vector>

#include "wire/http_head.h"

namespace anvil::net {

Result<std::string> request_text(const Url& url, const RequestParts& parts) {
  for (const unsigned char c : parts.api_key)
    if (c <= ' ' || c >= 0x7f)
      return fail(Kind::kInvalidInput, Side::kClient,
                  "the API key holds a space, line end or other byte that no key has",
                  "look at the variable or file that it comes from");
  const std::string length = std::to_string(parts.body.size());
  const std::string bearer = "Bearer " + std::string(parts.api_key);
  std::string target = url.path_prefix + std::string(parts.path);
  if (target.empty()) target = "/";
  std::vector<wire::HeaderField> fields;
  fields.push_back({"User-Agent", "anvil"});
  fields.push_back({"Accept", parts.events ? "text/event-stream" : "*/*"});
  fields.push_back({"Accept-Encoding", "identity"});
  if (!parts.api_key.empty()) fields.push_back({"Authorization", bearer});
  if (!parts.body.empty()) fields.push_back({"Content-Type", "application/json"});
  if (!parts.body.empty() || parts.method == "POST") fields.push_back({"Content-Length", length});
  fields.push_back({"Connection", parts.keep_alive ? "keep-alive" : "close"});
  std::string out = TRY(wire::request_head(parts.method, target, url.host_header(), fields));
  out += parts.body;
  return out;
}

}  // namespace anvil::net
