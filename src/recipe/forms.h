#pragma once

#include <string_view>

#include "recipe/fields.h"

namespace anvil::recipe {

// Whether a text has the form that a field asks for.
bool has_form(FieldForm form, std::string_view text);

// Whether the name of an environment variable says that its value is secret: one of its words ends
// in KEY, TOKEN, SECRET, PASSWORD, PASSWD or CREDENTIAL(S). MAX_NUM_BATCHED_TOKENS does not.
bool names_a_secret(std::string_view variable);
// Whether a text looks like an access token of a well-known form ("hf_...", "sk-...").
bool looks_like_a_secret(std::string_view text);
// A name that a POSIX environment can hold.
bool is_variable_name(std::string_view name);
// 127.0.0.0/8, ::1 and localhost.
bool is_loopback(std::string_view host);
// The host of an http(s) URL without port, brackets or user; empty if it is malformed.
std::string_view url_host(std::string_view url);

}  // namespace anvil::recipe
