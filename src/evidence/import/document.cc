#include "evidence/import/document.h"

#include <cmath>

#include "base/strings.h"

namespace anvil::evidence::imported {

namespace {

constexpr size_t kMostProblems = 50;

std::string escape(std::string_view key) {
  return base::replace_all(base::replace_all(std::string(key), "~", "~0"), "/", "~1");
}

}  // namespace

void Document::report(std::string pointer, std::string what) {
  if (problems.size() < kMostProblems) problems.push_back({std::move(pointer), std::move(what)});
}

Node Node::below(std::string_view key, const Json* value) const {
  return {document_, value, pointer_ + "/" + escape(key)};
}

Node Node::operator[](std::string_view key) const {
  if (!value_) return below(key, nullptr);
  if (!value_->is_object()) {
    odd("has to be an object");
    return below(key, nullptr);
  }
  const auto found = value_->find(key);
  if (found == value_->end()) {
    document_->report(pointer_ + "/" + escape(key), "is missing");
    return below(key, nullptr);
  }
  return below(key, &*found);
}

Node Node::maybe(std::string_view key) const {
  if (!value_ || !value_->is_object()) return below(key, nullptr);
  const auto found = value_->find(key);
  return below(key, found == value_->end() || found->is_null() ? nullptr : &*found);
}

void Node::odd(std::string what) const {
  document_->report(pointer_,
                    what + (value_ ? ", and is " + std::string(value_->type_name()) : ""));
}

std::optional<double> Node::number() const {
  if (!value_) return std::nullopt;
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) {
    odd("has to be a number");
    return std::nullopt;
  }
  return value_->get<double>();
}

std::optional<double> Node::duration() const {
  const auto value = number();
  if (value && *value < 0) {
    odd("has to be a duration, not below 0");
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> Node::count() const {
  if (!value_) return std::nullopt;
  const bool fits = value_->is_number_integer() &&
                    (value_->is_number_unsigned() ? value_->get<uint64_t>() <= INT64_MAX
                                                  : value_->get<int64_t>() >= 0);
  if (!fits) {
    odd("has to be a whole number, not below 0");
    return std::nullopt;
  }
  return value_->get<int64_t>();
}

std::optional<bool> Node::boolean() const {
  if (!value_) return std::nullopt;
  if (!value_->is_boolean()) {
    odd("has to be true or false");
    return std::nullopt;
  }
  return value_->get<bool>();
}

std::string Node::text() const {
  if (!value_) return {};
  if (!value_->is_string()) {
    odd("has to be a text");
    return {};
  }
  return value_->get<std::string>();
}

std::vector<Node> Node::items() const {
  std::vector<Node> out;
  if (!value_) return out;
  if (!value_->is_array()) {
    odd("has to be an array");
    return out;
  }
  for (size_t i = 0; i < value_->size(); ++i)
    out.push_back(below(std::to_string(i), &(*value_)[i]));
  return out;
}

std::vector<std::pair<std::string, Node>> Node::members() const {
  std::vector<std::pair<std::string, Node>> out;
  if (!value_) return out;
  if (!value_->is_object()) {
    odd("has to be an object");
    return out;
  }
  for (const auto& [key, value] : value_->items()) out.emplace_back(key, below(key, &value));
  return out;
}

std::string place(const Document& document, std::string_view pointer) {
  return document.file + "#" + std::string(pointer);
}

}  // namespace anvil::evidence::imported
