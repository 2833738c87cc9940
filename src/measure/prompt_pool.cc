#include "measure/prompt_pool.h"

#include <algorithm>
#include <map>
#include <set>

namespace anvil::measure {

namespace {
// Words with which it is tried whether they are a token each.
constexpr int64_t kTriedWords = 48;
}  // namespace

std::string salted(const PlannedText& planned, uint64_t seed, std::string_view salt) {
  std::string out = planned.text;
  for (const auto& [at, stream] : planned.nonces) {
    const std::string digits = nonce(seed, stream, salt);
    out.replace(at, digits.size(), digits);
  }
  return out;
}

PlannedText joined(const PlannedText& front, const PlannedText& back) {
  PlannedText out = front;
  out.text += "\n";
  for (const auto& [at, stream] : back.nonces) out.nonces.push_back({out.text.size() + at, stream});
  out.text += back.text;
  return out;
}

PromptPool::PromptPool(PromptBuilder& builder, uint64_t seed, std::string salt,
                       std::string question, std::function<void(int)> made)
    : builder_(builder),
      seed_(seed),
      salt_(std::move(salt)),
      question_(std::move(question)),
      made_(std::move(made)) {}

Result<PlannedText> PromptPool::exact(const std::string& stream, int64_t tokens,
                                      const PlannedText* beginning, const std::string& question) {
  PromptSpec spec;
  spec.target_tokens = tokens;
  spec.seed = seed_;
  spec.stream = stream;
  spec.salt = salt_;
  spec.question = question;
  if (beginning) spec.shared_prefix = salted(*beginning, seed_, salt_);
  ExactPrompt made = TRY(builder_.build(spec));
  calls_ += made.counter_calls;
  if (made_) made_(++texts_);
  PlannedText out;
  out.text = beginning ? made.text.substr(spec.shared_prefix.size() + 1) : std::move(made.text);
  const std::string plain = nonce(seed_, stream, "");
  out.text.replace(0, plain.size(), plain);
  out.nonces.push_back({0, stream});
  return out;
}

Result<PlannedText> PromptPool::beginning(const std::string& stream, int64_t tokens) {
  return exact(stream, tokens, nullptr, "");
}

PlannedText PromptPool::lengthened(const PlannedText& body, int64_t words) const {
  PlannedText out = body;
  const size_t end = question_.empty() ? out.text.size() : out.text.size() - question_.size() - 2;
  out.text.insert(end, single_token_words(words));
  return out;
}

Result<bool> PromptPool::words_are_tokens(const PlannedText& body, int64_t tokens,
                                          const PlannedText* beginning) {
  PlannedText longer = lengthened(body, kTriedWords);
  if (beginning) longer = joined(*beginning, longer);
  // Under other nonces: counting may mean sending, and nothing of the plan may be known before.
  const int64_t counted = TRY(builder_.count(salted(longer, seed_, "probe\n" + salt_)));
  ++calls_;
  return std::abs(counted - tokens - kTriedWords) <= 2;
}

Result<std::vector<PlannedText>> PromptPool::pooled(const std::vector<PromptWish>& wishes,
                                                    const std::vector<PlannedText>& beginnings) {
  pooled_ = true;
  // Texts are searched behind the first beginning; the others have the same length.
  const auto behind = [&](bool shared) { return shared ? &beginnings.front() : nullptr; };
  std::map<std::pair<bool, int64_t>, size_t> wanted;  // by beginning or not, and length
  for (const PromptWish& wish : wishes) ++wanted[{wish.beginning >= 0, wish.tokens}];

  std::map<std::pair<bool, int64_t>, std::vector<PlannedText>> texts;
  const auto search = [&](bool shared, int64_t tokens, size_t variants) -> Result<void> {
    auto& into = texts[{shared, tokens}];
    for (size_t i = into.size(); i < variants; ++i) {
      const std::string stream = wishes.front().stream.substr(0, wishes.front().stream.find('/')) +
                                 "/pool-" + std::to_string(tokens) + "-" + std::to_string(i);
      into.push_back(TRY(exact(stream, tokens, behind(shared), question_)));
    }
    return {};
  };
  size_t spread = std::max<size_t>(1, kMostPooled / wanted.size());
  const size_t step = (wanted.size() + kMostPooled - 1) / kMostPooled;
  size_t index = 0;
  bool last_shared = false, fill_up = step > 1;
  for (const auto& [key, count] : wanted) {
    const bool first_of_kind = index == 0 || key.first != last_shared;
    last_shared = key.first;
    if (!fill_up || first_of_kind || index % step == 0)
      TRY(search(key.first, key.second, std::min(spread, count)));
    if (index == 0 && fill_up)
      fill_up = TRY(words_are_tokens(texts[key].front(), key.second, behind(key.first)));
    ++index;
  }

  std::map<std::pair<bool, int64_t>, size_t> turn;
  std::map<std::string, size_t> known;
  std::vector<PlannedText> out;
  for (const PromptWish& wish : wishes) {
    if (const auto [same, fresh] = known.emplace(wish.stream, out.size()); !fresh) {
      out.push_back(PlannedText(out[same->second]));
      continue;
    }
    const std::pair<bool, int64_t> key{wish.beginning >= 0, wish.tokens};
    // The longest text that is not too long; the shortest of each kind is always there.
    const auto found = std::prev(texts.upper_bound(key));
    PlannedText body = found->second[turn[found->first]++ % found->second.size()];
    if (const int64_t missing = wish.tokens - found->first.second; missing > 0) {
      body = lengthened(body, missing);
      ++filled_up_;
    }
    const std::string digits = nonce(seed_, wish.stream, "");
    body.text.replace(0, digits.size(), digits);
    body.nonces = {{0, wish.stream}};
    out.push_back(wish.beginning < 0
                      ? std::move(body)
                      : joined(beginnings[static_cast<size_t>(wish.beginning)], body));
  }
  return out;
}

Result<std::vector<PlannedText>> PromptPool::make(const std::vector<PromptWish>& wishes,
                                                  const std::vector<PlannedText>& beginnings) {
  std::set<std::string> streams;
  for (const PromptWish& wish : wishes) streams.insert(wish.stream);
  if (streams.size() > kMostExact) return pooled(wishes, beginnings);
  std::map<std::string, PlannedText> known;
  std::vector<PlannedText> out;
  for (const PromptWish& wish : wishes) {
    auto found = known.find(wish.stream);
    if (found == known.end()) {
      const PlannedText* front =
          wish.beginning < 0 ? nullptr : &beginnings[static_cast<size_t>(wish.beginning)];
      auto body = exact(wish.stream, wish.tokens, front, question_);
      if (!body)
        return fail(
            std::move(body.error().with_context(wish.stream.substr(wish.stream.find('/') + 1))));
      found = known.emplace(wish.stream, front ? joined(*front, *body) : *body).first;
    }
    out.push_back(found->second);
  }
  return out;
}

Json PromptPool::describe() const {
  return {{"method", pooled_ ? "pool" : "exact"}, {"texts", texts_}, {"filled_up", filled_up_}};
}

}  // namespace anvil::measure
