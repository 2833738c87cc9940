#include "qualify/checks_code.h"

#include <algorithm>

#include "base/hash.h"
#include "base/strings.h"
#include "qualify/python_value.h"

namespace anvil::qualify {

namespace {

constexpr int kMaxCodeBytes = 32 << 10;

size_t indentation(std::string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}
bool blank(std::string_view line) {
  return base::trim(line).empty();
}

bool defines(std::string_view line, std::string_view function) {
  const std::string_view text = base::trim(line);
  const auto starts = [text](const std::string& with) {
    return text.substr(0, with.size()) == with;
  };
  const std::string name(function);
  return starts("def " + name + "(") || starts("def " + name + " (") ||
         starts(name + " = lambda") || starts(name + "=lambda");
}

std::string dedented(std::vector<std::string_view> lines) {
  while (!lines.empty() && blank(lines.back())) lines.pop_back();
  size_t common = std::string::npos;
  for (const auto line : lines)
    if (!blank(line)) common = std::min(common, indentation(line));
  std::string out;
  for (const auto line : lines) {
    if (!blank(line)) out += line.substr(common);
    out += '\n';
  }
  return out;
}

// The lines inside each fence, and an open fence up to the end.
std::vector<std::vector<std::string_view>> fenced_blocks(
    const std::vector<std::string_view>& lines) {
  std::vector<std::vector<std::string_view>> blocks;
  bool inside = false;
  for (const auto line : lines) {
    if (base::trim(line).substr(0, 3) == "```") {
      inside = !inside;
      if (inside) blocks.emplace_back();
    } else if (inside) {
      blocks.back().push_back(line);
    }
  }
  return blocks;
}

// The definition at `at` in bare text: imports directly above, and the body below.
std::vector<std::string_view> bare_definition(const std::vector<std::string_view>& lines,
                                              size_t at) {
  const size_t level = indentation(lines[at]);
  size_t from = at;
  for (size_t i = at; i-- > 0;) {
    const std::string_view text = base::trim(lines[i]);
    const bool import = text.substr(0, 7) == "import " || text.substr(0, 5) == "from ";
    if (!import && !text.empty()) break;
    if (import) from = i;
  }
  size_t to = at + 1;
  while (to < lines.size() && (blank(lines[to]) || indentation(lines[to]) > level)) ++to;
  return {lines.begin() + static_cast<std::ptrdiff_t>(from),
          lines.begin() + static_cast<std::ptrdiff_t>(to)};
}

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// The program that runs inside: defines the function, calls it case by case, and writes one line
// per case behind a word that the code does not know.
std::string harness(const CodeTask& task, const std::string& code, const std::string& mark) {
  Json arguments = Json::array();
  for (const auto& one : task.cases) arguments.push_back(one.arguments);
  return "import json, sys\n"
         "code = bytes.fromhex('" +
         hex(code) + "').decode('utf-8', 'replace')\ncases = json.loads(bytes.fromhex('" +
         hex(arguments.dump()) +
         "').decode())\n"
         "out = sys.stdout\n"
         "def say(index, what):\n"
         "    out.write('\\n" +
         mark +
         " %d %s\\n' % (index, json.dumps(what)))\n"
         "    out.flush()\n"
         "scope = {'__name__': 'answer'}\n"
         "try:\n"
         "    exec(compile(code, 'answer.py', 'exec'), scope)\n"
         "    function = scope['" +
         task.function +
         "']\n"
         "except BaseException as error:\n"
         "    say(-1, {'error': (type(error).__name__ + ': ' + str(error))[:300]})\n"
         "    sys.exit(0)\n"
         "plain = (int, float, bool, str, list, type(None))\n"
         "for index, arguments in enumerate(cases):\n"
         "    before = json.dumps(arguments)\n"
         "    try:\n"
         "        got = function(*arguments)\n"
         "        said = {'got': got if type(got) in plain else repr(got)[:300],\n"
         "                'type': type(got).__name__, 'changed': json.dumps(arguments) != before}\n"
         "        json.dumps(said)\n"
         "    except BaseException as error:\n"
         "        said = {'error': (type(error).__name__ + ': ' + str(error))[:300]}\n"
         "    say(index, said)\n";
}

std::string how_it_ended(const SandboxRun& run, const SandboxLimits& limits) {
  if (run.killed == "wall") return "it was stopped after " + base::format_duration(limits.wall);
  if (run.killed == "output")
    return "it was stopped after " + base::format_bytes(limits.output_bytes) + " of output";
  if (run.signal != 0)
    return "it was ended by signal " + std::to_string(run.signal) + " (limit " +
           std::to_string(limits.cpu_seconds) + " s of CPU time, " +
           base::format_bytes(limits.memory_bytes) + " of memory)";
  if (!run.started) return "the sandbox did not start it";
  return "it ended with code " + std::to_string(run.exit_code);
}

// What the harness wrote, by case; -1 is the definition itself.
Json case_results(const SandboxRun& run, const std::string& mark, const CodeTask& task,
                  std::string& definition_error) {
  Json results = Json::array();
  for (size_t i = 0; i < task.cases.size(); ++i) results.push_back(nullptr);
  for (const std::string_view line : base::split(run.out, '\n')) {
    if (line.substr(0, mark.size() + 1) != mark + " ") continue;
    const std::string_view rest = line.substr(mark.size() + 1);
    const size_t space = rest.find(' ');
    const auto index = base::parse_int(rest.substr(0, space));
    if (!index || space == std::string_view::npos) continue;
    const auto said = base::parse_json(rest.substr(space + 1), "the sandbox's answer");
    if (!said) continue;
    if (*index == -1)
      definition_error = said->value("error", "");
    else if (*index >= 0 && static_cast<size_t>(*index) < results.size())
      results[static_cast<size_t>(*index)] = *said;
  }
  return results;
}

// Whether a value is what was expected. True is no 1 here, but 6.0 is 6, as in Python.
bool same_value(const Json& got, const Json& expected) {
  return got == expected && got.is_boolean() == expected.is_boolean();
}

std::string call_text(const CodeTask& task, const Json& arguments) {
  std::string inside = arguments.dump();
  return task.function + "(" + inside.substr(1, inside.size() - 2) + ")";
}

Grade judge(const CodeTask& task, const Json& results, const std::string& ending, Json evidence) {
  size_t right = 0;
  std::string first;
  Json cases = Json::array();
  for (size_t i = 0; i < task.cases.size(); ++i) {
    const auto& wanted = task.cases[i];
    const Json& result = results[i];
    Json said = {{"arguments", wanted.arguments}, {"expected", wanted.expected}};
    std::string problem;
    if (!result.is_object()) {
      problem = "gave nothing: " + ending;
      said["error"] = ending;
    } else if (result.contains("error")) {
      problem = "failed: " + result["error"].get<std::string>();
      said["error"] = result["error"];
    } else {
      said["got"] = result["got"];
      if (!same_value(result["got"], wanted.expected))
        problem = "returned " + result["got"].dump() + ", must be " + wanted.expected.dump();
      else if (result.value("changed", false))
        problem = "changed its argument";
    }
    right += problem.empty();
    if (!problem.empty() && first.empty())
      first = call_text(task, wanted.arguments) + " " + problem;
    cases.push_back(std::move(said));
  }
  evidence["cases"] = std::move(cases);
  const std::string score =
      std::to_string(right) + " of " + std::to_string(task.cases.size()) + " cases right";
  if (right == task.cases.size()) return pass("the code runs, " + score, std::move(evidence));
  return failed("the code runs, " + score + ": " + first, std::move(evidence));
}

Result<Grade> execute(const CodeTask& task, const std::string& code, const Sandbox& sandbox,
                      const base::Cancel& cancel, Json evidence) {
  const std::string mark = base::random_hex(12);
  const SandboxLimits limits;
  const SandboxRun run = TRY(sandbox.run(harness(task, code, mark), limits, cancel));
  evidence["exit_code"] = run.exit_code;
  evidence["signal"] = run.signal;
  evidence["killed"] = run.killed;
  evidence["stderr"] = base::to_valid_utf8(std::string_view(run.err).substr(0, 2000));
  std::string definition_error;
  const Json results = case_results(run, mark, task, definition_error);
  if (!definition_error.empty())
    return failed("the code does not define " + task.function + ": " + definition_error,
                  std::move(evidence));
  return judge(task, results, how_it_ended(run, limits), std::move(evidence));
}

Grade evaluate(const CodeTask& task, const std::string& code, Json evidence) {
  Json results = Json::array();
  for (const auto& one : task.cases) {
    const auto value =
        call_python_function(code, task.function, one.arguments.get<std::vector<Json>>());
    if (!value && value.error().kind == Kind::kUnsupported)
      return failed("nothing may be executed on this host, and " + value.error().detail,
                    std::move(evidence));
    results.push_back(value ? Json{{"got", *value}} : Json{{"error", value.error().detail}});
  }
  return judge(task, results, "", std::move(evidence));
}

}  // namespace

std::optional<std::string> extract_code(std::string_view answer, std::string_view function) {
  const std::vector<std::string_view> lines = base::split(answer, '\n');
  for (const auto& block : fenced_blocks(lines))
    for (const auto line : block)
      if (defines(line, function)) return dedented(block);
  for (size_t i = 0; i < lines.size(); ++i)
    if (defines(lines[i], function)) return dedented(bare_definition(lines, i));
  return std::nullopt;
}

Result<Grade> grade_code(const CodeTask& task, std::string_view answer, const Sandbox& sandbox,
                         const base::Cancel& cancel) {
  const auto code = extract_code(answer, task.function);
  if (!code)
    return failed("the answer holds no definition of " + task.function,
                  {{"execution", "none"}, {"code", nullptr}});
  if (code->size() > kMaxCodeBytes)
    return failed("the code is larger than " + base::format_bytes(kMaxCodeBytes),
                  {{"execution", "none"}, {"code", nullptr}});
  const bool runs = sandbox.isolation() != Isolation::kNone;
  Json evidence = {{"execution", runs ? std::string(name(sandbox.isolation()))
                                      : std::string("built-in evaluator")},
                   {"sandbox", sandbox.describe()},
                   {"code", base::to_valid_utf8(*code)}};
  if (!runs) return evaluate(task, *code, std::move(evidence));
  return execute(task, *code, sandbox, cancel, std::move(evidence));
}

}  // namespace anvil::qualify
