#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "recipe/diagnostic.h"

namespace anvil::recipe {

// A named set of gates. `canonical` is what evidence::decide() reads:
// {"name","requires_pinned":bool,"gates":[{"id","metric","select","over","op","threshold","unit","on_fail","because"}]}
struct Policy {
  std::string name;
  std::string path;
  Json canonical;
  std::string digest;
};
Loaded<Policy> load_policy(const std::string& path);
Loaded<Policy> parse_policy(std::string_view toml, const std::string& path);

// What a qualification measures: checks, lanes, context ladder, seeds and budgets.
struct Suite {
  std::string name;
  std::string path;
  Json canonical;  // all fields, defaults filled in: see docs/suite.md
  std::string digest;
};
Loaded<Suite> load_suite(const std::string& path);
Loaded<Suite> parse_suite(std::string_view toml, const std::string& path);

// This machine, privately: which GPU is which role. Never copied into evidence.
struct HostFile {
  std::string path;
  Json roles = Json::object();  // role -> {"gpu": "GPU-uuid"}
  Json document = Json::object();
};
Loaded<HostFile> load_host(const std::string& path);
Loaded<HostFile> parse_host(std::string_view toml, const std::string& path);

// The field references of docs/policy.md and docs/suite.md.
std::string policy_reference();
std::string suite_reference();

}  // namespace anvil::recipe
