#include "recipe/forms.h"

#include <algorithm>
#include <array>

#include "base/hash.h"
#include "base/strings.h"

namespace anvil::recipe {

namespace {
bool is_alnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const auto year = base::parse_int(text.substr(0, 4));
  const auto month = base::parse_int(text.substr(5, 2));
  const auto day = base::parse_int(text.substr(8, 2));
  return year && month && day && *year >= 0 && *month >= 1 && *month <= 12 && *day >= 1 &&
         *day <= 31;
}

bool is_url(std::string_view text) {
  if (text.starts_with("unix:/")) return text.find_first_of(" \t\r\n") == std::string_view::npos;
  if (url_host(text).empty()) return false;
  return std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}
}  // namespace

bool has_form(FieldForm form, std::string_view text) {
  switch (form) {
    case FieldForm::kFree:
      return true;
    case FieldForm::kLine:
      return !text.empty() &&
             text.find_first_of(std::string_view("\n\r\0", 3)) == std::string_view::npos;
    case FieldForm::kName:
      return !text.empty() && text.size() <= 128 && is_alnum(text.front()) &&
             std::all_of(text.begin(), text.end(),
                         [](char c) { return is_alnum(c) || c == '.' || c == '_' || c == '-'; });
    case FieldForm::kCommit:
      return base::is_hex_digest(text, 40);
    case FieldForm::kDigest:
      return base::is_hex_digest(text, 64);
    case FieldForm::kUrl:
      return is_url(text);
    case FieldForm::kSecretReference:
      if (text.starts_with("env:")) return is_variable_name(text.substr(4));
      return text.starts_with("file:") && text.size() > 5 &&
             has_form(FieldForm::kLine, text.substr(5));
    case FieldForm::kDate:
      return is_date(text);
  }
  return false;
}

bool names_a_secret(std::string_view variable) {
  static constexpr std::array<std::string_view, 7> kWords = {
      "key", "token", "secret", "password", "passwd", "credential", "credentials"};
  const std::string name = base::lower(variable);
  for (const std::string_view part : base::split(name, '_'))
    for (const std::string_view word : kWords)
      if (part.ends_with(word)) return true;
  return false;
}

bool looks_like_a_secret(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kPrefixes = {
      "hf_", "sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "AKIA"};
  return text.size() >= 20 &&
         std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](auto prefix) { return text.starts_with(prefix); }) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alnum(c) || c == '_' || c == '-'; });
}

bool is_variable_name(std::string_view name) {
  if (name.empty() || (name.front() >= '0' && name.front() <= '9')) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_alnum(c) || c == '_'; });
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

std::string_view url_host(std::string_view url) {
  if (url.starts_with("http://"))
    url.remove_prefix(7);
  else if (url.starts_with("https://"))
    url.remove_prefix(8);
  else
    return {};
  std::string_view authority = url.substr(0, url.find_first_of("/?#"));
  if (authority.find('@') != std::string_view::npos) return {};  // a password in an address
  std::string_view host = authority;
  std::string_view port;
  if (authority.starts_with('[')) {
    const auto close = authority.find(']');
    if (close == std::string_view::npos) return {};
    host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
  } else if (const auto colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (!port.empty()) {
    if (port.front() != ':') return {};
    const auto number = base::parse_int(port.substr(1));
    if (!number || *number < 1 || *number > 65535) return {};
  }
  return host;
}

}  // namespace anvil::recipe
