#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "scripted/answer.h"
#include "scripted/engine.h"
#include "scripted/ledger.h"
#include "scripted/plan.h"
#include "scripted/request.h"
#include "scripted/transport.h"
#include "wire/chunked.h"
#include "wire/request_head.h"

namespace anvil::scripted {

// One answer in progress. The loop's thread.
struct Exchange {
  Request request;
  Plan plan;
  AnswerState state;
  LedgerEntry entry;
  size_t next = 0;  // step
  bool has_slot = false;
  bool keep_alive = true;
  bool chunked = true;
  bool all_sent = false;  // every step was taken; only unsent bytes are left
  Nanos not_before = 0;   // steps behind one that was cut into pieces wait for its end

  // Events that are written but kept back: gathered, buffered or cut.
  struct Held {
    size_t event;  // in entry.events; SIZE_MAX if the entry keeps none
    size_t end;    // in held
  };
  std::string held;
  size_t released = 0;  // bytes of held that left
  size_t next_cut = 0;  // index into split_at
  std::vector<Held> held_events;
  std::vector<uint32_t> held_places;  // of write stamps in held

  const Stream& stream() const { return *state.stream; }
  size_t waiting_bytes() const { return held.size() - released; }
  bool cuts() const { return !stream().split_at.empty() || stream().split_every > 0; }
};

// One accepted connection. The loop's thread.
struct Connection {
  enum class Phase { kHead, kBody, kAnswer };

  Transport transport;
  uint64_t key = 0;    // place in the loop and generation
  int64_t number = 0;  // in the order in which the server accepted
  Phase phase = Phase::kHead;
  uint32_t watched = 0;  // epoll events
  bool tls = false;
  bool closing = false;    // to be closed when what is unsent has left
  bool pause_due = false;  // a step is due, but too much is unsent
  Nanos timer = 0;         // when the next step is due; 0: no timer

  std::string in;     // received, not yet taken
  Nanos arrived = 0;  // when the last byte of it came in
  wire::RequestHeadParser parser;
  wire::ChunkedDecoder chunks;
  std::string body;  // of a chunked request, as far as it came
  // Of the head of the request in progress.
  std::string method, path, id;
  bool authorised = false, keep_alive = true, chunked = false, old = false;  // old: HTTP/1.0
  size_t length = 0;

  std::unique_ptr<Exchange> exchange;

  std::string unsent;             // the socket had no room for it
  uint64_t queued = 0, sent = 0;  // bytes handed to the transport, and taken by it
  struct Pending {
    size_t event;  // in exchange->entry.events
    uint64_t end;  // in terms of `queued`
  };
  std::vector<Pending> pending;  // events whose last byte has not left
};

}  // namespace anvil::scripted
