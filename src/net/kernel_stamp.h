#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>

#include "base/clock.h"

namespace anvil::net {

// Turns the kernel's receive stamps, which are on CLOCK_REALTIME, into CLOCK_MONOTONIC. The
// difference of the two clocks is the best of 100 tries, and is taken again when the last one is a
// second old or a quick look shows that somebody has set the clock. Thread: the owner's.
class KernelClock {
 public:
  KernelClock();
  // Call before each batch of reads; costs two clock readings.
  void keep_fresh();
  Nanos to_mono(const timespec& wall) const;

 private:
  void measure();

  Nanos offset_ = 0;  // realtime minus monotonic
  Nanos measured_ = 0;
};

// Asks the kernel to stamp what arrives on the socket from now on. Where it refuses, receive()
// falls back to our own clock.
void enable_receive_stamps(int fd);

// What one read of a socket gave.
struct Received {
  ssize_t bytes = 0;    // -1: see `error`; 0: the peer has closed
  int error = 0;        // errno
  Nanos at = 0;         // when the last of these bytes arrived
  Nanos returned = 0;   // when the read returned, by our clock
  bool kernel = false;  // `at` is the kernel's stamp; otherwise it is `returned`
};

// Reads without blocking. A stamp from the future or from more than a minute ago, which a step of
// the wall clock can make, is not believed.
Received receive(int fd, char* into, size_t size, const KernelClock& clock);

// Bytes that wait in the socket's receive queue; 0 where the system does not say.
uint64_t receive_queue_bytes(int fd);

// What the transport had to repair so far. Zero for sockets other than TCP.
struct TransportTrouble {
  uint32_t retransmits = 0;   // segments that we sent again
  uint32_t out_of_order = 0;  // segments that reached us out of order: losses on the peer's side
};
TransportTrouble transport_trouble(int fd);

}  // namespace anvil::net
