#include "qualify/sandbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/files.h"

namespace anvil::qualify {
namespace {

class SandboxOf : public ::testing::TestWithParam<Isolation> {
 protected:
  void SetUp() override {
    if (sandbox_.isolation() == Isolation::kNone)
      GTEST_SKIP() << "not possible on this host: " << sandbox_.describe().dump();
  }
  SandboxRun run(std::string_view program, SandboxLimits limits = {}) {
    auto result = sandbox_.run(program, limits, cancel_);
    EXPECT_TRUE(result.has_value());
    return result.value_or(SandboxRun{});
  }

  const Sandbox sandbox_ = Sandbox::of_kind(GetParam());
  base::Cancel cancel_;
};

TEST_P(SandboxOf, RunsAProgram) {
  const SandboxRun run1 = run("import json, sys\nprint(json.dumps([1, 2]))\nsys.stderr.write('e')");
  EXPECT_TRUE(run1.ok());
  EXPECT_EQ(run1.out, "[1, 2]\n");
  EXPECT_EQ(run1.err, "e");
  const SandboxRun run2 = run("raise SystemExit(3)");
  EXPECT_EQ(run2.exit_code, 3);
  EXPECT_FALSE(run2.ok());
}

TEST_P(SandboxOf, AnEndlessLoopIsEndedByItsCpuLimit) {
  SandboxLimits limits;
  limits.cpu_seconds = 1;
  limits.wall = 60 * kSecond;
  const SandboxRun ended = run("while True: pass", limits);
  EXPECT_FALSE(ended.ok());
  EXPECT_TRUE(ended.signal == SIGXCPU || ended.signal == SIGKILL) << ended.signal;
  EXPECT_EQ(ended.killed, "");
}

TEST_P(SandboxOf, AProgramThatWaitsIsEndedByTheClock) {
  SandboxLimits limits;
  limits.wall = 300 * kMillisecond;
  EXPECT_EQ(run("import time\ntime.sleep(600)", limits).killed, "wall");
  // Closing its output does not hide it.
  EXPECT_EQ(run("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(600)", limits).killed,
            "wall");
}

TEST_P(SandboxOf, AForkBombDoesNotGoOff) {
  const SandboxRun ended = run(
      "import os\ntry:\n  os.fork()\n  print('forked')\nexcept OSError as e:\n  print('refused')\n"
      "import subprocess\ntry:\n  subprocess.run(['/bin/true'])\n  print('ran')\n"
      "except OSError as e:\n  print('refused')");
  EXPECT_EQ(ended.out, "refused\nrefused\n");
}

TEST_P(SandboxOf, ThereIsNoNetwork) {
  const SandboxRun ended =
      run("import socket\ntry:\n  socket.create_connection(('127.0.0.1', 1), 1)\n  print('open')\n"
          "except OSError as e:\n  print(type(e).__name__)");
  EXPECT_EQ(ended.out, "PermissionError\n");
}

TEST_P(SandboxOf, FilesOfTheHostAreNotVisible) {
  for (const char* path : {"/etc/passwd", "/proc/1/environ", "/root/.bashrc", "/etc/shadow"}) {
    const SandboxRun ended = run(std::string("print(open('") + path + "').read())");
    // Inside bwrap, process 1 is the sandbox's own and its environment is empty.
    EXPECT_EQ(ended.out.find("root"), std::string::npos) << path;
    EXPECT_EQ(ended.out.find("PATH=/usr/local"), std::string::npos) << path;
  }
}

TEST_P(SandboxOf, NothingCanBeWritten) {
  const std::string target = "/tmp/anvil-sandbox-test-" + std::to_string(getpid());
  const SandboxRun ended =
      run("import os\nfor f in (lambda: open('" + target + "', 'w'), lambda: os.mkdir('" + target +
          "'), lambda: os.unlink('/usr/bin/python3')):\n"
          "  try:\n    f()\n    print('done')\n"
          "  except OSError as e:\n    print('refused')");
  EXPECT_EQ(ended.out, "refused\nrefused\nrefused\n");
  EXPECT_FALSE(base::exists(target));
}

TEST_P(SandboxOf, MemoryAndOutputAreBounded) {
  EXPECT_EQ(run("try:\n  x = bytearray(1 << 30)\n  print('got it')\nexcept MemoryError:\n"
                "  print('refused')")
                .out,
            "refused\n");
  const SandboxRun flood = run("while True: print('x' * 1000)");
  EXPECT_EQ(flood.killed, "output");
  EXPECT_EQ(flood.out.size(), SandboxLimits{}.output_bytes);
}

TEST_P(SandboxOf, TheEnvironmentIsEmpty) {
  setenv("ANVIL_TEST_SECRET", "s3cret", 1);
  EXPECT_EQ(run("import os\nprint('ANVIL_TEST_SECRET' in os.environ)").out, "False\n");
}

TEST_P(SandboxOf, LimitsCannotBeRaised) {
  EXPECT_EQ(run("import resource as r\ntry:\n  r.setrlimit(r.RLIMIT_CPU, (100, 100))\n"
                "  print('raised')\nexcept (OSError, ValueError):\n  print('refused')")
                .out,
            "refused\n");
}

TEST_P(SandboxOf, CancelEndsIt) {
  std::thread canceller([this] { cancel_.request(); });
  const SandboxRun ended = run("import time\ntime.sleep(600)");
  canceller.join();
  EXPECT_EQ(ended.killed, "cancelled");
}

TEST_P(SandboxOf, SaysWhatItConsistsOf) {
  const Json says = sandbox_.describe();
  EXPECT_EQ(says["isolation"], std::string(name(GetParam())));
  EXPECT_NE(says["parts"].dump().find("seccomp"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Kinds, SandboxOf,
                         ::testing::Values(Isolation::kBubblewrap, Isolation::kKernelFilter),
                         [](const auto& kind) {
                           return kind.param == Isolation::kBubblewrap ? "Bubblewrap"
                                                                       : "KernelFilter";
                         });

TEST(Sandbox, NoneRefusesToRun) {
  const base::Cancel cancel;
  const Sandbox none = Sandbox::of_kind(Isolation::kNone);
  const auto run = none.run("print(1)", {}, cancel);
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().kind, Kind::kUnsupported);
}

}  // namespace
}  // namespace anvil::qualify
