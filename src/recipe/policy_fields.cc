#include "recipe/fields.h"

namespace anvil::recipe {

namespace {
using enum FieldType;
}

const Schema& policy_schema() {
  static const Schema schema(
      "anvil/policy/v1", "policy",
      {
          {.path = "name",
           .form = FieldForm::kName,
           .required = true,
           .doc = "What people call this policy."},
          {.path = "notes", .label = true, .doc = "Free text."},
          {.path = "suite",
           .form = FieldForm::kName,
           .doc = "The shipped suite that measures what these gates ask for; used when none is "
                  "named on the command line."},
          {.path = "requires_pinned",
           .type = kBool,
           .fallback = false,
           .doc = "A recipe that leaves something unpinned can never be promoted."},
          {.path = "gate[].id",
           .form = FieldForm::kName,
           .required = true,
           .doc = "Name of the gate; unique in the policy."},
          {.path = "gate[].metric",
           .form = FieldForm::kLine,
           .required = true,
           .doc = "Path into `results.json`. `[*]` stands for every element, `[2]` for one."},
          {.path = "gate[].select.*",
           .type = kAny,
           .doc = "Only the elements under `[*]` whose key has this value (or one of a list of "
                  "values)."},
          {.path = "gate[].over",
           .choices = {"every", "any", "min", "max", "sum", "count"},
           .fallback = "every",
           .doc = "How many values become one verdict: each of them must hold, one must hold, or "
                  "their minimum, maximum, sum or number must hold."},
          {.path = "gate[].op",
           .choices = {"<=", ">=", "==", "<", ">", "!="},
           .required = true,
           .doc = "Comparison of the value (left) with the threshold (right)."},
          {.path = "gate[].threshold",
           .type = kScalar,
           .required = true,
           .doc = "What the value is compared with."},
          {.path = "gate[].unit", .form = FieldForm::kLine, .doc = "Unit of value and threshold."},
          {.path = "gate[].on_fail",
           .choices = {"reject", "no-promotion", "watch"},
           .fallback = "reject",
           .doc = "What the decision becomes when the gate fails."},
          {.path = "gate[].because",
           .form = FieldForm::kLine,
           .required = true,
           .doc = "Why this gate exists. Stands in the report beside the verdict."},
      },
      {{"gate[]",
        "One predicate over the evidence. Its verdict is `pass`, `fail`, or "
        "`not-measured` when the path leads to nothing."}});
  return schema;
}

const Schema& host_schema() {
  static const Schema schema(
      "anvil/host/v1", "host file",
      {
          {.path = "name", .form = FieldForm::kName, .label = true, .doc = "Name of this machine."},
          {.path = "notes", .label = true, .doc = "Free text."},
          {.path = "role[].name",
           .form = FieldForm::kName,
           .required = true,
           .doc = "The role that recipes speak of, e.g. `compute-a`."},
          {.path = "role[].gpu",
           .form = FieldForm::kLine,
           .required = true,
           .doc = "UUID of the card, as `nvidia-smi -L` prints it: `GPU-...`."},
          {.path = "role[].notes", .label = true, .doc = "Free text, e.g. the slot."},
      },
      {{"role[]", "One card of this machine."}});
  return schema;
}

}  // namespace anvil::recipe
