#include "scripted/schedule.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "base/files.h"

namespace anvil::scripted {
namespace {

constexpr std::string_view kHead = "schema = \"anvil/schedule/v1\"\nname = \"t\"\n";

recipe::Loaded<Schedule> parsed(std::string_view rest) {
  return parse(std::string(kHead) + std::string(rest), "f.toml");
}

std::vector<std::string> keys_of_errors(std::string_view rest) {
  std::vector<std::string> keys;
  for (const auto& diagnostic : parsed(rest).diagnostics) keys.push_back(diagnostic.at.key);
  return keys;
}

TEST(Schedule, ReadsWhatItSays) {
  const auto loaded = parsed(R"(
seed = 9
choose = "mix"
[engine]
flavour = "llama.cpp"
prefill_tok_s = 1000
draft_tokens = 2
acceptance = [0.8, 0.5]
[[stream]]
name = "a"
role = "null"
times_ms = [1.5, 2]
finish_after_ms = 1
line_end = "crlf"
[stream.fault]
kind = "status"
status = 429
retry_after_s = 3
)");
  ASSERT_TRUE(loaded.ok()) << (loaded.diagnostics.empty()
                                   ? ""
                                   : recipe::to_string(loaded.diagnostics.front()));
  const Schedule& schedule = *loaded.value;
  EXPECT_EQ(schedule.seed, 9u);
  EXPECT_EQ(schedule.choose, Choose::kMix);
  EXPECT_EQ(schedule.engine.flavour, Flavour::kLlamaCpp);
  EXPECT_EQ(schedule.engine.acceptance, (std::vector<double>{0.8, 0.5}));
  ASSERT_EQ(schedule.streams.size(), 1u);
  const Stream& stream = schedule.streams[0];
  EXPECT_EQ(stream.role, Role::kNull);
  EXPECT_EQ(stream.times, (std::vector<Nanos>{1'500'000, 2'000'000}));
  EXPECT_EQ(stream.finish_after, kMillisecond);
  EXPECT_EQ(stream.usage_after, kMillisecond);  // with the finish reason
  EXPECT_EQ(stream.done_after, kMillisecond);
  EXPECT_EQ(stream.line_end, "\r\n");
  EXPECT_EQ(stream.fault.kind, FaultKind::kStatus);
  EXPECT_EQ(stream.fault.retry_after_s, 3);
}

TEST(Schedule, SaysEverythingThatIsWrongAtOnceAndWhere) {
  const auto loaded = parsed(R"([engine]
acceptance = [0.5]
[[stream]]
name = "a"
gap_msec = 3
gaps = "gama"
times_ms = [5, 4]
role_ms = 6
coalesce = 2
buffer_bytes = 100
[[stream]]
name = "a"
done_after_ms = 1
usage_after_ms = 2
text = "x y"
content_tokens = 2
)");
  EXPECT_FALSE(loaded.ok());
  std::string all;
  for (const auto& diagnostic : loaded.diagnostics) all += recipe::to_string(diagnostic) + "\n";
  for (const char* wanted :
       {"f.toml:4:1: engine.acceptance: has 1 numbers for 0 drafted tokens",
        "f.toml:7:1: stream[0].gap_msec", "gap_ms", "f.toml:8:1: stream[0].gaps", "gamma",
        "stream[0].times_ms[1]: comes before the event in front of it",
        "f.toml:10:1: stream[0].role_ms: comes after the first output event",
        "stream[0].coalesce: events can be cut, gathered or buffered, one of the three",
        "f.toml:14:1: stream[1].name: \"a\" stands twice",
        "stream[1].done_after_ms: the terminal marker comes before the usage",
        "stream[1].content_tokens: the words of text are counted"})
    EXPECT_NE(all.find(wanted), std::string::npos) << wanted << "\n" << all;
}

TEST(Schedule, RefusesWhatCouldNotBePlayed) {
  EXPECT_EQ(keys_of_errors(""), std::vector<std::string>{"stream"});
  EXPECT_EQ(keys_of_errors("[[stream]]\nname = \"a\"\nheaders_ms = 5\n"),
            std::vector<std::string>{"stream[0].headers_ms"});
  EXPECT_EQ(keys_of_errors("choose = \"mix\"\n[[stream]]\nname = \"a\"\nweight = 0\n"),
            std::vector<std::string>{"choose"});
  EXPECT_EQ(keys_of_errors("[engine]\ndraft_tokens = 2\nacceptance = [0.5, 0.6]\n"
                           "[[stream]]\nname = \"a\"\n"),
            std::vector<std::string>{"engine.acceptance[1]"});
  EXPECT_EQ(keys_of_errors("[[stream]]\nname = \"a\"\nsplit_at = [3, 3]\n"),
            std::vector<std::string>{"stream[0].split_at[1]"});
  EXPECT_EQ(keys_of_errors("[[stream]]\nname = \"a\"\ntool_calls = 1\ntool_pieces = 900\n"),
            std::vector<std::string>{"stream[0].tool_pieces"});
}

TEST(Schedule, DigestIsOfTheMeaning) {
  const auto a = parsed("[[stream]]\nname = \"a\"\ngap_ms = 5\n");
  const auto b = parsed("notes = \"n\"\n[[stream]]\ngap_ms = 5.0 # the same\nname = \"a\"\n");
  const auto c = parsed("[[stream]]\nname = \"a\"\ngap_ms = 6\n");
  ASSERT_TRUE(a.ok() && b.ok() && c.ok());
  EXPECT_EQ(a.value->digest, b.value->digest);
  EXPECT_NE(a.value->digest, c.value->digest);
}

TEST(Schedule, ShippedOnesLoadWithoutAWord) {
  const std::string folder = std::string(ANVIL_SOURCE_DIR) + "/schedules";
  const auto names = base::list_directory(folder);
  ASSERT_TRUE(names);
  int seen = 0;
  for (const auto& name : *names) {
    if (!name.ends_with(".toml")) continue;
    ++seen;
    const auto loaded = load(folder + "/" + name);
    for (const auto& diagnostic : loaded.diagnostics)
      ADD_FAILURE() << recipe::to_string(diagnostic);
    ASSERT_TRUE(loaded.ok()) << name;
    EXPECT_EQ(loaded.value->name + ".toml", name);
  }
  EXPECT_GE(seen, 20);
}

// ANVIL_UPDATE_DOCS=1 in the environment rewrites the generated part.
TEST(Schedule, ReferenceIsFresh) {
  const std::string path = std::string(ANVIL_SOURCE_DIR) + "/docs/schedule.md";
  const auto text = base::read_file(path);
  ASSERT_TRUE(text);
  const std::string mark = "<!-- generated: schedule fields -->\n";
  const auto from = text->find(mark);
  ASSERT_NE(from, std::string::npos);
  const auto start = from + mark.size();
  const auto end = text->find("<!-- end generated -->\n", start);
  ASSERT_NE(end, std::string::npos);
  const std::string fresh = "\n" + schedule_reference();
  if (getenv("ANVIL_UPDATE_DOCS")) {
    ASSERT_TRUE(base::write_file_atomic(path, text->substr(0, start) + fresh + text->substr(end)));
    return;
  }
  EXPECT_TRUE(text->substr(start, end - start) == fresh)
      << "docs/schedule.md is not what the field table says: run this test once with "
         "ANVIL_UPDATE_DOCS=1 in the environment";
}

TEST(Schedule, TheExampleOfTheDocumentLoads) {
  const auto text = base::read_file(std::string(ANVIL_SOURCE_DIR) + "/docs/schedule.md");
  ASSERT_TRUE(text);
  const auto from = text->find("```toml\n") + 8;
  const auto loaded = parse(text->substr(from, text->find("```\n", from) - from), "schedule.md");
  for (const auto& diagnostic : loaded.diagnostics) ADD_FAILURE() << recipe::to_string(diagnostic);
  EXPECT_TRUE(loaded.ok());
}

}  // namespace
}  // namespace anvil::scripted
