#include "wire/answer.h"

namespace anvil::wire {

namespace {

struct ApiRow {
  Api api;
  std::string_view name, path;
};

constexpr ApiRow kApis[] = {
    {Api::kChat, "chat", "/v1/chat/completions"},
    {Api::kCompletions, "completions", "/v1/completions"},
    {Api::kResponses, "responses", "/v1/responses"},
};

const ApiRow& row(Api api) {
  return kApis[static_cast<size_t>(api)];
}

}  // namespace

std::string_view name(Api api) {
  return row(api).name;
}

std::string_view path(Api api) {
  return row(api).path;
}

std::optional<Api> api_from_name(std::string_view name) {
  for (const ApiRow& candidate : kApis) {
    if (candidate.name == name) return candidate.api;
  }
  return std::nullopt;
}

}  // namespace anvil::wire
