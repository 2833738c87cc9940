#include "qualify/python_value.h"

#include <gtest/gtest.h>

namespace anvil::qualify {
namespace {

// The result as JSON text, or the kind of the error.
std::string call(std::string_view source, const char* argument = "[1,2,3,4]") {
  const auto result = call_python_function(source, "f", {Json::parse(argument)});
  if (!result) return std::string(base::describe(result.error().kind).name);
  return result->dump();
}

TEST(PythonValue, OneLinersOverLists) {
  EXPECT_EQ(call("def f(xs):\n    return sum(x for x in xs if x % 2 == 0)\n"), "6");
  EXPECT_EQ(call("def f(xs: list[int]) -> int:\n    \"\"\"Doc.\"\"\"\n    return sum(xs)"), "10");
  EXPECT_EQ(call("f = lambda xs: sum([x for x in xs if not x & 1])"), "invalid_input");
  EXPECT_EQ(call("f = lambda xs: sum(filter(lambda x: x % 2 == 0, xs))"), "6");
  EXPECT_EQ(call("def f(xs): return sum(map(lambda x: x * x, xs))"), "30");
  EXPECT_EQ(call("from typing import List\n\ndef f(xs: List[int]) -> int:\n  return sum(xs)"),
            "10");
  EXPECT_EQ(call("def f(xs):\n    # comment\n    return (\n        sum(xs)\n        + 1\n    )\n"),
            "11");
  EXPECT_EQ(call("def f(xs): return sum(xs)\n\nprint(f([1, 2]))\n"), "10");
  EXPECT_EQ(call("def f(xs): return [a * b for a in xs for b in xs if a < b]"), "[2,3,4,6,8,12]");
}

TEST(PythonValue, ArithmeticIsPythons) {
  EXPECT_EQ(call("def f(x): return -7 // 2", "0"), "-4");
  EXPECT_EQ(call("def f(x): return -7 % 3", "0"), "2");
  EXPECT_EQ(call("def f(x): return 7 % -3", "0"), "-2");
  EXPECT_EQ(call("def f(x): return -2 ** 2", "0"), "-4");
  EXPECT_EQ(call("def f(x): return 2 ** 3 ** 2", "0"), "512");
  EXPECT_EQ(call("def f(x): return 7 / 2", "0"), "3.5");
  EXPECT_EQ(call("def f(x): return 1 < x <= 3", "3"), "true");
  EXPECT_EQ(call("def f(x): return 3 if x else 4", "[]"), "4");
  EXPECT_EQ(call("def f(x): return x or 'none'", "[]"), "\"none\"");
  EXPECT_EQ(call("def f(x): return x is not None and x not in [1, 2]", "3"), "true");
  EXPECT_EQ(call("def f(x): return sorted(x)[-1] - min(x)", "[3,9,4]"), "6");
  EXPECT_EQ(call("def f(x): return sum(range(10, 0, -3))", "0"), "22");
}

TEST(PythonValue, WrongCodeIsAnErrorOfTheCode) {
  EXPECT_EQ(call("def f(xs) return 1"), "invalid_input");
  EXPECT_EQ(call("def f(xs): return sum(xs"), "invalid_input");
  EXPECT_EQ(call("def f(xs): return ys"), "invalid_input");
  EXPECT_EQ(call("def f(xs): return 1 // 0"), "invalid_input");
  EXPECT_EQ(call("def f(xs): return xs[9]"), "invalid_input");
  EXPECT_EQ(call("def f(xs): return xs + 1"), "invalid_input");
  EXPECT_EQ(call("def f(a, b): return a"), "invalid_input");
  EXPECT_EQ(call("def f(x): return max([])"), "invalid_input");
  EXPECT_EQ(call("def f(x): return 'open"), "invalid_input");
}

TEST(PythonValue, WhatItDoesNotKnowIsSaid) {
  EXPECT_EQ(
      call("def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total"),
      "unsupported");
  EXPECT_EQ(call("import os\ndef f(xs): return os.getpid()"), "unsupported");
  EXPECT_EQ(call("def f(xs): return eval('1')"), "unsupported");
  EXPECT_EQ(call("def f(xs): return xs[0:2]"), "unsupported");
  EXPECT_EQ(call("def f(xs): return {1: 2}"), "unsupported");
  EXPECT_EQ(call("def g(xs): return 1"), "unsupported");
  EXPECT_EQ(call("The answer is 10."), "unsupported");
  EXPECT_EQ(call(""), "unsupported");
  EXPECT_EQ(call("def f(x): return 1\ndef f(x): return 2"), "unsupported");
}

TEST(PythonValue, WorkAndDepthAreBounded) {
  EXPECT_EQ(call("def f(x): return sum(range(10 ** 12))"), "unsupported");
  EXPECT_EQ(call("def f(x): return 2 ** 80"), "unsupported");
  EXPECT_EQ(call("def f(x): return sum(1 for a in range(999) for b in range(999))"), "unsupported");
  EXPECT_EQ(call("def f(x): return " + std::string(5000, '(')), "unsupported");
  EXPECT_EQ(call("def f(x): return " + std::string(5000, '-') + "1"), "unsupported");
  EXPECT_EQ(call("def f(x): return 99999999999999999999"), "unsupported");
}

}  // namespace
}  // namespace anvil::qualify
