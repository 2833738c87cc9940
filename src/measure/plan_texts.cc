#include <algorithm>
#include <array>
#include <map>

#include "base/hash.h"
#include "measure/plan_draft.h"
#include "measure/trace.h"

namespace anvil::measure {

namespace {

constexpr std::string_view kQuestion = "Continue this text in the same style, at length.";
// Tokens that a prompt with a shared beginning keeps for what differs: nonce, filler and question.
constexpr int64_t kOwnTokens = 48;
// The same for a prompt of a trace, which also has the template's tokens.
constexpr int64_t kLeastTail = 128;
constexpr double kTokensPerWord = 1.35;

std::string question_of(const LanePlan& lane) {
  return lane.api == wire::Api::kCompletions ? std::string() : std::string(kQuestion);
}

std::string filler_words(uint64_t seed, int64_t words) {
  Filler filler(seed);
  std::string out;
  for (int64_t made = 0; made < words;) {
    const std::string sentence = filler.sentence();
    made += 1 + std::count(sentence.begin(), sentence.end(), ' ');
    if (!out.empty()) out += ' ';
    out += sentence;
  }
  return out;
}

std::vector<PlannedAttempt*> all_of(LaneDraft& draft) {
  std::vector<PlannedAttempt*> out;
  for (auto* list : {&draft.warmup, &draft.prime, &draft.measured})
    for (PlannedAttempt& attempt : *list) out.push_back(&attempt);
  return out;
}

void note_making(const PromptPool& pool, int other_calls, LaneDraft& draft) {
  draft.making = pool.describe();
  draft.counter_calls = pool.counter_calls() + other_calls;
  draft.making["counter_calls"] = draft.counter_calls;
}

// Gives each turn of a session the turns before it, with answers made up from `seed`.
void add_history(uint64_t seed, std::vector<PlannedAttempt>& attempts) {
  std::vector<PlannedMessage> history;
  for (PlannedAttempt& attempt : attempts) {
    if (*attempt.turn == 0) history.clear();
    history.push_back(std::move(attempt.messages.front()));
    attempt.messages = history;
    const auto words =
        static_cast<int64_t>(static_cast<double>(attempt.output_tokens) / kTokensPerWord);
    history.push_back(
        {"assistant",
         {filler_words(derived_seed(seed, attempt.stream, "answer"), std::max<int64_t>(words, 1)),
          {}}});
  }
}

// Blocks of text for the hash_ids of a trace: a nonce for the id, then one of a few fillers, whose
// tokens were counted.
class Blocks {
 public:
  Blocks(const LanePlan& lane, const LaneContext& context, PromptBuilder& prompts)
      : lane_(lane), context_(context), prompts_(prompts) {}

  // Counts the fillers; their length is changed until the longest nearly fills a block.
  Result<void> prepare() {
    auto words = static_cast<int64_t>(static_cast<double>(kBlockTokens) / kTokensPerWord);
    for (int attempt = 0; attempt < 6; ++attempt) {
      const int64_t nothing = TRY(count(0, 0));
      int64_t most = 0;
      for (size_t i = 0; i < tokens_.size(); ++i) {
        fillers_[i] = filler_words(
            derived_seed(context_.seed, lane_.id + "/block-filler-" + std::to_string(i), "filler"),
            words);
        tokens_[i] = TRY(count(1, static_cast<int64_t>(i))) - nothing;
        most = std::max(most, tokens_[i]);
      }
      if (most <= kBlockTokens && most >= kBlockTokens * 15 / 16) return {};
      words = words * (kBlockTokens - 8) / std::max<int64_t>(most, 1);
    }
    return fail(Kind::kMismatch, Side::kEngine,
                "no text of a block of 512 tokens was found for the trace",
                "the token counter of the engine does not follow the length of the text");
  }

  int64_t tokens(int64_t id) const { return tokens_[variant(id)]; }
  PlannedText text(int64_t id) const {
    const std::string stream = lane_.id + "/block-" + std::to_string(id);
    return {nonce(context_.seed, stream, "") + " " + fillers_[variant(id)], {{0, stream}}};
  }
  int calls() const { return calls_; }

 private:
  static constexpr int64_t kBlockTokens = kTraceBlockTokens;

  static size_t variant(int64_t id) { return static_cast<size_t>(static_cast<uint64_t>(id) % 16); }

  // Tokens of a prompt with one filler in it, or with none.
  Result<int64_t> count(int blocks, int64_t which) {
    const std::string digits = nonce(context_.seed, lane_.id, "probe\n" + context_.salt);
    std::string probe = digits + "\n";
    if (blocks > 0) probe += digits + " " + fillers_[static_cast<size_t>(which)] + "\n";
    ++calls_;
    return prompts_.count(probe + digits + "\n\n" + question_of(lane_));
  }

  const LanePlan& lane_;
  const LaneContext& context_;
  PromptBuilder& prompts_;
  std::array<std::string, 16> fillers_;
  std::array<int64_t, 16> tokens_{};
  int calls_ = 0;
};

// What stands behind `front` and the line break after it.
PlannedText behind(const PlannedText& whole, const PlannedText& front) {
  const size_t cut = front.text.size() + 1;
  PlannedText out{whole.text.substr(cut), {}};
  for (const auto& [at, stream] : whole.nonces)
    if (at >= cut) out.nonces.push_back({at - cut, stream});
  return out;
}

}  // namespace

Result<void> write_synthetic(const LanePlan& lane, const LaneContext& context,
                             PromptBuilder& prompts, const std::function<void(int)>& made,
                             LaneDraft& draft) {
  PromptPool pool(prompts, context.seed, context.salt, question_of(lane), made);
  std::vector<PlannedText> beginnings;
  if (lane.cache == "prefix") {
    int64_t shortest = draft.measured.front().prompt_tokens;
    for (const auto* list : {&draft.prime, &draft.measured})
      for (const PlannedAttempt& each : *list) shortest = std::min(shortest, each.prompt_tokens);
    const int64_t tokens =
        lane.prefix_tokens.value_or(std::min(shortest * 9 / 10, shortest - kOwnTokens));
    for (int g = 0; g < lane.prefix_groups; ++g) {
      const std::string item = lane.prefix_groups == 1 ? "shared" : "shared-" + std::to_string(g);
      auto text = pool.beginning(lane.id + "/" + item, tokens);
      if (!text) return fail(std::move(text.error().with_context(item)));
      beginnings.push_back(std::move(*text));
    }
  }
  const auto attempts = all_of(draft);
  std::vector<PromptWish> wishes;
  for (const PlannedAttempt* each : attempts)
    wishes.push_back({each->stream, each->prompt_tokens, each->beginning});
  auto texts = TRY(pool.make(wishes, beginnings));
  for (size_t i = 0; i < attempts.size(); ++i)
    attempts[i]->messages.push_back({"user", std::move(texts[i])});
  if (lane.load == Load::kSessions) {
    add_history(context.seed, draft.measured);
    // Only the first turn has the length that was asked for.
    for (PlannedAttempt& each : draft.measured)
      if (*each.turn > 0) each.prompt_tokens = 0;
  }
  note_making(pool, 0, draft);
  draft.prompts = {{"source", "synthetic"}};
  return {};
}

Result<void> write_trace(const LanePlan& lane, const LaneContext& context, PromptBuilder& prompts,
                         const std::function<void(int)>& made, LaneDraft& draft) {
  const auto attempts = all_of(draft);
  std::map<int64_t, int> uses;
  if (lane.cache == "replay")
    for (const PlannedAttempt* each : attempts)
      for (const int64_t id : each->blocks) ++uses[id];
  const bool shares =
      std::any_of(uses.begin(), uses.end(), [](const auto& use) { return use.second > 1; });
  Blocks blocks(lane, context, prompts);
  if (shares) TRY(blocks.prepare());

  // All prompts that share something begin with one nonce of the run: it keeps other runs out and
  // the sharing in.
  const std::string root_stream = lane.id + "/trace";
  const PlannedText root{nonce(context.seed, root_stream, ""), {{0, root_stream}}};
  std::vector<PromptWish> wishes;
  std::vector<size_t> kept;
  int64_t shared_tokens = 0;
  for (const PlannedAttempt* each : attempts) {
    int64_t left = each->prompt_tokens;
    size_t k = 0;
    while (k < each->blocks.size() && uses[each->blocks[k]] > 1 &&
           left - blocks.tokens(each->blocks[k]) >= kLeastTail)
      left -= blocks.tokens(each->blocks[k++]);
    PromptWish wish{each->stream, left, shares && !each->blocks.empty() ? 0 : -1};
    // A prompt that is shared to its end is the same text each time.
    if (wish.beginning == 0 && std::all_of(each->blocks.begin(), each->blocks.end(),
                                           [&](int64_t id) { return uses[id] > 1; })) {
      std::string ids = std::to_string(each->prompt_tokens);
      for (const int64_t id : each->blocks) ids += "," + std::to_string(id);
      wish.stream = lane.id + "/tail-" + base::sha256(ids).substr(0, 16);
    }
    shared_tokens += each->prompt_tokens - left;
    kept.push_back(k);
    wishes.push_back(std::move(wish));
  }
  PromptPool pool(prompts, context.seed, context.salt, question_of(lane), made);
  auto texts = TRY(pool.make(wishes, {root}));
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (kept[i] > 0) {
      PlannedText front = root;
      for (size_t k = 0; k < kept[i]; ++k)
        front = joined(front, blocks.text(attempts[i]->blocks[k]));
      texts[i] = joined(front, behind(texts[i], root));
    }
    attempts[i]->messages.push_back({"user", std::move(texts[i])});
  }
  note_making(pool, blocks.calls(), draft);
  draft.prompts = {{"source", "synthetic"}};
  draft.trace["shared_tokens"] = shared_tokens;
  return {};
}

Result<void> write_dataset(const LanePlan& lane, const LaneContext& context, LaneDraft& draft) {
  const size_t colon = lane.prompts.find(':');
  const std::string form = lane.prompts.substr(0, colon);
  const Dataset set =
      TRY(load_dataset(lane.prompts.substr(colon + 1), form == "sharegpt"   ? DatasetForm::kShareGpt
                                                       : form == "messages" ? DatasetForm::kMessages
                                                                            : DatasetForm::kText));
  const size_t wanted = draft.measured.size() + draft.warmup.size();
  auto sample = sample_without_replacement(set.items.size(), wanted,
                                           derived_seed(context.seed, lane.id, "sample"));
  if (!sample) return fail(std::move(sample.error().with_context(set.path)));
  const auto write = [&](PlannedAttempt& attempt, const DatasetItem& item) {
    attempt.prompt = item.id;
    for (const PromptMessage& message : item.messages)
      attempt.messages.push_back({message.role, {message.content, {}}});
    if (lane.cache != "cold") return;
    PlannedText& first = attempt.messages.front().text;
    first = {nonce(context.seed, attempt.stream, "") + "\n\n" + first.text, {{0, attempt.stream}}};
  };
  // Measured ones first: more or fewer warm-up requests leave them as they are.
  for (size_t i = 0; i < draft.measured.size(); ++i)
    write(draft.measured[i], set.items[(*sample)[i]]);
  for (size_t i = 0; i < draft.prime.size(); ++i) write(draft.prime[i], set.items[(*sample)[i]]);
  for (size_t i = 0; i < draft.warmup.size(); ++i)
    write(draft.warmup[i], set.items[(*sample)[draft.measured.size() + i]]);
  draft.prompts = {
      {"source", form},
      {"sha256", set.sha256},
      {"items", set.items.size()},
      {"left_out", set.left_out},
      {"nonce", lane.cache == "cold" ? Json("first line of the first message") : Json(nullptr)}};
  return {};
}

}  // namespace anvil::measure
