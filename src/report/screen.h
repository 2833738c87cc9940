#pragma once

#include <string>
#include <string_view>

#include "report/view.h"

// What the terminal formats write with.
namespace anvil::report {

enum class Ink { kPlain, kBold, kQuiet, kGood, kWatch, kBad };
Ink ink_of(Tone tone);

// Lines of at most `columns` characters. Foreign words pass through one_line(), so only this class
// writes escapes.
class Screen {
 public:
  Screen(bool colour, int columns);

  std::string ink(std::string_view words, Ink ink) const;
  void blank() { out_ += "\n"; }
  void heading(std::string_view words);
  void line(std::string_view words, Ink how = Ink::kPlain);
  // Words wrapped at spaces, every line after the first indented by `hang`.
  void wrapped(std::string_view words, size_t hang, Ink how = Ink::kPlain);
  // Pieces that were inked and padded before; the caller keeps them within the width.
  void raw(std::string_view pieces) { out_ += std::string(pieces) + "\n"; }
  size_t columns() const { return columns_; }
  std::string take() { return std::move(out_); }

 private:
  bool colour_;
  size_t columns_;
  std::string out_;
};

// Padded or cut to `width` characters.
std::string left(std::string_view words, size_t width);
std::string right(std::string_view words, size_t width);

}  // namespace anvil::report
