#pragma once

#include <memory>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "evidence/request_row.h"
#include "evidence/run_reader.h"

namespace anvil::evidence {

// The documents of a run that results are derived from; null where the run has none.
struct DerivationInputs {
  Json plan, suite, identity, launch, checks, load, calibration;
  std::vector<Json> journal;  // lines before the step "derive" began
};
Result<DerivationInputs> derivation_inputs(const RunReader& run);

// derive() as one pass over the rows, so that whoever reads them anyway need not read them twice.
// Lifecycle: construct with the documents, feed every row and sample in file order, finish once.
// One thread.
class Derivation {
 public:
  explicit Derivation(DerivationInputs inputs);
  ~Derivation();
  void add(const RequestRow& row);
  void add_sample(const Json& sample);
  Json finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace anvil::evidence
