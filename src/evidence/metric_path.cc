#include "evidence/metric_path.h"

#include "base/strings.h"

namespace anvil::evidence {

namespace {
using Step = MetricPath::Step;

Error bad_path(std::string_view text, std::string_view why) {
  return Error(Kind::kInvalidInput, Side::kClient,
               "the metric path \"" + std::string(text) + "\" " + std::string(why),
               "write it like lanes[*].ttfo_ms.p50");
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

std::string escaped(std::string_view key) {
  return base::replace_all(base::replace_all(std::string(key), "~", "~0"), "/", "~1");
}

class Walk {
 public:
  Walk(const MetricPath& path, const Json& select, MetricMatches& out)
      : path_(path), select_(select), met_(select.is_object() ? select.size() : 0, 0), out_(out) {}

  void go(const Json* value, size_t step, const std::string& pointer) {
    if (step == path_.steps.size()) {
      if (all_met()) out_.found.push_back({pointer, value});
      return;
    }
    const Step& next = path_.steps[step];
    switch (next.what) {
      case Step::What::kMember: {
        const bool there = value->is_object() && value->contains(next.member);
        const std::string below = pointer + "/" + escaped(next.member);
        if (there)
          go(&(*value)[next.member], step + 1, below);
        else
          broken(below, step + 1);
        return;
      }
      case Step::What::kElement: {
        const std::string below = pointer + "/" + std::to_string(next.element);
        if (value->is_array() && next.element < value->size())
          go(&(*value)[next.element], step + 1, below);
        else
          broken(below, step + 1);
        return;
      }
      case Step::What::kAll:
        all(*value, step, pointer);
        return;
    }
  }

 private:
  void all(const Json& value, size_t step, const std::string& pointer) {
    if (!value.is_structured()) {
      broken(pointer, step + 1);
      return;
    }
    if (out_.collection.empty()) {
      out_.collection = pointer;
      out_.collection_exists = true;
    }
    size_t position = 0;
    for (auto element = value.begin(); element != value.end(); ++element, ++position) {
      const std::string key = value.is_object() ? escaped(element.key()) : std::to_string(position);
      const std::vector<int> before = met_;
      if (accept(*element)) go(&*element, step + 1, pointer + "/" + key);
      met_ = before;
    }
  }

  // A path that breaks off before its first "[*]" leads to no element; after it, the element lacks
  // the value.
  void broken(const std::string& pointer, size_t next_step) {
    for (size_t i = next_step; i < path_.steps.size(); ++i)
      if (path_.steps[i].what == Step::What::kAll && out_.collection.empty()) return;
    if (all_met()) out_.found.push_back({pointer, nullptr});
  }

  bool accept(const Json& element) {
    if (!select_.is_object() || !element.is_object()) return true;
    size_t index = 0;
    for (auto wanted = select_.begin(); wanted != select_.end(); ++wanted, ++index) {
      const auto found = element.find(wanted.key());
      if (found == element.end()) continue;
      bool equal = *found == *wanted;
      if (wanted->is_array())
        for (const Json& choice : *wanted) equal = equal || *found == choice;
      if (!equal) return false;
      met_[index] = 1;
    }
    return true;
  }

  bool all_met() const {
    for (const int met : met_)
      if (!met) return false;
    return true;
  }

  const MetricPath& path_;
  const Json& select_;
  std::vector<int> met_;
  MetricMatches& out_;
};
}  // namespace

Result<MetricPath> parse_metric_path(std::string_view text) {
  MetricPath path;
  size_t i = 0;
  for (;;) {
    const size_t start = i;
    while (i < text.size() && is_word(text[i])) ++i;
    if (i == start) return fail(bad_path(text, "lacks a member name"));
    path.steps.push_back({Step::What::kMember, std::string(text.substr(start, i - start)), 0});
    while (i < text.size() && text[i] == '[') {
      const size_t close = text.find(']', i);
      if (close == std::string_view::npos) return fail(bad_path(text, "has a [ without its ]"));
      const std::string_view inside = text.substr(i + 1, close - i - 1);
      if (inside == "*") {
        path.steps.push_back({Step::What::kAll, "", 0});
      } else {
        const auto index = base::parse_int(inside);
        if (!index || *index < 0 || inside.front() == '+' || *index > 1'000'000)
          return fail(bad_path(text, "has something other than * or a position in []"));
        path.steps.push_back({Step::What::kElement, "", static_cast<size_t>(*index)});
      }
      i = close + 1;
    }
    if (i == text.size()) return path;
    if (text[i] != '.') return fail(bad_path(text, "has a character that may not stand there"));
    ++i;
  }
}

MetricMatches match(const Json& results, const MetricPath& path, const Json& select) {
  MetricMatches out;
  Walk(path, select, out).go(&results, 0, "");
  return out;
}

}  // namespace anvil::evidence
