#include <cstdio>

#include "evidence/testing/synthetic_run.h"

// anvil_synthetic_run DIR: writes a complete run below DIR and prints its directory.
int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: anvil_synthetic_run DIR\n", stderr);
    return anvil::base::kExitUsage;
  }
  const auto directory = anvil::evidence::testing::write_synthetic_run(argv[1]);
  if (!directory) {
    std::fprintf(stderr, "%s\n", anvil::base::to_string(directory.error()).c_str());
    return anvil::base::kExitEnvironment;
  }
  std::printf("%s\n", directory->c_str());
  return anvil::base::kExitOk;
}
