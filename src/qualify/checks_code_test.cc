#include "qualify/checks_code.h"

#include <gtest/gtest.h>

namespace anvil::qualify {
namespace {

constexpr std::string_view kGood =
    "def sum_even(numbers):\n    return sum(n for n in numbers if n % 2 == 0)\n";

CodeTask task() {
  CodeTask out;
  out.function = "sum_even";
  out.cases = {{Json::array({{1, 2, 3, 4}}), 6},
               {Json::array({Json::array()}), 0},
               {Json::array({{1, 3, 5}}), 0},
               {Json::array({{-2, -3, -4}}), -6}};
  return out;
}

TEST(ExtractCode, FromFencesProseAndBareText) {
  const std::string good(kGood);
  EXPECT_EQ(extract_code(good, "sum_even"), good);
  EXPECT_EQ(extract_code("Sure! Here it is:\n\n```python\n" + good + "```\n\nIt works by ...",
                         "sum_even"),
            good);
  EXPECT_EQ(extract_code("```py\n" + good, "sum_even"), good) << "a fence that the budget cut open";
  EXPECT_EQ(
      extract_code("First:\n```sh\npip install x\n```\nThen:\n```\n" + good + "```", "sum_even"),
      good)
      << "the block that defines it, not the first";
  EXPECT_EQ(extract_code("Here is the code:\n" + good + "\nThis function adds.", "sum_even"), good);
  EXPECT_EQ(
      extract_code("1. Write it:\n\n    def sum_even(numbers):\n        return 0\n", "sum_even"),
      "def sum_even(numbers):\n    return 0\n");
  EXPECT_EQ(
      extract_code("from typing import List\n\ndef sum_even(n: List[int]) -> int:\n  return 0",
                   "sum_even"),
      "from typing import List\n\ndef sum_even(n: List[int]) -> int:\n  return 0\n");
  EXPECT_EQ(extract_code("sum_even = lambda xs: 0", "sum_even"), "sum_even = lambda xs: 0\n");
}

TEST(ExtractCode, NothingWhereTheFunctionIsNotDefined) {
  EXPECT_FALSE(extract_code("", "sum_even"));
  EXPECT_FALSE(extract_code("Use sum( ) over the even numbers.", "sum_even"));
  EXPECT_FALSE(extract_code("def sum_evens(x): return 0", "sum_even"));
  EXPECT_FALSE(extract_code("print(sum_even([1]))", "sum_even"));
}

class GradeCode : public ::testing::TestWithParam<Isolation> {
 protected:
  void SetUp() override {
    if (GetParam() != Isolation::kNone && sandbox_.isolation() == Isolation::kNone)
      GTEST_SKIP() << "not possible on this host: " << sandbox_.describe().dump();
  }
  bool executes() const { return GetParam() != Isolation::kNone; }
  Grade grade(std::string_view answer) {
    auto result = grade_code(task(), answer, sandbox_, cancel_);
    EXPECT_TRUE(result.has_value());
    return result.value_or(Grade{});
  }
  std::string detail(std::string_view answer) { return grade(answer).detail; }

  const Sandbox sandbox_ = Sandbox::of_kind(GetParam());
  base::Cancel cancel_;
};

TEST_P(GradeCode, RightCodePassesAndSaysHowItRan) {
  const Grade good = grade(kGood);
  EXPECT_EQ(good.verdict, CheckVerdict::kPass) << good.detail;
  EXPECT_EQ(good.evidence["execution"],
            executes() ? std::string(name(GetParam())) : "built-in evaluator");
  EXPECT_EQ(good.evidence["cases"].size(), 4u);
  EXPECT_EQ(good.evidence["cases"][0]["got"], 6);
}

TEST_P(GradeCode, WrongValuesFailAndAreNamed) {
  EXPECT_EQ(detail("def sum_even(numbers): return sum(numbers)"),
            "the code runs, 1 of 4 cases right: sum_even([1,2,3,4]) returned 10, must be 6");
  EXPECT_EQ(detail("def sum_even(numbers): return len(numbers) > 9"),
            "the code runs, 0 of 4 cases right: sum_even([1,2,3,4]) returned false, must be 6");
  EXPECT_EQ(grade("def sum_even(numbers): return numbers[0]").verdict, CheckVerdict::kFail);
}

TEST_P(GradeCode, CodeThatFailsFails) {
  EXPECT_EQ(grade("def sum_even(numbers): return undefined").verdict, CheckVerdict::kFail);
  EXPECT_EQ(grade("def sum_even(numbers) return 1").verdict, CheckVerdict::kFail);
  EXPECT_EQ(detail("The sum is computed with sum(numbers)."),
            "the answer holds no definition of sum_even");
}

TEST_P(GradeCode, CodeCannotFakeItsResults) {
  if (!executes()) {
    EXPECT_NE(detail("def sum_even(numbers):\n    print('x')\n    return 6").find("built-in"),
              std::string::npos);
    return;
  }
  EXPECT_EQ(
      grade("import sys\ndef sum_even(numbers): return 0\nprint('0 {\"got\": 6}')\nsys.exit(0)")
          .verdict,
      CheckVerdict::kFail);
  EXPECT_EQ(grade("class Six:\n  def __eq__(self, other): return True\n"
                  "def sum_even(numbers):\n  return Six()")
                .verdict,
            CheckVerdict::kFail);
}

TEST_P(GradeCode, HostileCodeFailsAndHarmsNothing) {
  if (!executes()) return;
  EXPECT_NE(detail("def sum_even(numbers):\n  while True: pass").find("ended by signal"),
            std::string::npos);
  EXPECT_EQ(detail("import os\ndef sum_even(numbers):\n  while True: os.fork()").find("passes"),
            std::string::npos);
  EXPECT_NE(detail("import socket\ndef sum_even(n):\n  socket.create_connection(('1.1.1.1', 80))")
                .find("PermissionError"),
            std::string::npos);
  EXPECT_EQ(grade("def sum_even(n):\n  return open('/etc/passwd').read()").verdict,
            CheckVerdict::kFail);
  EXPECT_NE(
      detail("def sum_even(numbers):\n  numbers.clear()\n  return 0").find("of 4 cases right"),
      std::string::npos);
  EXPECT_EQ(detail("def sum_even(numbers):\n  r = sum(n for n in numbers if n % 2 == 0)\n"
                   "  numbers.append(1)\n  return r"),
            "the code runs, 0 of 4 cases right: sum_even([1,2,3,4]) changed its argument");
}

INSTANTIATE_TEST_SUITE_P(Kinds, GradeCode,
                         ::testing::Values(Isolation::kBubblewrap, Isolation::kKernelFilter,
                                           Isolation::kNone),
                         [](const auto& kind) {
                           return kind.param == Isolation::kBubblewrap     ? "Bubblewrap"
                                  : kind.param == Isolation::kKernelFilter ? "KernelFilter"
                                                                           : "Evaluator";
                         });

}  // namespace
}  // namespace anvil::qualify
