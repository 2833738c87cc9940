#include "recipe/expression.h"

#include <cmath>
#include <set>

#include "base/strings.h"

namespace anvil::recipe {

namespace {

constexpr size_t kMaxBytes = 4096;
constexpr int kMaxLevels = 64;

// Recursive descent that computes while it reads. The first error stops it: `error_` is set and
// every function returns at once. Branches that are not taken are read with `live_` off, so that
// they are checked for syntax and cannot fail by their values.
class Evaluator {
 public:
  Evaluator(std::string_view text, const FieldLookup* lookup) : text_(text), lookup_(lookup) {
    live_ = lookup != nullptr;
  }

  Result<Json> run() {
    if (text_.size() > kMaxBytes) {
      set_error("longer than 4096 bytes");
    } else {
      Json value = ternary();
      skip();
      if (!error_ && at_ < text_.size()) set_error("unexpected " + next_word());
      if (!error_) return value.is_null() ? Json(0) : value;
    }
    return fail(*error_);
  }

  std::set<std::string> names;

 private:
  // Counts nesting for as long as it lives.
  class Level {
   public:
    explicit Level(Evaluator& owner) : owner_(owner) {
      if (++owner_.depth_ > kMaxLevels) owner_.set_error("nested deeper than 64 levels");
    }
    ~Level() { --owner_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Evaluator& owner_;
  };

  Json ternary() {
    const Level level(*this);
    Json condition = either();
    if (error_ || !take("?")) return condition;
    const bool before = live_;
    const bool yes = truth(condition);
    live_ = before && yes;
    Json left = ternary();
    if (!error_ && !take(":")) set_error("wanted ':'");
    live_ = before && !yes;
    Json right = error_ ? Json() : ternary();
    live_ = before;
    return yes ? left : right;
  }

  Json either() {
    Json left = both();
    while (!error_ && take("||")) {
      const bool before = live_;
      const bool known = truth(left);
      live_ = before && !known;
      Json right = both();
      live_ = before;
      left = known || (!error_ && truth(right));
    }
    return left;
  }

  Json both() {
    Json left = comparison();
    while (!error_ && take("&&")) {
      const bool before = live_;
      const bool known = truth(left);
      live_ = before && known;
      Json right = comparison();
      live_ = before;
      left = known && !error_ && truth(right);
    }
    return left;
  }

  Json comparison() {
    Json left = sum();
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (error_ || !take(op)) continue;
      Json right = sum();
      return error_ ? Json() : compare(left, op, right);
    }
    return left;
  }

  Json sum() {
    Json left = product();
    while (!error_) {
      if (take("+"))
        left = arithmetic(left, '+', product());
      else if (take("-"))
        left = arithmetic(left, '-', product());
      else
        break;
    }
    return left;
  }

  Json product() {
    Json left = unary();
    while (!error_) {
      if (take("*"))
        left = arithmetic(left, '*', unary());
      else if (take("/"))
        left = arithmetic(left, '/', unary());
      else if (take("%"))
        left = arithmetic(left, '%', unary());
      else
        break;
    }
    return left;
  }

  Json unary() {
    const Level level(*this);
    if (error_) return {};
    if (take("-")) return arithmetic(0, '-', unary());
    skip();
    if (at_ < text_.size() && text_[at_] == '!' && !text_.substr(at_).starts_with("!=")) {
      ++at_;
      const Json value = unary();
      return error_ ? Json() : Json(!truth(value));
    }
    return primary();
  }

  Json primary() {
    skip();
    if (at_ == text_.size()) return set_error("ends where a value is wanted");
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      Json value = ternary();
      if (!error_ && !take(")")) set_error("wanted ')'");
      return value;
    }
    if (c == '\'') return literal();
    if (c >= '0' && c <= '9') return number();
    if (is_name_start(c)) return name();
    return set_error("unexpected " + next_word());
  }

  Json literal() {
    const auto end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return set_error("the text has no closing quote");
    Json value = std::string(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }

  Json number() {
    const size_t start = at_;
    while (at_ < text_.size() && ((text_[at_] >= '0' && text_[at_] <= '9') || text_[at_] == '.'))
      ++at_;
    const auto digits = text_.substr(start, at_ - start);
    if (const auto integer = base::parse_int(digits)) return *integer;
    if (digits.find('.') != std::string_view::npos)
      if (const auto decimal = base::parse_double(digits)) return *decimal;
    at_ = start;
    return set_error("\"" + std::string(digits) + "\" is not a number that fits 64 bits");
  }

  Json name() {
    const size_t start = at_;
    while (at_ < text_.size() &&
           (is_name_start(text_[at_]) || text_[at_] == '.' || text_[at_] == '[' ||
            text_[at_] == ']' || (text_[at_] >= '0' && text_[at_] <= '9')))
      ++at_;
    const std::string word(text_.substr(start, at_ - start));
    if (word == "true") return true;
    if (word == "false") return false;
    if (take("(")) return call(word, start);
    names.insert(word);
    return live_ ? (*lookup_)(word) : Json();
  }

  Json call(const std::string& function, size_t start) {
    if (function != "min" && function != "max") {
      at_ = start;
      return set_error("no function \"" + function + "\"; known are min and max");
    }
    Json left = ternary();
    if (!error_ && !take(",")) set_error("wanted ','");
    if (error_) return {};
    Json right = ternary();
    if (!error_ && !take(")")) set_error("wanted ')'");
    if (error_ || !live_) return {};
    left = numeric(left);
    right = numeric(right);
    if (error_) return {};
    const bool first = function == "min" ? left <= right : left >= right;
    return first ? left : right;
  }

  Json arithmetic(const Json& a, char op, const Json& b) {
    if (error_ || !live_) return {};
    const Json left = numeric(a);
    const Json right = numeric(b);
    if (error_) return {};
    if ((op == '/' || op == '%') && right == 0) return set_error("division by zero");
    if (left.is_number_float() || right.is_number_float()) {
      const double x = left.get<double>();
      const double y = right.get<double>();
      const double value = op == '+'   ? x + y
                           : op == '-' ? x - y
                           : op == '*' ? x * y
                           : op == '/' ? x / y
                                       : std::fmod(x, y);
      if (!std::isfinite(value)) return set_error("the result is not a finite number");
      return value;
    }
    const int64_t x = left.get<int64_t>();
    const int64_t y = right.get<int64_t>();
    int64_t value = 0;
    bool overflow = false;
    if (op == '+')
      overflow = __builtin_add_overflow(x, y, &value);
    else if (op == '-')
      overflow = __builtin_sub_overflow(x, y, &value);
    else if (op == '*')
      overflow = __builtin_mul_overflow(x, y, &value);
    else if (y == -1)
      overflow = op == '/' && __builtin_sub_overflow(int64_t{0}, x, &value);
    else
      value = op == '/' ? x / y : x % y;
    if (overflow) return set_error("the result does not fit 64 bits");
    return value;
  }

  Json compare(const Json& a, std::string_view op, const Json& b) {
    if (!live_) return {};
    Json left = a;
    Json right = b;
    if (left.is_string() || right.is_string()) {
      if (left.is_null()) left = "";
      if (right.is_null()) right = "";
      if (!left.is_string() || !right.is_string())
        return set_error("compares a text with a number");
      if (op != "==" && op != "!=") return set_error("texts compare with == and != only");
    } else {
      left = numeric(left);
      right = numeric(right);
      if (error_) return {};
    }
    if (op == "==") return left == right;
    if (op == "!=") return left != right;
    if (op == "<=") return left <= right;
    if (op == ">=") return left >= right;
    return op == "<" ? left < right : left > right;
  }

  // As a number: missing is 0, bools are 0 and 1.
  Json numeric(const Json& value) {
    if (value.is_null()) return 0;
    if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
    if (value.is_number_float()) return value;
    if (value.is_number()) return value.get<int64_t>();
    return set_error(value.is_string()
                         ? "calculates with the text '" + value.get<std::string>() + "'"
                         : "calculates with a list or table");
  }

  bool truth(const Json& value) {
    if (!live_) return false;
    if (value.is_string()) return !value.get_ref<const std::string&>().empty();
    const Json number = numeric(value);
    return !error_ && number != 0;
  }

  static bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }

  bool take(std::string_view token) {
    skip();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  std::string next_word() const { return "\"" + base::to_valid_utf8(text_.substr(at_, 12)) + "\""; }

  Json set_error(std::string problem) {
    if (!error_)
      error_ = Error(Kind::kInvalidInput, Side::kClient,
                     "expression \"" + base::to_valid_utf8(text_.substr(0, 200)) + "\", column " +
                         std::to_string(at_ + 1) + ": " + std::move(problem));
    return {};
  }

  std::string_view text_;
  const FieldLookup* lookup_;
  bool live_ = true;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Result<Json> evaluate(std::string_view expression, const FieldLookup& lookup) {
  return Evaluator(expression, &lookup).run();
}

Result<Json> evaluate(std::string_view expression, const Recipe& recipe) {
  return evaluate(expression, [&](std::string_view path) { return recipe.at(path); });
}

Result<std::vector<std::string>> names_in(std::string_view expression) {
  Evaluator evaluator(expression, nullptr);
  if (auto done = evaluator.run(); !done) return fail(std::move(done).error());
  return std::vector<std::string>(evaluator.names.begin(), evaluator.names.end());
}

}  // namespace anvil::recipe
