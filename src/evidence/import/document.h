#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace anvil::evidence::imported {

// Something in a file that is not as its schema has it. `pointer` is a JSON pointer into the file,
// "" for the file as a whole.
struct Problem {
  std::string pointer;
  std::string what;
};

// One file of a foreign campaign, as found.
struct Document {
  std::string file;    // name within the directory
  std::string schema;  // what the file says it is, "" if nothing
  std::string kind;    // "capacity", "preflight", ..., "unknown", "unreadable"
  std::string sha256;
  Json json;
  std::vector<Problem> problems;

  // Keeps the first problems of a file; a file that is wrong everywhere needs no thousand lines.
  void report(std::string pointer, std::string what);
};

// A value inside a document, with its place. Reading never throws: what is missing or of another
// type is reported to the document once, and reads as nothing from there on. Borrows the document,
// which must not move meanwhile.
class Node {
 public:
  explicit Node(Document& document) : document_(&document), value_(&document.json) {}

  // A member that must be there.
  Node operator[](std::string_view key) const;
  // A member that may be missing or null.
  Node maybe(std::string_view key) const;

  bool present() const { return value_ != nullptr; }
  const std::string& pointer() const { return pointer_; }
  const Document& document() const { return *document_; }

  std::optional<double> number() const;    // finite
  std::optional<double> duration() const;  // finite and not negative
  std::optional<int64_t> count() const;    // an integer, not negative
  std::optional<bool> boolean() const;
  std::string text() const;
  std::vector<Node> items() const;                            // of an array
  std::vector<std::pair<std::string, Node>> members() const;  // of an object, by name
  // Says that the value is not what it has to be.
  void odd(std::string what) const;

 private:
  Node(Document* document, const Json* value, std::string pointer)
      : document_(document), value_(value), pointer_(std::move(pointer)) {}
  Node below(std::string_view key, const Json* value) const;

  Document* document_;
  const Json* value_;
  std::string pointer_;
};

// "file#/pointer".
std::string place(const Document& document, std::string_view pointer);

}  // namespace anvil::evidence::imported
