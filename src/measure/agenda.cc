#include "measure/agenda.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "measure/deadline_heap.h"

namespace anvil::measure {

namespace {
constexpr Nanos kNever = DeadlineHeap::kNever;
}

Result<AttemptLinks> AttemptLinks::build(const std::vector<Attempt>& attempts) {
  AttemptLinks out;
  out.first_.assign(attempts.size(), kNone);
  out.next_.assign(attempts.size(), kNone);
  // From the back, so that followers stand in the order of the list.
  for (size_t i = attempts.size(); i-- > 0;) {
    const int64_t after = attempts[i].after;
    if (after == kNone) continue;
    if (after < 0 || after >= static_cast<int64_t>(i))
      return fail(Kind::kInvalidInput, Side::kClient,
                  "attempt " + std::to_string(i) + " is to follow attempt " +
                      std::to_string(after) + ", which is not before it in the plan");
    const auto before = static_cast<size_t>(after);
    out.next_[i] = out.first_[before];
    out.first_[before] = static_cast<int32_t>(i);
  }
  return out;
}

LoadShare::LoadShare(const std::vector<Attempt>& attempts, AttemptLinks links,
                     const LoadOptions& options, size_t threads)
    : attempts_(attempts),
      links_(std::move(links)),
      limit_(std::max(options.concurrency, 1)),
      threads_(threads),
      wakers_(std::make_unique<Waker[]>(threads)) {
  for (uint32_t i = 0; i < attempts.size(); ++i)
    if (!attempts[i].at && attempts[i].after == AttemptLinks::kNone) undated_.push_back(i);
  for (size_t i = 0; i < threads; ++i)
    wakers_[i].event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

std::vector<uint32_t> LoadShare::dated_of(size_t thread) const {
  std::vector<uint32_t> out;
  size_t number = 0;
  for (uint32_t i = 0; i < attempts_.size(); ++i)
    if (attempts_[i].at && attempts_[i].after == AttemptLinks::kNone &&
        number++ % threads_ == thread)
      out.push_back(i);
  return out;
}

int LoadShare::share_of(size_t thread) const {
  const auto limit = static_cast<size_t>(limit_);
  return static_cast<int>(limit / threads_ + (thread < limit % threads_ ? 1 : 0));
}

bool LoadShare::take_place(size_t thread) {
  const auto try_now = [&] {
    int taken = in_flight_.load();
    while (taken < limit_)
      if (in_flight_.compare_exchange_weak(taken, taken + 1)) return true;
    return false;
  };
  if (try_now()) return true;
  // Whoever leaves between the try and the note did not see the note: so look once more.
  wakers_[thread].waits.store(true);
  return try_now();
}

void LoadShare::leave_place(size_t thread) {
  in_flight_.fetch_sub(1);
  for (size_t i = 0; i < threads_; ++i)
    if (i != thread && wakers_[i].waits.exchange(false)) wake(wakers_[i]);
}

std::optional<uint32_t> LoadShare::take_undated() {
  if (!has_undated()) return std::nullopt;
  const size_t next = next_undated_.fetch_add(1);
  if (next >= undated_.size()) return std::nullopt;
  return undated_[next];
}

void LoadShare::wake(Waker& waker) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t put = write(waker.event.get(), &one, sizeof one);
}

void LoadShare::drain_wake(size_t thread) {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(wakers_[thread].event.get(), &count, sizeof count);
}

void LoadShare::hold(Nanos now, Nanos until) {
  const std::lock_guard lock(mutex_);
  const Nanos before = held_until_.load();
  if (until <= before) return;
  held_in_all_ += until - std::max(before, now);
  held_until_.store(until);
}

Nanos LoadShare::held_in_all() const {
  const std::lock_guard lock(mutex_);
  return held_in_all_;
}

void LoadShare::stop(Error reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!reason_) reason_ = std::move(reason);
  }
  stopped_.store(true);
  for (size_t i = 0; i < threads_; ++i) wake(wakers_[i]);
}

Error LoadShare::stop_reason() const {
  const std::lock_guard lock(mutex_);
  return reason_.value_or(base::cancelled_error());
}

Agenda::Agenda(LoadShare& share, size_t thread)
    : share_(share), thread_(thread), undated_share_(share.share_of(thread)) {}

void Agenda::begin(Nanos start) {
  start_ = start;
  for (const uint32_t index : share_.dated_of(thread_))
    dated_.push_back({start + *share_.attempts()[index].at, index});
  std::make_heap(dated_.begin(), dated_.end(), std::greater<>());
}

void Agenda::schedule(Nanos due, uint32_t index) {
  dated_.push_back({due, index});
  std::push_heap(dated_.begin(), dated_.end(), std::greater<>());
}

void Agenda::collect_due(Nanos now) {
  const bool held = share_.held_until() > now;
  while (!dated_.empty() && dated_.front().due <= now) {
    std::pop_heap(dated_.begin(), dated_.end(), std::greater<>());
    ready_.push_back(dated_.back());
    ready_.back().waited = held;
    dated_.pop_back();
  }
}

std::optional<Agenda::Start> Agenda::take(Nanos now) {
  collect_due(now);
  if (share_.held_until() > now) {
    for (Entry& entry : ready_) entry.waited = true;
    return std::nullopt;
  }
  if (!ready_.empty()) {
    if (!share_.take_place(thread_)) {
      for (; counted_ < ready_.size(); ++counted_) {
        ++limit_hits_;
        ready_[counted_].waited = true;
      }
      return std::nullopt;
    }
    const Entry entry = ready_.front();
    ready_.pop_front();
    if (counted_ > 0) --counted_;
    ++in_flight_;
    return Start{entry.index, entry.due, true, entry.waited};
  }
  if (in_flight_ >= undated_share_ || !share_.has_undated() || !share_.take_place(thread_))
    return std::nullopt;
  const std::optional<uint32_t> index = share_.take_undated();
  if (!index) {
    share_.leave_place(thread_);
    return std::nullopt;
  }
  ++in_flight_;
  return Start{*index, now, false, false};
}

void Agenda::ended(uint32_t index, Nanos at) {
  --in_flight_;
  share_.leave_place(thread_);
  const AttemptLinks& links = share_.links();
  for (int32_t next = links.first_follower(index); next != AttemptLinks::kNone;
       next = links.next_follower(static_cast<size_t>(next))) {
    const Attempt& attempt = share_.attempts()[static_cast<size_t>(next)];
    const Nanos due = std::max(at + attempt.think, start_ + attempt.at.value_or(0));
    schedule(due, static_cast<uint32_t>(next));
  }
}

Nanos Agenda::next_due(Nanos now) const {
  const Nanos next = dated_.empty() ? kNever : dated_.front().due;
  const Nanos held = share_.held_until();
  if (held <= now) return next;  // what waits for a place is woken
  const bool waits = !ready_.empty() || (in_flight_ < undated_share_ && share_.has_undated());
  return waits ? held : std::max(next, held);
}

bool Agenda::idle() const {
  return in_flight_ == 0 && dated_.empty() && ready_.empty() && !share_.has_undated();
}

}  // namespace anvil::measure
