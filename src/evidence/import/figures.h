#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evidence/import/campaign.h"

namespace anvil::evidence::imported {

enum class Verdict { kReproduced, kDiffers, kNotDerivable };
std::string_view name(Verdict verdict);

// One number (or truth value, or text) that the campaign states, and what its raw records give.
struct Figure {
  std::string group;                // the table or file it stands in
  std::string figure;               // what it is
  std::string where;                // "file#/pointer", or the published table it was printed in
  Json published;                   // a text keeps the digits as printed
  Json derived;                     // null where nothing can be derived
  std::optional<double> tolerance;  // largest difference that still counts as the same
  Verdict verdict = Verdict::kNotDerivable;
  std::string because;  // from what it was derived; or why it differs, or is not derivable
};
Json to_json(const Figure& figure);

// Collects figures and gives each its verdict.
//   stored   a number as it stands in a file. Whole numbers have to be equal; others agree within
//            1e-9 of their size: they carry the rounding of the old client's subtractions.
//   printed  digits as printed in a table ("1,573.9", "+5.867"): agrees within half a unit of the
//            last digit.
//   exact    a truth value or text.
// Without a derived value the figure is not derivable, and `because` has to say why. A figure that
// is absent (null) in the file is not published and is not listed.
class Figures {
 public:
  void group(std::string name) { group_ = std::move(name); }
  void stored(std::string figure, std::string where, const Json& published,
              std::optional<double> derived, std::string because, std::string if_differs = {});
  void printed(std::string figure, std::string where, std::string published,
               std::optional<double> derived, std::string because, std::string if_differs = {});
  void exact(std::string figure, std::string where, const Json& published, const Json& derived,
             std::string because, std::string if_differs = {});
  void not_derivable(std::string figure, std::string where, const Json& published,
                     std::string because);
  std::vector<Figure> take() { return std::move(figures_); }

 private:
  void add(Figure figure, bool same, std::string if_differs);

  std::string group_;
  std::vector<Figure> figures_;
};

// Digits as printed, to a number; nothing of something else. "+5.867" and "1,573.9" are numbers.
std::optional<double> printed_number(std::string_view text);
// Half a unit of the last printed digit.
double half_unit(std::string_view text);
// A number for people: whole numbers as they are, others with three decimals, below 1 with six.
std::string shown(const Json& value);
std::string fixed(double value, int decimals);

// Statistics as the old client defined them, on its own units.
double median_of(std::vector<double> values);  // nearest rank; of a non-empty list
double nearest_rank_of(std::vector<double> values, double q);
std::optional<double> decode_tok_s(const Row& row);   // (completion - 1) / generation
std::optional<double> prefill_tok_s(const Row& row);  // prompt / time to first output
std::optional<double> token_gap_ms(const Row& row);   // generation / (completion - 1)
// The values that exist of rows that succeeded.
std::vector<double> values_of(const std::vector<const Row*>& rows,
                              std::optional<double> (*value)(const Row&));
// A metric of a run by the name that capacity files give it ("decode_tok_s_p50",
// "throughput_tok_s", ...); nothing for an unknown name, or without the rows that it needs.
std::optional<double> run_metric(const CapacityRun& run, std::string_view name);
double percent_change(double from, double to);

// The figures of each kind of file, and the tables that were printed elsewhere.
void add_capacity_figures(const Campaign& campaign, Figures& figures);
void add_comparison_figures(const Campaign& campaign, Figures& figures);
void add_ladder_figures(const Campaign& campaign, Figures& figures);
void add_quality_figures(const Campaign& campaign, Figures& figures);
void add_preflight_figures(const Campaign& campaign, Figures& figures);
void add_hardware_figures(const Campaign& campaign, Figures& figures);
void add_acceptance_figures(const Campaign& campaign, Figures& figures);
void add_printed_tables(const Campaign& campaign, Figures& figures);
std::vector<Figure> all_figures(const Campaign& campaign);

// Milliseconds since midnight UTC of "2026-08-02T02:49:17.307765Z"; nothing of another form.
std::optional<double> day_ms(std::string_view utc);

// Grades stored answers again. Nothing where the validator of an item is not among the files.
std::optional<bool> grade_again(const Campaign& campaign, const QualityItem& item,
                                const Row& attempt);

}  // namespace anvil::evidence::imported
