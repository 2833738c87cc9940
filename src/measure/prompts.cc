#include "measure/prompts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

#include "base/hash.h"

namespace anvil::measure {

namespace {

// Common words, one token each in the vocabularies that we know; the counter has the last word.
constexpr std::string_view kPieces[] = {
    "the",  "of",   "and",  "to",   "in",    "is",   "it",    "was",  "for",  "on",
    "are",  "as",   "with", "they", "at",    "be",   "this",  "have", "from", "or",
    "one",  "had",  "by",   "but",  "not",   "what", "all",   "were", "we",   "when",
    "your", "can",  "said", "use",  "an",    "each", "which", "she",  "do",   "how",
    "if",   "will", "up",   "out",  "about", "who",  "get",   "like", "make", "time"};
// With fewer tokens than this missing, pieces are appended instead of filler.
constexpr int64_t kFineTokens = 16;
// Interpolation aims a little low, because pieces can only be added.
constexpr int64_t kAimBelow = 3;
constexpr double kMinSlope = 0.2, kMaxSlope = 8.0;

uint64_t digest64(const std::string& text) {
  return std::strtoull(base::sha256(text).substr(0, 16).c_str(), nullptr, 16);
}

// A prompt whose length can still change: filler of any number of words, pieces behind it.
class Draft {
 public:
  explicit Draft(const PromptSpec& spec)
      : spec_(spec), filler_(derived_seed(spec.seed, spec.stream, "filler")) {
    std::stable_sort(needles_.begin(), needles_.end(),
                     [](const Needle& a, const Needle& b) { return a.depth < b.depth; });
  }

  std::string text(const std::string& number, int64_t words, int64_t pieces) {
    grow(words);
    std::string out = spec_.shared_prefix;
    if (!out.empty()) out += "\n";
    out += number;
    out += "\n\n";
    append_filler(out, words);
    if (pieces > 0) {
      out += "\n\n";
      out += single_token_words(pieces).substr(1);
    }
    if (!spec_.question.empty()) {
      out += "\n\n";
      out += spec_.question;
    }
    return out;
  }

  // A first idea of the tokens that are not filler.
  int64_t fixed_estimate() const {
    size_t bytes = spec_.shared_prefix.size() + spec_.question.size();
    for (const Needle& needle : needles_) bytes += needle.sentence.size();
    return static_cast<int64_t>(bytes / 4) + 24;
  }

 private:
  void grow(int64_t words) {
    while (static_cast<int64_t>(words_.size()) < words) {
      sentence_starts_.push_back(static_cast<int64_t>(words_.size()));
      const std::string sentence = filler_.sentence();
      for (size_t at = 0; at < sentence.size();) {
        const size_t end = std::min(sentence.find(' ', at), sentence.size());
        words_.push_back(sentence.substr(at, end - at));
        at = end + 1;
      }
    }
  }

  // The sentence start at or before the depth, or the end of the filler for depth 1.
  int64_t needle_position(double depth, int64_t words) const {
    if (depth >= 1.0) return words;
    const auto wanted = static_cast<int64_t>(std::max(depth, 0.0) * static_cast<double>(words));
    const auto after = std::upper_bound(sentence_starts_.begin(), sentence_starts_.end(), wanted);
    return after == sentence_starts_.begin() ? 0 : *(after - 1);
  }

  void append_filler(std::string& out, int64_t words) const {
    size_t needle = 0;
    const size_t begin = out.size();
    const auto separate = [&] {
      if (out.size() > begin) out += ' ';
    };
    for (int64_t i = 0; i < words; ++i) {
      for (; needle < needles_.size() && needle_position(needles_[needle].depth, words) <= i;
           ++needle) {
        separate();
        out += needles_[needle].sentence;
      }
      separate();
      out += words_[static_cast<size_t>(i)];
    }
    if (words > 0) {
      if (out.back() == ',') out.pop_back();
      if (out.back() != '.') out += '.';
    }
    for (; needle < needles_.size(); ++needle) {
      separate();
      out += needles_[needle].sentence;
    }
  }

  const PromptSpec& spec_;
  std::vector<Needle> needles_ = spec_.needles;
  Filler filler_;
  std::vector<std::string> words_;
  std::vector<int64_t> sentence_starts_;
};

struct Point {
  int64_t words = 0;
  int64_t tokens = 0;
};

// The search over filler words: a bracket that tolerates a counter that is not monotone, and the
// slope between the last two points.
class WordSearch {
 public:
  WordSearch(int64_t target, double slope) : target_(target), slope_(slope) {}

  void add(Point point) {
    if (has_last_ && last_.words != point.words) {
      const double slope = static_cast<double>(point.tokens - last_.tokens) /
                           static_cast<double>(point.words - last_.words);
      if (slope >= kMinSlope && slope <= kMaxSlope) slope_ = slope;
    }
    last_ = point;
    has_last_ = true;
    if (point.tokens <= target_) {
      below_ = point;
      has_below_ = true;
      if (above_.words <= point.words) has_above_ = false;
    } else {
      above_ = point;
      has_above_ = true;
      if (below_.words >= point.words) has_below_ = false;
    }
  }

  // Filler whose missing tokens can be made up by pieces; null while there is none.
  const Point* fine_base() const {
    if (!has_below_) return nullptr;
    const bool adjacent = has_above_ && above_.words - below_.words <= 1;
    if (target_ - below_.tokens <= kFineTokens || adjacent) return &below_;
    return nullptr;
  }

  int64_t next() const {
    const double missing = static_cast<double>(target_ - kAimBelow - last_.tokens);
    int64_t words = last_.words + static_cast<int64_t>(std::llround(missing / slope_));
    if (words == last_.words) words += missing > 0 ? 1 : -1;
    if (has_below_ && has_above_ && (words <= below_.words || words >= above_.words))
      words = below_.words + (above_.words - below_.words) / 2;
    return std::max<int64_t>(words, 0);
  }

  double slope() const { return slope_; }

 private:
  int64_t target_;
  double slope_;
  Point last_, below_, above_;
  bool has_last_ = false, has_below_ = false, has_above_ = false;
};

}  // namespace

int64_t tolerance(const PromptSpec& spec) {
  const double share = static_cast<double>(spec.target_tokens) * spec.tolerance_percent / 100.0;
  return std::max(spec.tolerance_tokens, static_cast<int64_t>(share));
}

uint64_t derived_seed(uint64_t seed, std::string_view stream, std::string_view use) {
  std::string text(use);
  text += '\n';
  text += std::to_string(seed);
  text += '\n';
  text += stream;
  return digest64(text);
}

std::string single_token_words(int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) {
    out += ' ';
    out += kPieces[static_cast<size_t>(i) % std::size(kPieces)];
  }
  return out;
}

std::string nonce(uint64_t seed, std::string_view stream, std::string_view salt) {
  const uint64_t number =
      derived_seed(seed, stream, "nonce\n" + std::string(salt)) % 900'000'000'000ull;
  return std::to_string(number + 100'000'000'000ull);
}

Result<ExactPrompt> PromptBuilder::build(const PromptSpec& spec) {
  Draft draft(spec);
  const std::string probe = nonce(spec.seed, spec.stream, "probe\n" + spec.salt);
  const int64_t allowed = tolerance(spec);
  ExactPrompt best;
  int calls = 0;

  // True when the draft of that size is within the tolerance; remembers the nearest.
  int64_t best_words = 0, best_pieces = 0, tokens = 0;
  const auto measure = [&](int64_t words, int64_t pieces) -> Result<bool> {
    tokens = TRY(counter_(draft.text(probe, words, pieces)));
    ++calls;
    const int64_t deviation = tokens - spec.target_tokens;
    if (calls == 1 || std::abs(deviation) < std::abs(best.deviation)) {
      best.tokens = tokens;
      best.deviation = deviation;
      best_words = words;
      best_pieces = pieces;
    }
    return std::abs(deviation) <= allowed;
  };
  const auto finish = [&](double slope) {
    if (best_words > 100) tokens_per_word_ = std::clamp(slope, kMinSlope, kMaxSlope);
    best.text = draft.text(nonce(spec.seed, spec.stream, spec.salt), best_words, best_pieces);
    best.counter_calls = calls;
    return best;
  };

  WordSearch search(spec.target_tokens, tokens_per_word_);
  const double guess = static_cast<double>(spec.target_tokens - draft.fixed_estimate() - kAimBelow);
  int64_t words = std::max<int64_t>(0, static_cast<int64_t>(guess / tokens_per_word_));
  std::set<std::pair<int64_t, int64_t>> tried;
  // More words than this for one token each: the counter does not count this text.
  const int64_t most_words = 1000 + 4 * spec.target_tokens;
  while (calls < spec.max_counter_calls && words <= most_words) {
    if (TRY(measure(words, 0))) return finish(search.slope());
    if (words == 0 && tokens > spec.target_tokens)
      return fail(Kind::kInvalidInput, Side::kClient,
                  "a prompt of " + std::to_string(spec.target_tokens) +
                      " tokens is too small: its fixed parts alone have " + std::to_string(tokens),
                  "ask for a longer prompt or a shorter question");
    search.add({words, tokens});

    if (const Point* base = search.fine_base()) {
      // Pieces are a token each, where the counter agrees; else the bracket finds what fits.
      int64_t pieces = spec.target_tokens - base->tokens;
      int64_t few = 0, many = std::numeric_limits<int64_t>::max();
      while (calls < spec.max_counter_calls && pieces > few && pieces < many &&
             tried.insert({base->words, pieces}).second) {
        if (TRY(measure(base->words, pieces))) return finish(search.slope());
        (tokens < spec.target_tokens ? few : many) = pieces;
        pieces += spec.target_tokens - tokens;
        if (pieces <= few || pieces >= many) pieces = few + (many - few) / 2;
      }
      // The counter jumps here: begin again from a filler that is one word shorter.
      words = std::max<int64_t>(0, base->words - 1);
      if (!tried.insert({words, 0}).second) words = std::max<int64_t>(0, words - 7);
    } else {
      words = search.next();
    }
  }
  return fail(Kind::kMismatch, Side::kEngine,
              "no prompt of " + std::to_string(spec.target_tokens) + " tokens (within " +
                  std::to_string(allowed) + ") was found in " + std::to_string(calls) +
                  " counts; the nearest has " + std::to_string(best.tokens),
              "the token counter of the engine does not follow the length of the text");
}

}  // namespace anvil::measure
