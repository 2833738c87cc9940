#include <gtest/gtest.h>

#include "base/files.h"
#include "base/strings.h"
#include "engine/interface_rules.h"
#include "engine/interface_schema.h"
#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

std::string document(const char* name) {
  const auto text = base::read_file(std::string(ANVIL_SOURCE_DIR) + "/docs/" + name);
  return text ? *text : "";
}

TEST(Documents, EveryKeyOfATableIsDescribed) {
  const std::string reference(base::trim(recipe::reference(interface_schema())));
  EXPECT_NE(document("interfaces.md").find(reference), std::string::npos)
      << "docs/interfaces.md must hold:\n"
      << reference;
}

TEST(Documents, EveryFailureClassIsDescribed) {
  const std::string text = document("failures.md");
  for (const std::string& name : InterfaceTable::shipped()) {
    const InterfaceTable table = shipped_table(name);
    for (const FailureRule& rule : table.rules().failures) {
      if (rule.wrapper) continue;
      EXPECT_NE(text.find("| `" + rule.klass + "` |"), std::string::npos) << rule.klass;
    }
  }
}

}  // namespace
}  // namespace anvil::engine
