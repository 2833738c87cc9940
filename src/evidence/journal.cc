#include "evidence/journal.h"

#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

namespace anvil::evidence {

Result<Journal> Journal::open(const std::string& path) {
  return Journal(TRY(base::AppendFile::open(path)));
}

Result<void> Journal::reopen(const std::string& path) {
  file_ = TRY(base::AppendFile::open(path));
  return {};
}

Result<void> Journal::append(std::string_view event, std::string_view step, Json data) {
  const base::WallAnchor now = base::wall_anchor();
  const Json line{{"seq", seq_},         {"event", event},      {"step", step},
                  {"mono_ns", now.mono}, {"wall_ns", now.wall}, {"data", std::move(data)},
                  {"prev", head_}};
  const std::string bytes = base::canonical(line) + "\n";
  const uint64_t before = file_.size();
  auto done = file_.append(bytes);
  if (done) done = file_.sync();
  if (!done) {
    // A piece of a line would end the chain for every reader.
    if (truncate(file_.path().c_str(), static_cast<off_t>(before)) != 0)
      return fail(std::move(done).error().with_context("the journal is torn"));
    if (auto reopened = reopen(file_.path()); !reopened) return reopened;
    return done;
  }
  head_ = base::sha256(bytes);
  ++seq_;
  return {};
}

}  // namespace anvil::evidence
