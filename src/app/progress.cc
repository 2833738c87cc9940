#include "app/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"

namespace anvil::app {

namespace {
constexpr Nanos kRedrawEvery = 100 * kMillisecond;

size_t terminal_columns() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 80;
}
}  // namespace

Progress::Mode Progress::detect() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && term && std::strcmp(term, "dumb") != 0 ? Mode::kTerminal
                                                                         : Mode::kLines;
}

void Progress::line(const std::string& text) {
  if (mode_ == Mode::kQuiet) return;
  std::fprintf(stderr, "%s%s\n", mode_ == Mode::kTerminal ? "\r\033[K" : "", text.c_str());
}

void Progress::redraw(const std::string& text) {
  if (mode_ != Mode::kTerminal) return;
  std::string shown = text;
  const size_t columns = terminal_columns();
  if (shown.size() >= columns) shown.resize(columns - 1);
  std::fprintf(stderr, "\r\033[K%s", base::to_valid_utf8(shown).c_str());
  std::fflush(stderr);
}

void Progress::run_created(const std::string& directory) {
  line("run         " + directory);
}

void Progress::step_begin(std::string_view step) {
  step_began_ = mono_now();
  last_drawn_ = 0;
  redraw(std::string(step) + " ...");
}

void Progress::progress(std::string_view step, int64_t done, int64_t total, std::string_view what) {
  const Nanos now = mono_now();
  if (mode_ != Mode::kTerminal || now - last_drawn_ < kRedrawEvery) return;
  last_drawn_ = now;
  const Nanos elapsed = now - step_began_;
  std::string text(step);
  text.resize(std::max<size_t>(text.size(), 12), ' ');
  if (total > 0) {
    text += std::to_string(done) + "/" + std::to_string(total) + "  ";
    if (done > 0 && elapsed > 0) {
      char rate[32];
      std::snprintf(rate, sizeof rate, "%.2g/s  ",
                    static_cast<double>(done) / (static_cast<double>(elapsed) / 1e9));
      text += rate;
      if (done < total)
        text += "~" + base::format_duration(elapsed / done * (total - done)) + " left  ";
    }
  }
  text += base::format_duration(elapsed) + "  " + std::string(what);
  redraw(text);
}

void Progress::step_end(std::string_view step, bool ok, std::string_view summary) {
  std::string text(step);
  text.resize(std::max<size_t>(text.size() + 1, 12), ' ');
  text += ok ? "" : "FAILED  ";
  text += summary;
  text += (summary.empty() ? "" : "  ") + std::string("(") +
          base::format_duration(mono_now() - step_began_) + ")";
  line(text);
}

}  // namespace anvil::app
