#pragma once

#include <string>

#include "base/clock.h"
#include "qualify/qualify.h"

namespace anvil::app {

// Shows a qualification to a person, on stderr: on a terminal one line that is redrawn (step, what,
// count, rate, remaining) plus a finished line per step; in a pipe only the finished lines. `quiet`
// shows nothing.
class Progress : public qualify::Observer {
 public:
  enum class Mode { kTerminal, kLines, kQuiet };
  explicit Progress(Mode mode) : mode_(mode) {}
  // Terminal when stderr is one and TERM is not "dumb", else lines.
  static Mode detect();

  void run_created(const std::string& directory) override;
  void step_begin(std::string_view step) override;
  void progress(std::string_view step, int64_t done, int64_t total, std::string_view what) override;
  void step_end(std::string_view step, bool ok, std::string_view summary) override;

 private:
  void line(const std::string& text);
  void redraw(const std::string& text);

  Mode mode_;
  Nanos step_began_ = 0;
  Nanos last_drawn_ = 0;
};

}  // namespace anvil::app
