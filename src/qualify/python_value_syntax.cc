#include "qualify/python_value_syntax.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>

#include "base/strings.h"

namespace anvil::qualify {

namespace {

constexpr int kMaxDepth = 60;

struct Token {
  enum class Kind { kName, kNumber, kString, kOperator, kNewline, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;
};

tl::unexpected<Error> syntax_error(std::string what) {
  return fail(Kind::kInvalidInput, Side::kEngine, "the code is not valid Python: " + what);
}
tl::unexpected<Error> unsupported(std::string what) {
  return fail(Kind::kUnsupported, Side::kHost,
              "the built-in evaluator does not know " + std::move(what));
}

bool name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_';
}
bool digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '\n') {
        ++at_;
        if (open_ == 0) push(Token::Kind::kNewline, "\n");
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') {
        at_ += 2;
      } else if (name_start(c)) {
        const size_t from = at_;
        while (at_ < text_.size() && (name_start(text_[at_]) || digit(text_[at_]))) ++at_;
        if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\''))
          return unsupported("prefixed strings");
        push(Token::Kind::kName, text_.substr(from, at_ - from));
      } else if (digit(c) || (c == '.' && at_ + 1 < text_.size() && digit(text_[at_ + 1]))) {
        number();
      } else if (c == '"' || c == '\'') {
        if (auto error = string(c)) return fail(*error);
      } else if (auto error = operator_token()) {
        return fail(*error);
      }
    }
    push(Token::Kind::kNewline, "\n");
    push(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void push(Token::Kind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text)});
  }

  void number() {
    const size_t from = at_;
    while (at_ < text_.size() && (digit(text_[at_]) || name_start(text_[at_]) || text_[at_] == '.'))
      ++at_;
    push(Token::Kind::kNumber, text_.substr(from, at_ - from));
  }

  std::optional<Error> string(char quote) {
    const std::string three(3, quote);
    const bool triple = text_.substr(at_, 3) == three;
    at_ += triple ? 3 : 1;
    std::string out;
    while (at_ < text_.size()) {
      if (triple ? text_.substr(at_, 3) == three : text_[at_] == quote) {
        at_ += triple ? 3 : 1;
        push(Token::Kind::kString, out);
        return std::nullopt;
      }
      if (text_[at_] == '\n' && !triple) break;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        const char next = text_[at_ + 1];
        out += next == 'n' ? '\n' : next == 't' ? '\t' : next;
        at_ += 2;
        continue;
      }
      out += text_[at_++];
    }
    return syntax_error("a string is not closed").value();
  }

  std::optional<Error> operator_token() {
    static constexpr std::array<std::string_view, 26> kOperators{
        "**", "//", "==", "!=", "<=", ">=", "->", "(", ")", "[", "]", "{", "}",
        ",",  ":",  "+",  "-",  "*",  "/",  "%",  "<", ">", "=", ".", ";", "|"};
    for (const std::string_view op : kOperators) {
      if (text_.substr(at_, op.size()) != op) continue;
      if (op == "(" || op == "[" || op == "{") ++open_;
      if (op == ")" || op == "]" || op == "}") open_ = std::max(0, open_ - 1);
      push(Token::Kind::kOperator, op);
      at_ += op.size();
      return std::nullopt;
    }
    return syntax_error("unexpected character '" + std::string(1, text_[at_]) + "'").value();
  }

  std::string_view text_;
  size_t at_ = 0;
  int open_ = 0;
  std::vector<Token> tokens_;
};

using Tree = std::unique_ptr<Node>;

Tree make(Node::Kind kind) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  return node;
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<Tree> function(std::string_view name) {
    skip_newlines();
    while (word("from") || word("import")) {
      while (peek().kind != Token::Kind::kNewline) ++at_;
      skip_newlines();
    }
    Tree result;
    if (word("def")) {
      ++at_;
      if (!take_name(name)) return unsupported("a function of another name than the one asked for");
      result = TRY(definition());
    } else if (peek().text == name) {
      ++at_;
      if (!take("=") || !word("lambda")) return unsupported("code that is not one function");
      result = TRY(expression());
    } else {
      return unsupported("code that is not one function");
    }
    if (peek().kind != Token::Kind::kNewline && peek().kind != Token::Kind::kEnd)
      return unsupported("what follows the expression: '" + peek().text + "'");
    // Examples below the function do not change it, unless they define the name again.
    for (; at_ < tokens_.size(); ++at_)
      if (tokens_[at_].text == "def" || (tokens_[at_].text == name && tokens_[at_ + 1].text == "="))
        return unsupported("more than one definition");
    return result;
  }

 private:
  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  bool word(std::string_view text) const {
    return peek().kind == Token::Kind::kName && peek().text == text;
  }
  bool is(std::string_view text) const {
    return peek().kind == Token::Kind::kOperator && peek().text == text;
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view text) {
    if (!word(text)) return false;
    ++at_;
    return true;
  }
  bool take_name(std::string_view text) { return take_word(text); }
  void skip_newlines() {
    while (peek().kind == Token::Kind::kNewline) ++at_;
  }
  // An annotation: names, dots, brackets, bars, up to what ends it.
  void skip_annotation() {
    int open = 0;
    for (; peek().kind == Token::Kind::kName || peek().kind == Token::Kind::kOperator; ++at_) {
      if (is("[")) ++open;
      if (is("]")) --open;
      if (open == 0 && (is(",") || is(")") || is(":") || is("="))) return;
    }
  }

  Result<Tree> definition() {
    Tree node = make(Node::Kind::kLambda);
    if (!take("(")) return syntax_error("'(' expected after the function name");
    while (!take(")")) {
      if (peek().kind != Token::Kind::kName) return unsupported("these parameters");
      node->names.push_back(peek().text);
      ++at_;
      if (take(":")) skip_annotation();
      if (is("=")) return unsupported("default values of parameters");
      if (!take(",") && !is(")")) return syntax_error("',' or ')' expected in the parameters");
    }
    if (take("->")) skip_annotation();
    if (!take(":")) return syntax_error("':' expected after the parameters");
    skip_newlines();
    if (peek().kind == Token::Kind::kString) ++at_;
    skip_newlines();
    if (!take_word("return")) return unsupported("statements other than one return");
    node->children.push_back(TRY(expression()));
    return node;
  }

  Result<Tree> expression() {
    if (++depth_ > kMaxDepth) return unsupported("expressions this deep");
    auto result = word("lambda") ? lambda() : conditional();
    --depth_;
    return result;
  }

  Result<Tree> lambda() {
    ++at_;
    Tree node = make(Node::Kind::kLambda);
    while (!take(":")) {
      if (peek().kind != Token::Kind::kName) return unsupported("these parameters");
      node->names.push_back(peek().text);
      ++at_;
      if (!take(",") && !is(":")) return unsupported("these parameters");
    }
    node->children.push_back(TRY(expression()));
    return node;
  }

  Result<Tree> conditional() {
    Tree then = TRY(disjunction());
    if (!take_word("if")) return then;
    Tree node = make(Node::Kind::kConditional);
    node->children.push_back(std::move(then));
    node->children.push_back(TRY(disjunction()));
    if (!take_word("else")) return syntax_error("'else' expected");
    node->children.push_back(TRY(expression()));
    return node;
  }

  Result<Tree> disjunction() {
    Tree left = TRY(conjunction());
    while (take_word("or")) left = TRY(pair(Node::Kind::kOr, std::move(left), conjunction()));
    return left;
  }
  Result<Tree> conjunction() {
    Tree left = TRY(negation());
    while (take_word("and")) left = TRY(pair(Node::Kind::kAnd, std::move(left), negation()));
    return left;
  }
  Result<Tree> negation() {
    if (!take_word("not")) return comparison();
    if (++depth_ > kMaxDepth) return unsupported("expressions this deep");
    Tree node = make(Node::Kind::kNot);
    node->children.push_back(TRY(negation()));
    --depth_;
    return node;
  }

  std::optional<std::string> comparison_operator() {
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"})
      if (take(op)) return std::string(op);
    if (take_word("in")) return "in";
    if (take_word("is")) return take_word("not") ? "is not" : "is";
    if (word("not") && peek(1).text == "in") {
      at_ += 2;
      return "not in";
    }
    return std::nullopt;
  }
  Result<Tree> comparison() {
    Tree left = TRY(sum());
    Tree node;
    while (auto op = comparison_operator()) {
      if (!node) {
        node = make(Node::Kind::kCompare);
        node->children.push_back(std::move(left));
      }
      node->names.push_back(*op);
      node->children.push_back(TRY(sum()));
    }
    return node ? std::move(node) : std::move(left);
  }

  Result<Tree> pair(Node::Kind kind, Tree left, Result<Tree> right, std::string op = {}) {
    if (!right) return right;
    Tree node = make(kind);
    node->text = std::move(op);
    node->children.push_back(std::move(left));
    node->children.push_back(std::move(*right));
    return node;
  }
  Result<Tree> sum() {
    Tree left = TRY(product());
    while (is("+") || is("-")) {
      std::string op = tokens_[at_++].text;
      left = TRY(pair(Node::Kind::kBinary, std::move(left), product(), std::move(op)));
    }
    return left;
  }
  Result<Tree> product() {
    Tree left = TRY(unary());
    while (is("*") || is("/") || is("//") || is("%")) {
      std::string op = tokens_[at_++].text;
      left = TRY(pair(Node::Kind::kBinary, std::move(left), unary(), std::move(op)));
    }
    return left;
  }
  Result<Tree> unary() {
    if (++depth_ > kMaxDepth) return unsupported("expressions this deep");
    Result<Tree> result = unary_inner();
    --depth_;
    return result;
  }
  Result<Tree> unary_inner() {
    if (take("+")) return unary();
    if (take("-")) {
      Tree node = make(Node::Kind::kNegative);
      node->children.push_back(TRY(unary()));
      return node;
    }
    Tree base = TRY(postfix());
    if (!take("**")) return base;
    return pair(Node::Kind::kBinary, std::move(base), unary(), "**");
  }

  Result<Tree> postfix() {
    Tree value = TRY(atom());
    while (true) {
      if (is("(")) {
        if (value->kind != Node::Kind::kName) return unsupported("calls of expressions");
        value = TRY(call(std::move(value->text)));
      } else if (take("[")) {
        Tree node = make(Node::Kind::kSubscript);
        node->children.push_back(std::move(value));
        node->children.push_back(TRY(expression()));
        if (!take("]")) return unsupported("slices");
        value = std::move(node);
      } else if (is(".")) {
        return unsupported("attributes and methods");
      } else {
        return value;
      }
    }
  }

  Result<Tree> call(std::string callee) {
    ++at_;
    Tree node = make(Node::Kind::kCall);
    node->text = std::move(callee);
    while (!take(")")) {
      if (peek(1).text == "=" && peek(1).kind == Token::Kind::kOperator)
        return unsupported("keyword arguments");
      Tree argument = TRY(expression());
      if (word("for")) argument = TRY(comprehension(std::move(argument)));
      node->children.push_back(std::move(argument));
      if (!take(",") && !is(")")) return syntax_error("',' or ')' expected in a call");
    }
    return node;
  }

  Result<Tree> comprehension(Tree element) {
    Tree node = make(Node::Kind::kComprehension);
    node->children.push_back(std::move(element));
    while (take_word("for")) {
      if (peek().kind != Token::Kind::kName) return unsupported("this loop variable");
      node->names.push_back(peek().text);
      ++at_;
      if (!take_word("in")) return unsupported("several loop variables");
      node->children.push_back(TRY(disjunction()));
      size_t conditions = 0;
      while (take_word("if")) {
        node->children.push_back(TRY(disjunction()));
        ++conditions;
      }
      node->counts.push_back(conditions);
    }
    return node;
  }

  Result<Tree> atom() {
    const Token token = peek();
    if (token.kind == Token::Kind::kNumber) return number(token.text);
    if (token.kind == Token::Kind::kString) {
      ++at_;
      Tree node = make(Node::Kind::kString);
      node->text = token.text;
      return node;
    }
    if (token.kind == Token::Kind::kName) return named(token.text);
    if (is("(") || is("[")) return bracket();
    if (is("{")) return unsupported("dictionaries and sets");
    return syntax_error(token.kind == Token::Kind::kOperator ? "unexpected '" + token.text + "'"
                                                             : "the expression ends too early");
  }

  Result<Tree> number(const std::string& text) {
    ++at_;
    const std::string plain = base::replace_all(text, "_", "");
    if (const auto integer = base::parse_int(plain)) {
      Tree node = make(Node::Kind::kInt);
      node->integer = *integer;
      return node;
    }
    if (plain.find_first_not_of("0123456789") == std::string::npos)
      return unsupported("integers beyond 64 bits");
    const auto real = base::parse_double(plain);
    if (!real) return unsupported("the number " + text);
    Tree node = make(Node::Kind::kFloat);
    node->real = *real;
    return node;
  }

  Result<Tree> named(const std::string& text) {
    static constexpr std::array<std::string_view, 12> kKeywords{
        "for", "if", "else", "in", "and", "or", "return", "def", "await", "yield", "while", "is"};
    if (std::find(kKeywords.begin(), kKeywords.end(), text) != kKeywords.end())
      return syntax_error("unexpected '" + text + "'");
    ++at_;
    if (text == "None") return make(Node::Kind::kNone);
    if (text == "True" || text == "False") {
      Tree node = make(Node::Kind::kBool);
      node->integer = text == "True";
      return node;
    }
    Tree node = make(Node::Kind::kName);
    node->text = text;
    return node;
  }

  // A parenthesis, a tuple, a list, or a comprehension in either bracket.
  Result<Tree> bracket() {
    const bool round = is("(");
    const std::string_view close = round ? ")" : "]";
    ++at_;
    Tree list = make(Node::Kind::kList);
    bool comma = false;
    while (!take(close)) {
      Tree item = TRY(expression());
      if (word("for")) {
        Tree node = TRY(comprehension(std::move(item)));
        if (!take(close)) return syntax_error("the bracket is not closed");
        return node;
      }
      list->children.push_back(std::move(item));
      if (take(","))
        comma = true;
      else if (!is(close))
        return syntax_error("the bracket is not closed");
    }
    if (round && !comma && list->children.size() == 1) return std::move(list->children[0]);
    return list;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<std::unique_ptr<Node>> parse_python_function(std::string_view source,
                                                    std::string_view name) {
  Parser parser(TRY(Lexer(source).run()));
  return parser.function(name);
}

}  // namespace anvil::qualify
