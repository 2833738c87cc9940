#include "evidence/import/figures.h"

#include <charconv>
#include <cmath>

#include "base/strings.h"

namespace anvil::evidence::imported {

namespace {
constexpr double kStoredTolerance = 1e-9;

size_t decimals_of(std::string_view text) {
  const size_t dot = text.rfind('.');
  return dot == std::string_view::npos ? 0 : text.size() - dot - 1;
}
}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kDiffers:
      return "differs";
    case Verdict::kNotDerivable:
      break;
  }
  return "not derivable";
}

Json to_json(const Figure& figure) {
  return {{"group", figure.group},
          {"figure", figure.figure},
          {"where", figure.where},
          {"published", figure.published},
          {"derived", figure.derived},
          {"tolerance", figure.tolerance ? Json(*figure.tolerance) : Json(nullptr)},
          {"verdict", name(figure.verdict)},
          {"because", figure.because}};
}

void Figures::add(Figure figure, bool same, std::string if_differs) {
  figure.group = group_;
  if (figure.derived.is_null())
    figure.verdict = Verdict::kNotDerivable;
  else
    figure.verdict = same ? Verdict::kReproduced : Verdict::kDiffers;
  if (figure.verdict == Verdict::kDiffers && !if_differs.empty())
    figure.because += "; " + if_differs;
  figures_.push_back(std::move(figure));
}

void Figures::stored(std::string figure, std::string where, const Json& published,
                     std::optional<double> derived, std::string because, std::string if_differs) {
  if (published.is_null()) return;
  Figure out{{}, std::move(figure), std::move(where), published, nullptr, std::nullopt,
             {}, std::move(because)};
  bool same = false;
  if (derived && std::isfinite(*derived)) {
    // A count stays a count, so that it is shown and compared as one.
    const bool whole = std::floor(*derived) == *derived && std::fabs(*derived) < 1e15;
    out.derived = whole && published.is_number_integer() ? Json(static_cast<int64_t>(*derived))
                                                         : Json(*derived);
    if (published.is_number()) {
      const auto value = published.get<double>();
      out.tolerance = published.is_number_integer() ? 0 : kStoredTolerance * std::fabs(value);
      same = std::fabs(value - *derived) <= *out.tolerance;
    }
  }
  add(std::move(out), same, std::move(if_differs));
}

void Figures::printed(std::string figure, std::string where, std::string published,
                      std::optional<double> derived, std::string because, std::string if_differs) {
  Figure out{{}, std::move(figure), std::move(where), published, nullptr, std::nullopt,
             {}, std::move(because)};
  bool same = false;
  const auto value = printed_number(published);
  if (derived && value && std::isfinite(*derived)) {
    out.derived = *derived;
    out.tolerance = half_unit(published);
    // A value that lies exactly between two printed ones may be rounded either way.
    same = std::fabs(*value - *derived) <= *out.tolerance * (1 + 1e-9);
  }
  add(std::move(out), same, std::move(if_differs));
}

void Figures::exact(std::string figure, std::string where, const Json& published,
                    const Json& derived, std::string because, std::string if_differs) {
  if (published.is_null()) return;
  const bool same = published == derived;
  add({{},
       std::move(figure),
       std::move(where),
       published,
       derived,
       std::nullopt,
       {},
       std::move(because)},
      same, std::move(if_differs));
}

void Figures::not_derivable(std::string figure, std::string where, const Json& published,
                            std::string because) {
  exact(std::move(figure), std::move(where), published, nullptr, std::move(because));
}

std::optional<double> printed_number(std::string_view text) {
  std::string plain;
  for (char c : text)
    if (c != ',') plain += c;
  if (plain.starts_with('+')) plain.erase(0, 1);
  return base::parse_double(plain);
}

double half_unit(std::string_view text) {
  return 0.5 * std::pow(10.0, -static_cast<double>(decimals_of(text)));
}

std::string fixed(double value, int decimals) {
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed, decimals);
  return end.ec == std::errc() ? std::string(buffer, end.ptr) : base::format_number(value);
}

std::string shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_integer()) return std::to_string(value.get<int64_t>());
  if (!value.is_number()) return base::canonical(value);
  const auto number = value.get<double>();
  if (std::floor(number) == number && std::fabs(number) < 1e15) return fixed(number, 0);
  return fixed(number, std::fabs(number) >= 1 ? 3 : 6);
}

double nearest_rank_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double rank = std::ceil(q * static_cast<double>(values.size()));
  return values[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

double median_of(std::vector<double> values) {
  return nearest_rank_of(std::move(values), 0.5);
}

std::optional<double> decode_tok_s(const Row& row) {
  const auto generation = row.generation_ms();
  if (!generation || *generation <= 0 || !row.completion || *row.completion < 2)
    return std::nullopt;
  return static_cast<double>(*row.completion - 1) / *generation * 1000;
}

std::optional<double> prefill_tok_s(const Row& row) {
  if (!row.ttfo_ms || *row.ttfo_ms <= 0 || !row.prompt) return std::nullopt;
  return static_cast<double>(*row.prompt) / *row.ttfo_ms * 1000;
}

std::optional<double> token_gap_ms(const Row& row) {
  const auto generation = row.generation_ms();
  if (!generation || !row.completion || *row.completion < 2) return std::nullopt;
  return *generation / static_cast<double>(*row.completion - 1);
}

std::vector<double> values_of(const std::vector<const Row*>& rows,
                              std::optional<double> (*value)(const Row&)) {
  std::vector<double> out;
  for (const Row* row : rows)
    if (row->ok)
      if (const auto one = value(*row)) out.push_back(*one);
  return out;
}

double percent_change(double from, double to) {
  return (to / from - 1) * 100;
}

std::optional<double> day_ms(std::string_view utc) {
  const size_t t = utc.find('T');
  if (t == std::string_view::npos || !utc.ends_with('Z')) return std::nullopt;
  const auto parts = base::split(utc.substr(t + 1, utc.size() - t - 2), ':');
  if (parts.size() != 3) return std::nullopt;
  const auto hours = base::parse_int(parts[0]), minutes = base::parse_int(parts[1]);
  const auto seconds = base::parse_double(parts[2]);
  if (!hours || !minutes || !seconds) return std::nullopt;
  return (static_cast<double>(*hours * 60 + *minutes) * 60 + *seconds) * 1000;
}

std::vector<Figure> all_figures(const Campaign& campaign) {
  Figures figures;
  add_printed_tables(campaign, figures);
  add_comparison_figures(campaign, figures);
  add_capacity_figures(campaign, figures);
  add_ladder_figures(campaign, figures);
  add_quality_figures(campaign, figures);
  add_preflight_figures(campaign, figures);
  add_hardware_figures(campaign, figures);
  add_acceptance_figures(campaign, figures);
  return figures.take();
}

}  // namespace anvil::evidence::imported
