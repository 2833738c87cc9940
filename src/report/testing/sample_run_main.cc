#include <cstdio>

#include "report/testing/sample_run.h"

// anvil_sample_run DIR full|gpu|rejected|incomplete|hostile
int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: anvil_sample_run DIR full|gpu|rejected|incomplete|hostile\n");
    return 2;
  }
  const auto done = anvil::report::write_sample_run(argv[1], argv[2]);
  if (!done) std::fprintf(stderr, "%s\n", anvil::base::to_string(done.error()).c_str());
  return done ? 0 : 3;
}
