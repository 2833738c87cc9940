#pragma once

#include <map>
#include <memory>
#include <string>

#include "recipe/fields.h"

namespace anvil::recipe {

// The field table as a tree of tables; private to the schema.
struct Schema::Node {
  std::map<std::string, std::unique_ptr<Node>, std::less<>> children;
  std::unique_ptr<Node> any;     // what a free key holds
  const Field* field = nullptr;  // set on leaves
  bool array = false;            // an array of tables

  const Node* child(std::string_view key) const {
    const auto found = children.find(key);
    return found != children.end() ? found->second.get() : any.get();
  }
};

}  // namespace anvil::recipe
