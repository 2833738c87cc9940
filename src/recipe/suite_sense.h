#pragma once

#include "base/json.h"
#include "recipe/judge.h"
#include "recipe/toml_document.h"

namespace anvil::recipe {

// What no single field of a suite can get wrong: whether the fields make sense together.
void judge_suite(Judge& judge, const TomlDocument& document);

// The lanes' part of that (suite_sense_lanes.cc).
void judge_lanes(Judge& judge);

// Makes the lanes of a canonical suite say what they mean: `canonical` is the suite with defaults,
// `document` the file as it was written. Defaults of keys that do not apply to a lane's load are
// taken out (a lane that lasts `duration_s` has no `requests`), keys that say what would hold
// without them are taken out, and defaults that depend on other keys are filled in. A lane that
// uses no key of arrivals, datasets or connections stays as it is.
void settle_lanes(Json& canonical, const Json& document);

}  // namespace anvil::recipe
