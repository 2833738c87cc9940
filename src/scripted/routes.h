#pragma once

#include <string>
#include <string_view>

#include "scripted/answer.h"
#include "scripted/engine.h"

namespace anvil::scripted {

// A small answer that needs no schedule.
struct Reply {
  int status = 200;
  std::string body{};
  std::string type = "application/json";
  std::string more_fields{};  // whole lines, each with its CRLF
};

// Everything but the four surfaces: models, health, metrics, tokenizer, properties. 404 for what
// is not there, 405 for a wrong method.
Reply route(Engine& engine, std::string_view method, std::string_view path, std::string_view body);

Reply error_reply(Surface surface, int status, std::string_view message, std::string_view type);

// "HTTP/1.1 200 OK\r\n" and the fields that every answer carries.
void append_reply_head(int status, std::string_view request_id, std::string& out);
// The whole answer.
std::string reply_text(const Reply& reply, std::string_view request_id, bool keep_alive);

}  // namespace anvil::scripted
