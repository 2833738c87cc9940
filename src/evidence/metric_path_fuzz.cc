#include <cstdlib>

#include "evidence/derive.h"
#include "evidence/metric_path.h"

// A metric path, then after a zero byte the JSON text of a gate's "select": every match that has a
// value must be where its pointer says, and a decision must come out.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anvil;
  static const Json kResults = Json::parse(
      R"({"a":[{"b":{"c":1},"k":"x"},{"b":{"c":null}},3],"o":{"x/y":{"v":2},"~":{"v":true}},"n":[[1,2],[3]]})");
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string path = input.substr(0, zero);
  Json select = nullptr;
  if (zero != std::string::npos)
    if (auto parsed = base::parse_json(std::string_view(input).substr(zero + 1), "select"))
      select = *parsed;
  const auto parsed = evidence::parse_metric_path(path);
  if (parsed)
    for (const auto& match : evidence::match(kResults, *parsed, select).found)
      if (match.value && kResults.at(Json::json_pointer(match.pointer)) != *match.value)
        std::abort();
  const Json gate{{"metric", path}, {"op", "<="}, {"threshold", 2}, {"select", select}};
  const Json decision =
      evidence::decide(kResults, Json{{"gates", {gate}}}, nullptr, Json::object());
  if (!decision["decision"].is_string()) std::abort();
  return 0;
}
