#include <cstdio>
#include <string_view>

#include "report/testing/sample_bench.h"
#include "report/testing/sample_run.h"

// anvil_sample_run DIR full|gpu|rejected|incomplete|hostile|bench|troubled
// anvil_sample_run DIR campaign effect|aa|exploratory|hostile
int main(int argc, char** argv) {
  const bool campaign = argc == 4 && std::string_view(argv[2]) == "campaign";
  if (argc != 3 && !campaign) {
    std::fprintf(stderr,
                 "usage: anvil_sample_run DIR full|gpu|rejected|incomplete|hostile|bench|troubled\n"
                 "       anvil_sample_run DIR campaign effect|aa|exploratory|hostile\n");
    return 2;
  }
  const auto done = campaign ? anvil::report::write_sample_campaign(argv[1], argv[3])
                             : anvil::report::write_sample_run(argv[1], argv[2]);
  if (!done) std::fprintf(stderr, "%s\n", anvil::base::to_string(done.error()).c_str());
  return done ? 0 : 3;
}
