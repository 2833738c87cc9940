#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace anvil::measure {

// The next moment at which each of many things has to be looked at: one entry per id, a binary heap
// with the place of each id beside it. Moving an entry costs log n and allocates only when an id
// larger than all before it comes. Thread: the owner's.
class DeadlineHeap {
 public:
  static constexpr Nanos kNever = std::numeric_limits<Nanos>::max();

  // kNever removes the entry.
  void set(uint32_t id, Nanos at) {
    if (id >= place_.size()) {
      place_.resize(id + 1, kNowhere);
      heap_.reserve(place_.capacity());
    }
    uint32_t place = place_[id];
    if (place == kNowhere) {
      if (at == kNever) return;
      place = static_cast<uint32_t>(heap_.size());
      heap_.push_back({at, id});
      place_[id] = place;
      rise(place);
      return;
    }
    if (at == kNever) return remove(place);
    const Nanos before = std::exchange(heap_[place].at, at);
    if (at < before)
      rise(place);
    else
      sink(place);
  }
  Nanos at(uint32_t id) const {
    return id < place_.size() && place_[id] != kNowhere ? heap_[place_[id]].at : kNever;
  }
  bool empty() const { return heap_.empty(); }
  Nanos next() const { return heap_.empty() ? kNever : heap_.front().at; }
  uint32_t next_id() const { return heap_.front().id; }  // not when empty

 private:
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();
  struct Entry {
    Nanos at;
    uint32_t id;
  };

  void put(uint32_t place, Entry entry) {
    heap_[place] = entry;
    place_[entry.id] = place;
  }
  void rise(uint32_t place) {
    const Entry entry = heap_[place];
    while (place > 0) {
      const uint32_t parent = (place - 1) / 2;
      if (heap_[parent].at <= entry.at) break;
      put(place, heap_[parent]);
      place = parent;
    }
    put(place, entry);
  }
  void sink(uint32_t place) {
    const Entry entry = heap_[place];
    for (;;) {
      size_t child = size_t{place} * 2 + 1;
      if (child >= heap_.size()) break;
      if (child + 1 < heap_.size() && heap_[child + 1].at < heap_[child].at) ++child;
      if (heap_[child].at >= entry.at) break;
      put(place, heap_[child]);
      place = static_cast<uint32_t>(child);
    }
    put(place, entry);
  }
  void remove(uint32_t place) {
    place_[heap_[place].id] = kNowhere;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (place == heap_.size()) return;
    put(place, last);
    rise(place);
    sink(place_[last.id]);
  }

  std::vector<Entry> heap_;
  std::vector<uint32_t> place_;
};

}  // namespace anvil::measure
