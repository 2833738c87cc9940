#include <string>

#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "report/testing/sample_bench.h"

namespace anvil::report {

namespace {

constexpr const char* kEvil = "<img src=x onerror=alert(1)>";

Json field(const char* path, Json a, Json b) {
  return {{"path", path}, {"a", std::move(a)}, {"b", std::move(b)}};
}

Json diff_of(std::string_view kind) {
  Json out{{"changed", Json::array()},
           {"consequences", Json::array()},
           {"labels", Json::array()},
           {"unchanged", {"weights", "kv-dtype", "engine-build", "topology", "sampling"}}};
  if (kind == "aa") return out;
  out["changed"].push_back(
      {{"variable", "speculation"},
       {"fields",
        {field("speculation.method", nullptr, "ngram"), field("speculation.tokens", nullptr, 4)}}});
  out["consequences"].push_back({{"what", "tokens per step of one stream"},
                                 {"a", 1},
                                 {"b", 5},
                                 {"because", "each draft is checked in one step"}});
  if (kind == "exploratory")
    out["changed"].push_back(
        {{"variable", "context"}, {"fields", {field("serving.context_tokens", 8192, 16384)}}});
  if (kind == "hostile") {
    out["changed"][0]["variable"] = kEvil;
    out["consequences"][0]["because"] = "</ul><script>alert(3)</script>";
  }
  return out;
}

}  // namespace

Result<void> write_sample_campaign(const std::string& directory, std::string_view kind) {
  if (base::exists(directory))
    return fail(Kind::kUsage, Side::kClient, directory + " exists already");
  const bool aa = kind == "aa", exploratory = kind == "exploratory", hostile = kind == "hostile";
  TRY(base::make_directories(base::join_path(directory, "runs")));
  const int pairs = exploratory ? 3 : 6;
  std::string order;
  for (int pair = 0; pair < pairs; ++pair) order += pair % 2 ? "ba" : "ab";
  const auto arm = [&](const char* name) {
    const std::string recipe = hostile ? std::string(name) + kEvil : name;
    return Json{{"recipe", recipe}, {"digest", base::sha256(recipe)}, {"runner", "process"}};
  };
  const Json a = arm("qwen3-0.6b-plain"), b = aa ? a : arm("qwen3-0.6b-ngram");
  const Json frozen{
      {"schema", "anvil/campaign/v1"},
      {"id", "20260922T160640Z-ab-3f9a2c"},
      {"kind", "ab"},
      {"a", a},
      {"b", b},
      {"diff", diff_of(kind)},
      {"suite", {{"name", "steps"}, {"digest", base::sha256("steps")}}},
      {"policy", {{"name", "measure"}, {"digest", base::sha256("measure")}}},
      {"plan",
       {{"primary",
         {{"lane", hostile ? std::string("c4<b onclick=alert(1)>") : "c4"}, {"metric", "tpot_ms"}}},
        {"metrics",
         {"ttfo_ms", "e2e_ms", "decode_tok_s", "aggregate_output_tok_s", "success_rate"}},
        {"margin", 0.05},
        {"seed", 11},
        {"order", order},
        {"pairs", pairs},
        {"stop", {{"pairs", pairs}}},
        {"exploratory", exploratory}}},
      {"tool", {{"version", "0.1.0"}, {"build", "4f1c2e9"}}},
      {"anchor", {{"mono_ns", 1}, {"wall_ns", 1}, {"utc", "2026-09-22T16:06:40Z"}}}};
  const std::string bytes = base::pretty(frozen);
  TRY(base::write_file_atomic(base::join_path(directory, "campaign.json"), bytes));

  std::string journal, head(64, '0');
  const auto append = [&](const char* event, Json data) {
    const std::string line =
        base::canonical(Json{
            {"event", event}, {"step", "campaign"}, {"data", std::move(data)}, {"prev", head}}) +
        "\n";
    head = base::sha256(line);
    journal += line;
  };
  append("freeze", {{"sha256", base::sha256(bytes)}});
  for (size_t i = 0; i < order.size(); ++i) {
    const bool is_b = order[i] == 'b';
    // An arm that is truly faster, and a small common drift that the order cancels.
    const double drift = 1 + 0.004 * static_cast<double>(i);
    BenchShape shape{.name = is_b ? b["recipe"] : a["recipe"],
                     .seed = 1000 + i * 17,
                     .speed = drift * (is_b && !aa && !exploratory ? 1.31 : 1),
                     .closed_lanes = 2,
                     .open_loop = false,
                     .counters = is_b && !aa,
                     .hostile = hostile,
                     .failures = exploratory && is_b ? 3 : 0,
                     .requests = 20};
    const std::string run =
        "20260922T16064" + std::to_string(i % 10) + "Z-run-" + std::to_string(i);
    TRY(write_sample_bench(base::join_path(directory, "runs/" + run), shape));
    Json excluded = nullptr;
    if (i == 5 && !exploratory)
      excluded = hostile ? "lane c4: </td><script>alert(4)</script>"
                         : "lane c4: our client was busy for 94.0 % of the lane";
    append("run", {{"index", i},
                   {"arm", is_b ? "b" : "a"},
                   {"pair", i / 2},
                   {"run", run},
                   {"excluded", excluded}});
  }
  append("end", Json::object());
  return base::write_file_atomic(base::join_path(directory, "journal.jsonl"), journal);
}

}  // namespace anvil::report
