#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/files.h"
#include "evidence/campaign.h"
#include "evidence/run_reader.h"
#include "report/report.h"
#include "report/testing/sample_bench.h"
#include "report/testing/sample_run.h"

namespace anvil::report {

// A folder of its own for sample runs and campaigns, and what reading pages needs.
class ReportFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "anvil-report-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string sample(const std::string& kind) {
    const std::string path = base::join_path(folder_, kind);
    const auto done = write_sample_run(path, kind);
    EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
    return path;
  }
  std::string sample_campaign(const std::string& kind) {
    const std::string path = base::join_path(folder_, "campaign-" + kind);
    const auto done = write_sample_campaign(path, kind);
    EXPECT_TRUE(done) << (done ? "" : to_string(done.error()));
    return path;
  }
  static std::string page(const std::string& path, Format format = Format::kHtml,
                          const TerminalOptions& options = {}) {
    const auto run = evidence::RunReader::open(path);
    EXPECT_TRUE(run) << (run ? "" : to_string(run.error()));
    auto text = render(*run, format, options);
    EXPECT_TRUE(text) << (text ? "" : to_string(text.error()));
    return text.value_or("");
  }
  static bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
  }
  static size_t occurrences(const std::string& text, std::string_view part) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
    return n;
  }

  std::string folder_;
};

}  // namespace anvil::report
