#include "qualify/python_value.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "qualify/python_value_syntax.h"

namespace anvil::qualify {

namespace {

struct Done {};
struct Value;
using List = std::vector<Value>;
using Scope = std::vector<std::pair<std::string, Value>>;

struct Function {
  const Node* lambda;
  Scope scope;
};

// A Python value. Lists are never changed after they are made, so sharing them is copying them.
struct Value {
  enum class Type { kNone, kBool, kInt, kFloat, kString, kList, kFunction };
  Type type = Type::kNone;
  int64_t number = 0;  // kBool, kInt
  double real = 0;
  std::string text;
  std::shared_ptr<const List> list;
  std::shared_ptr<const Function> function;

  bool numeric() const { return type == Type::kBool || type == Type::kInt || type == Type::kFloat; }
  bool integral() const { return type == Type::kBool || type == Type::kInt; }
  double as_double() const { return type == Type::kFloat ? real : static_cast<double>(number); }
};

Value make_int(int64_t n) {
  Value v;
  v.type = Value::Type::kInt;
  v.number = n;
  return v;
}
Value make_bool(bool b) {
  Value v;
  v.type = Value::Type::kBool;
  v.number = b;
  return v;
}
Value make_float(double d) {
  Value v;
  v.type = Value::Type::kFloat;
  v.real = d;
  return v;
}
Value make_string(std::string s) {
  Value v;
  v.type = Value::Type::kString;
  v.text = std::move(s);
  return v;
}
Value make_list(List items) {
  Value v;
  v.type = Value::Type::kList;
  v.list = std::make_shared<const List>(std::move(items));
  return v;
}

tl::unexpected<Error> python_error(std::string what) {
  return fail(Kind::kInvalidInput, Side::kEngine, "the code fails: " + std::move(what));
}
tl::unexpected<Error> unsupported(std::string what) {
  return fail(Kind::kUnsupported, Side::kHost,
              "the built-in evaluator does not know " + std::move(what));
}

Result<Value> from_json(const Json& json) {
  if (json.is_null()) return Value{};
  if (json.is_boolean()) return make_bool(json.get<bool>());
  if (json.is_number_integer()) return make_int(json.get<int64_t>());
  if (json.is_number_float()) return make_float(json.get<double>());
  if (json.is_string()) return make_string(json.get<std::string>());
  if (json.is_array()) {
    List items;
    for (const Json& item : json) items.push_back(TRY(from_json(item)));
    return make_list(std::move(items));
  }
  return unsupported("dictionaries");
}

Result<Json> to_json(const Value& value) {
  switch (value.type) {
    case Value::Type::kNone:
      return Json(nullptr);
    case Value::Type::kBool:
      return Json(value.number != 0);
    case Value::Type::kInt:
      return Json(value.number);
    case Value::Type::kFloat:
      return Json(value.real);
    case Value::Type::kString:
      return Json(value.text);
    case Value::Type::kList: {
      Json items = Json::array();
      for (const Value& item : *value.list) items.push_back(TRY(to_json(item)));
      return items;
    }
    case Value::Type::kFunction:
      break;
  }
  return unsupported("functions as a result");
}

bool truth(const Value& value) {
  switch (value.type) {
    case Value::Type::kNone:
      return false;
    case Value::Type::kBool:
    case Value::Type::kInt:
      return value.number != 0;
    case Value::Type::kFloat:
      return value.real != 0;
    case Value::Type::kString:
      return !value.text.empty();
    case Value::Type::kList:
      return !value.list->empty();
    case Value::Type::kFunction:
      return true;
  }
  return false;
}

bool equal(const Value& a, const Value& b) {
  if (a.integral() && b.integral()) return a.number == b.number;
  if (a.numeric() && b.numeric()) return a.as_double() == b.as_double();
  if (a.type != b.type) return false;
  if (a.type == Value::Type::kString) return a.text == b.text;
  if (a.type == Value::Type::kList)
    return std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(), equal);
  return a.type == Value::Type::kNone;
}

// -1, 0, 1; an error where Python has no order between the two.
Result<int> compare(const Value& a, const Value& b) {
  if (a.integral() && b.integral()) return (a.number > b.number) - (a.number < b.number);
  if (a.numeric() && b.numeric())
    return (a.as_double() > b.as_double()) - (a.as_double() < b.as_double());
  if (a.type == Value::Type::kString && b.type == Value::Type::kString) {
    const int order = a.text.compare(b.text);
    return (order > 0) - (order < 0);
  }
  return python_error("values of these types have no order");
}

class Evaluator {
 public:
  explicit Evaluator(int64_t steps) : steps_(steps) {}

  Result<Value> call(const Node& lambda, Scope scope, const std::vector<Value>& arguments) {
    if (lambda.names.size() != arguments.size())
      return python_error("the function takes " + std::to_string(lambda.names.size()) +
                          " arguments, not " + std::to_string(arguments.size()));
    for (size_t i = 0; i < arguments.size(); ++i) scope.emplace_back(lambda.names[i], arguments[i]);
    return eval(*lambda.children[0], scope);
  }

 private:
  Result<Done> step(int64_t count = 1) {
    steps_ -= count;
    if (steps_ < 0 || depth_ > 100)
      return fail(Kind::kUnsupported, Side::kHost,
                  "the code needs more steps than the built-in evaluator allows");
    return Done{};
  }

  Result<Value> eval(const Node& node, const Scope& scope) {
    TRY(step());
    ++depth_;
    auto value = eval_inner(node, scope);
    --depth_;
    return value;
  }

  Result<Value> eval_inner(const Node& node, const Scope& scope) {
    switch (node.kind) {
      case Node::Kind::kNone:
        return Value{};
      case Node::Kind::kBool:
        return make_bool(node.integer != 0);
      case Node::Kind::kInt:
        return make_int(node.integer);
      case Node::Kind::kFloat:
        return make_float(node.real);
      case Node::Kind::kString:
        return make_string(node.text);
      case Node::Kind::kName:
        return lookup(node.text, scope);
      case Node::Kind::kList: {
        List items;
        for (const auto& child : node.children) items.push_back(TRY(eval(*child, scope)));
        return make_list(std::move(items));
      }
      case Node::Kind::kComprehension:
        return comprehension(node, scope);
      case Node::Kind::kLambda: {
        Value value;
        value.type = Value::Type::kFunction;
        value.function = std::make_shared<const Function>(Function{&node, scope});
        return value;
      }
      case Node::Kind::kConditional:
        return eval(*node.children[truth(TRY(eval(*node.children[1], scope))) ? 0 : 2], scope);
      case Node::Kind::kAnd:
      case Node::Kind::kOr: {
        Value left = TRY(eval(*node.children[0], scope));
        if (truth(left) == (node.kind == Node::Kind::kOr)) return left;
        return eval(*node.children[1], scope);
      }
      case Node::Kind::kNot:
        return make_bool(!truth(TRY(eval(*node.children[0], scope))));
      case Node::Kind::kNegative: {
        const Value value = TRY(eval(*node.children[0], scope));
        if (value.type == Value::Type::kFloat) return make_float(-value.real);
        if (!value.integral()) return python_error("bad operand for unary -");
        return make_int(-value.number);
      }
      case Node::Kind::kCompare:
        return comparison(node, scope);
      case Node::Kind::kBinary:
        return operation(node, scope);
      case Node::Kind::kSubscript:
        return subscript(node, scope);
      case Node::Kind::kCall:
        return builtin(node, scope);
    }
    return unsupported("this expression");
  }

  Result<Value> lookup(const std::string& name, const Scope& scope) {
    for (auto it = scope.rbegin(); it != scope.rend(); ++it)
      if (it->first == name) return it->second;
    return python_error("name '" + name + "' is not defined");
  }

  Result<List> items_of(const Value& value) {
    if (value.type == Value::Type::kList) return *value.list;
    if (value.type == Value::Type::kString) {
      List letters;
      for (const char c : value.text) letters.push_back(make_string(std::string(1, c)));
      return letters;
    }
    return python_error("the value cannot be iterated");
  }

  // children: [element, then per clause: iterable, condition...]; names: one per clause, and
  // `counts` says how many conditions each clause has.
  Result<Value> comprehension(const Node& node, const Scope& scope) {
    List out;
    auto done = clause(node, 0, 1, scope, out);
    if (!done) return fail(std::move(done).error());
    return make_list(std::move(out));
  }
  Result<Done> clause(const Node& node, size_t index, size_t child, const Scope& scope, List& out) {
    if (index == node.names.size()) {
      out.push_back(TRY(eval(*node.children[0], scope)));
      return Done{};
    }
    const Value iterable = TRY(eval(*node.children[child], scope));
    const List items = TRY(items_of(iterable));
    const size_t conditions = node.counts[index];
    for (const Value& item : items) {
      TRY(step());
      Scope inner = scope;
      inner.emplace_back(node.names[index], item);
      bool keep = true;
      for (size_t i = 0; keep && i < conditions; ++i)
        keep = truth(TRY(eval(*node.children[child + 1 + i], inner)));
      if (keep) TRY(clause(node, index + 1, child + 1 + conditions, inner, out));
    }
    return Done{};
  }

  Result<Value> comparison(const Node& node, const Scope& scope) {
    Value left = TRY(eval(*node.children[0], scope));
    for (size_t i = 0; i < node.names.size(); ++i) {
      Value right = TRY(eval(*node.children[i + 1], scope));
      const std::string& op = node.names[i];
      bool holds = false;
      if (op == "==" || op == "!=") {
        holds = equal(left, right) == (op == "==");
      } else if (op == "in" || op == "not in") {
        bool found = false;
        if (left.type == Value::Type::kString && right.type == Value::Type::kString)
          found = right.text.find(left.text) != std::string::npos;
        else
          for (const Value& item : TRY(items_of(right))) found = found || equal(item, left);
        holds = found == (op == "in");
      } else if (op == "is" || op == "is not") {
        if (left.type != Value::Type::kNone && right.type != Value::Type::kNone &&
            left.type != Value::Type::kBool)
          return unsupported("'is' between these values");
        holds = (left.type == right.type && equal(left, right)) == (op == "is");
      } else {
        const int order = TRY(compare(left, right));
        holds = op == "<"    ? order < 0
                : op == "<=" ? order <= 0
                : op == ">"  ? order > 0
                             : order >= 0;
      }
      if (!holds) return make_bool(false);
      left = std::move(right);
    }
    return make_bool(true);
  }

  Result<Value> operation(const Node& node, const Scope& scope) {
    const Value left = TRY(eval(*node.children[0], scope));
    const Value right = TRY(eval(*node.children[1], scope));
    return binary(node.text, left, right);
  }

  Result<Value> binary(const std::string& op, const Value& a, const Value& b) {
    if (op == "+" && a.type == Value::Type::kList && b.type == Value::Type::kList) {
      List joined = *a.list;
      joined.insert(joined.end(), b.list->begin(), b.list->end());
      TRY(step(static_cast<int64_t>(joined.size())));
      return make_list(std::move(joined));
    }
    if (op == "+" && a.type == Value::Type::kString && b.type == Value::Type::kString) {
      TRY(step(static_cast<int64_t>(a.text.size() + b.text.size())));
      return make_string(a.text + b.text);
    }
    if (!a.numeric() || !b.numeric()) return python_error("bad operands for " + op);
    if (a.integral() && b.integral() && op != "/") return integer_op(op, a.number, b.number);
    const double x = a.as_double(), y = b.as_double();
    if (op == "+") return make_float(x + y);
    if (op == "-") return make_float(x - y);
    if (op == "*") return make_float(x * y);
    if (op == "**") return make_float(std::pow(x, y));
    if (y == 0) return python_error("division by zero");
    if (op == "/") return make_float(x / y);
    const double floored = std::floor(x / y);
    return make_float(op == "//" ? floored : x - floored * y);
  }

  Result<Value> integer_op(const std::string& op, int64_t x, int64_t y) {
    int64_t result = 0;
    bool overflow = false;
    if (op == "+") {
      overflow = __builtin_add_overflow(x, y, &result);
    } else if (op == "-") {
      overflow = __builtin_sub_overflow(x, y, &result);
    } else if (op == "*") {
      overflow = __builtin_mul_overflow(x, y, &result);
    } else if (op == "**") {
      if (y < 0) return make_float(std::pow(static_cast<double>(x), static_cast<double>(y)));
      result = 1;
      for (int64_t i = 0; i < y && !overflow; ++i) {
        TRY(step());
        overflow = __builtin_mul_overflow(result, x, &result);
      }
    } else {
      if (y == 0) return python_error("division by zero");
      if (y == -1) {
        overflow = op == "//" && __builtin_sub_overflow(int64_t{0}, x, &result);
      } else {
        // Python rounds towards minus infinity; the remainder has the divisor's sign.
        int64_t quotient = x / y, remainder = x % y;
        if (remainder != 0 && (remainder < 0) != (y < 0)) --quotient, remainder += y;
        result = op == "//" ? quotient : remainder;
      }
    }
    if (overflow) return unsupported("integers beyond 64 bits");
    return make_int(result);
  }

  Result<Value> subscript(const Node& node, const Scope& scope) {
    const Value value = TRY(eval(*node.children[0], scope));
    const Value index = TRY(eval(*node.children[1], scope));
    const List items = TRY(items_of(value));
    if (!index.integral()) return python_error("an index must be an integer");
    const auto size = static_cast<int64_t>(items.size());
    const int64_t at = index.number < 0 ? index.number + size : index.number;
    if (at < 0 || at >= size) return python_error("index out of range");
    return items[static_cast<size_t>(at)];
  }

  Result<Value> builtin(const Node& node, const Scope& scope) {
    const std::string& callee = node.text;
    for (const auto& [known, value] : scope)
      if (known == callee && value.type == Value::Type::kFunction)
        return call_value(value, node, scope);
    std::vector<Value> args;
    for (const auto& child : node.children) args.push_back(TRY(eval(*child, scope)));
    if (callee == "map" || callee == "filter") return apply(callee == "map", args);
    if (callee == "range") return range(args);
    if ((callee == "min" || callee == "max") && args.size() > 1) args = {make_list(args)};
    if (callee == "sum" && args.size() == 2) return sum_from(args[0], args[1]);
    if (args.size() != 1)
      return unsupported(callee + " with " + std::to_string(args.size()) + " arguments");
    const Value& arg = args[0];
    if (callee == "abs") {
      if (arg.type == Value::Type::kFloat) return make_float(std::fabs(arg.real));
      if (!arg.integral()) return python_error("bad operand for abs");
      return make_int(arg.number < 0 ? -arg.number : arg.number);
    }
    if (callee == "bool") return make_bool(truth(arg));
    if (callee == "int") {
      if (!arg.numeric()) return unsupported("int() of this value");
      return arg.integral() ? make_int(arg.number) : make_int(static_cast<int64_t>(arg.real));
    }
    return over_items(callee, arg);
  }

  Result<Value> over_items(const std::string& callee, const Value& arg) {
    static const std::vector<std::string> known{"len", "list", "tuple", "sum",   "any",
                                                "all", "min",  "max",   "sorted"};
    if (std::find(known.begin(), known.end(), callee) == known.end())
      return unsupported("the function " + callee);
    List items = TRY(items_of(arg));
    TRY(step(static_cast<int64_t>(items.size())));
    if (callee == "len") return make_int(static_cast<int64_t>(items.size()));
    if (callee == "list" || callee == "tuple") return make_list(std::move(items));
    if (callee == "sum") return sum(items, make_int(0));
    if (callee == "any") return make_bool(std::any_of(items.begin(), items.end(), truth));
    if (callee == "all") return make_bool(std::all_of(items.begin(), items.end(), truth));
    std::optional<Error> error;
    const auto less = [&error](const Value& a, const Value& b) {
      const auto order = compare(a, b);
      if (!order) error = order.error();
      return order && *order < 0;
    };
    if (callee == "sorted") {
      std::stable_sort(items.begin(), items.end(), less);
      if (error) return fail(*error);
      return make_list(std::move(items));
    }
    if (items.empty()) return python_error(callee + "() of nothing");
    auto found = callee == "min" ? std::min_element(items.begin(), items.end(), less)
                                 : std::max_element(items.begin(), items.end(), less);
    if (error) return fail(*error);
    return *found;
  }

  Result<Value> call_value(const Value& callee, const Node& node, const Scope& scope) {
    std::vector<Value> args;
    for (const auto& child : node.children) args.push_back(TRY(eval(*child, scope)));
    return call(*callee.function->lambda, callee.function->scope, args);
  }

  Result<Value> apply(bool map, const std::vector<Value>& args) {
    if (args.size() != 2 || args[0].type != Value::Type::kFunction)
      return unsupported("map and filter without a lambda");
    List out;
    for (const Value& item : TRY(items_of(args[1]))) {
      Value value = TRY(call(*args[0].function->lambda, args[0].function->scope, {item}));
      if (map)
        out.push_back(std::move(value));
      else if (truth(value))
        out.push_back(item);
    }
    return make_list(std::move(out));
  }

  Result<Value> range(const std::vector<Value>& args) {
    if (args.empty() || args.size() > 3) return python_error("range takes one to three arguments");
    for (const Value& arg : args)
      if (!arg.integral()) return python_error("range needs integers");
    const int64_t from = args.size() > 1 ? args[0].number : 0;
    const int64_t to = args.size() > 1 ? args[1].number : args[0].number;
    const int64_t by = args.size() > 2 ? args[2].number : 1;
    if (by == 0) return python_error("range step is zero");
    List items;
    for (int64_t i = from; by > 0 ? i < to : i > to;) {
      TRY(step());
      items.push_back(make_int(i));
      if (__builtin_add_overflow(i, by, &i)) break;
    }
    return make_list(std::move(items));
  }

  Result<Value> sum_from(const Value& iterable, const Value& start) {
    const List items = TRY(items_of(iterable));
    return sum(items, start);
  }
  Result<Value> sum(const List& items, Value start) {
    for (const Value& item : items) start = TRY(binary("+", start, item));
    return start;
  }

  int64_t steps_;
  int depth_ = 0;
};

}  // namespace

Result<Json> call_python_function(std::string_view source, std::string_view name,
                                  const std::vector<Json>& arguments, int64_t max_steps) {
  const std::unique_ptr<Node> function = TRY(parse_python_function(source, name));
  std::vector<Value> values;
  for (const Json& argument : arguments) values.push_back(TRY(from_json(argument)));
  Evaluator evaluator(max_steps);
  const Value result = TRY(evaluator.call(*function, {}, values));
  return to_json(result);
}

}  // namespace anvil::qualify
