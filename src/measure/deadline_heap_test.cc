#include "measure/deadline_heap.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace anvil::measure {
namespace {

TEST(DeadlineHeap, AgreesWithAMapOverManyMoves) {
  std::mt19937 random(7);
  DeadlineHeap heap;
  std::map<uint32_t, Nanos> model;
  for (int step = 0; step < 20'000; ++step) {
    const uint32_t id = random() % 50;
    if (random() % 4 == 0) {
      heap.set(id, DeadlineHeap::kNever);
      model.erase(id);
    } else {
      const Nanos at = random() % 1000;
      heap.set(id, at);
      model[id] = at;
    }
    ASSERT_EQ(heap.empty(), model.empty());
    Nanos earliest = DeadlineHeap::kNever;
    for (const auto& [key, at] : model) earliest = std::min(earliest, at);
    ASSERT_EQ(heap.next(), earliest);
    if (!model.empty()) {
      ASSERT_EQ(model.at(heap.next_id()), earliest);
    }
    ASSERT_EQ(heap.at(id), model.count(id) ? model[id] : DeadlineHeap::kNever);
  }
}

}  // namespace
}  // namespace anvil::measure
