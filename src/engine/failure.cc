#include "engine/failure.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include "base/strings.h"
#include "engine/interface_rules.h"
#include "engine/phases.h"

namespace anvil::engine {

namespace {

constexpr size_t kTailLines = 20;
constexpr size_t kLongestLine = 2000;
constexpr size_t kMarkWithin = 64;

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number)
                         : "signal " + std::to_string(number) + " (SIG" + name + ")";
}

std::string kept(std::string_view line) {
  if (line.size() > kLongestLine) line = line.substr(0, kLongestLine);
  return base::to_valid_utf8(base::trim(line));
}

bool in_phase(const FailureRule& rule, std::string_view phase) {
  return rule.phases.empty() ||
         std::find(rule.phases.begin(), rule.phases.end(), phase) != rule.phases.end();
}

bool shows(const FailureRule& rule, std::string_view line) {
  return std::any_of(rule.patterns.begin(), rule.patterns.end(),
                     [&](const LogPattern& pattern) { return pattern.matches(line); });
}

Failure by_signal(const Ending& ending) {
  switch (ending.signal) {
    case SIGKILL:
      return {"killed", "",
              "somebody or the kernel killed it; `dmesg` shows whether memory ran out", ""};
    case SIGILL:
      return {"illegal_instruction", "",
              "the program was built for a newer processor than this one: use another build", ""};
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGABRT:
      return {"crashed", "", "the engine crashed: keep the log and the recipe, try another build",
              ""};
    default:
      return {"killed", "", "somebody sent the engine a signal", ""};
  }
}

}  // namespace

std::string describe(const Ending& ending) {
  switch (ending.how) {
    case Ending::How::kExited:
      return "exited with code " + std::to_string(ending.code);
    case Ending::How::kSignalled:
      return "killed by " + signal_name(ending.signal);
    case Ending::How::kStuck:
      return "no progress for " + base::format_duration(static_cast<int64_t>(ending.seconds * 1e9));
    case Ending::How::kCeiling:
      return "not ready after " + base::format_duration(static_cast<int64_t>(ending.seconds * 1e9));
    case Ending::How::kNotExecutable:
    case Ending::How::kPortTaken:
    case Ending::How::kForeignPort:
      return ending.detail;
    case Ending::How::kCancelled:
      return "stopped on request";
  }
  return {};
}

Json to_json(const Failure& failure) {
  return {{"class", failure.klass},
          {"line", failure.line},
          {"hint", failure.hint},
          {"phase", failure.phase}};
}

FailureClassifier::FailureClassifier(const InterfaceTable& table) : rules_(table.shared_rules()) {}

void FailureClassifier::feed(std::string_view line, std::string_view phase) {
  if (base::trim(line).empty()) return;
  tail_.push_back(kept(line));
  if (tail_.size() > kTailLines) tail_.pop_front();
  if (found_) return;
  const auto is_wrapper = [&](const FailureRule& rule) {
    return rule.wrapper && shows(rule, line);
  };
  if (std::any_of(rules_->failures.begin(), rules_->failures.end(), is_wrapper)) return;
  const std::string_view head = line.substr(0, kMarkWithin);
  const bool mild =
      std::any_of(rules_->mild.begin(), rules_->mild.end(),
                  [&](const std::string& mark) { return head.find(mark) != head.npos; });
  for (const FailureRule& rule : rules_->failures) {
    if (rule.wrapper || !in_phase(rule, phase)) continue;
    std::optional<Failure>& place = mild ? mild_ : rule.last ? fallback_ : found_;
    if (place || !shows(rule, line)) continue;
    place = Failure{rule.klass, kept(line), rule.hint, std::string(phase)};
    return;
  }
}

Failure FailureClassifier::classify(const Ending& ending, std::string_view phase) const {
  const auto own = [&](const char* klass, std::string hint) {
    return Failure{klass, describe(ending), std::move(hint), std::string(phase)};
  };
  switch (ending.how) {
    case Ending::How::kCancelled:
      return own("cancelled", "");
    case Ending::How::kNotExecutable:
      return own("missing_program", rules_->program_hint);
    case Ending::How::kPortTaken:
      return own("port_in_use", "stop it, or change launch.port");
    case Ending::How::kForeignPort:
      return own("port_foreign",
                 "another server took the port while this one started: stop it, or change "
                 "launch.port");
    default:
      break;
  }
  if (found_) return *found_;
  if (ending.how == Ending::How::kStuck) {
    return own("stuck",
               "the process runs, but writes nothing, reads nothing and computes nothing; a GPU "
               "engine that hangs here often waits for its peers (NCCL, topology, IOMMU)");
  }
  if (ending.how == Ending::How::kCeiling) {
    return own("start_ceiling", "raise launch.start_ceiling_s if it was still loading");
  }
  if (fallback_) return *fallback_;
  if (ending.how == Ending::How::kSignalled) {
    Failure failure = by_signal(ending);
    failure.line = describe(ending);
    failure.phase = phase;
    return failure;
  }
  if (ending.code == 127 || ending.code == 126) {
    return own("missing_program", rules_->program_hint);
  }
  if (mild_) return *mild_;
  const std::vector<std::string> tail(tail_.begin(), tail_.end());
  Failure failure = own("unclassified", describe(ending) + "; no known cause stands in its log");
  if (!tail.empty()) failure.line = base::join(tail, "\n");
  return failure;
}

Failure classify(const InterfaceTable& table, const std::vector<std::string>& lines,
                 const Ending& ending, std::string_view phase) {
  FailureClassifier classifier(table);
  for (const std::string& line : lines) classifier.feed(line, phase);
  return classifier.classify(ending, phase);
}

}  // namespace anvil::engine
