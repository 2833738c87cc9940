#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <new>
#include <set>
#include <thread>

#include "measure/calibrate.h"
#include "measure/client.h"
#include "measure/prompts.h"
#include "measure/recorder.h"
#include "scripted/server.h"

namespace {
// Allocations of the threads that asked to be counted.
std::atomic<int64_t> allocations{0};
std::atomic<bool> counting{false};
}  // namespace

void* operator new(size_t size) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace anvil::measure {
namespace {

constexpr int kStreams = 64;
constexpr int kEvents = 1000;

const std::string kHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kEvent =
    "data: {\"id\":\"chatcmpl-7f0b8f5c2a6d4f0e9d3b1a5c7e9f1234\",\"object\":"
    "\"chat.completion.chunk\",\"created\":1764523247,\"model\":\"gemma-3-270m\",\"choices\":"
    "[{\"index\":0,\"delta\":{\"content\":\" lantern\"},\"logprobs\":null,"
    "\"finish_reason\":null}]}\n\n";
const std::string kDone = "data: [DONE]\n\n";

std::string chunk(const std::string& body) {
  char size[20];
  snprintf(size, sizeof size, "%zx\r\n", body.size());
  return size + body + "\r\n";
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(put));
  }
}

// Serves kStreams connections in rounds of one event each. `pace` is the time between rounds; with
// 0 the kernel coalesces whatever the client has not read yet.
void serve_once(int listener, Nanos pace) {
  std::vector<base::Fd> peers;
  for (int i = 0; i < kStreams; ++i) {
    peers.emplace_back(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    const int one = 1;
    setsockopt(peers.back().get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  for (const base::Fd& peer : peers) {
    char request[4096];
    if (recv(peer.get(), request, sizeof request, 0) <= 0) return;
    send_all(peer.get(), kHead);
  }
  const std::string event = chunk(kEvent);
  Nanos next = mono_now();
  for (int i = 0; i < kEvents; ++i) {
    for (const base::Fd& peer : peers) send_all(peer.get(), event);
    next += pace;
    const timespec until{static_cast<time_t>(next / kSecond), static_cast<long>(next % kSecond)};
    if (pace > 0) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  for (const base::Fd& peer : peers) send_all(peer.get(), chunk(kDone) + "0\r\n\r\n");
}

// CPU of the client's thread, user and system, per SSE event over loopback: reading, framing, SSE,
// JSON, stamps. The argument is the time between two events of a stream in microseconds.
void BM_ClientCpuPerEvent(benchmark::State& state) {
  const base::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  listen(listener.get(), kStreams);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  Client client({"http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), ""}, {});

  double cpu = 0;
  int64_t events = 0, reads = 0;
  for (auto _ : state) {
    std::thread server(serve_once, listener.get(), state.range(0) * kMicrosecond);
    std::vector<Attempt> attempts(kStreams);
    for (Attempt& attempt : attempts) attempt.body = R"({"model":"gemma-3-270m","stream":true})";
    const base::Cancel cancel;
    LoadReport report;
    const auto rows =
        client.run(std::move(attempts), {.concurrency = kStreams}, cancel, {}, &report);
    const double spent = static_cast<double>(report.cpu_ns) / 1e9;
    server.join();
    state.SetIterationTime(spent);
    cpu += spent;
    for (const evidence::RequestRow& row : rows) {
      if (row.outcome != evidence::Outcome::kOk) state.SkipWithError(row.error_detail.c_str());
      std::set<Nanos> stamps;
      for (const evidence::Chunk& c : row.chunks) stamps.insert(c.since_sent);
      events += static_cast<int64_t>(row.chunks.size());
      reads += static_cast<int64_t>(stamps.size());
    }
  }
  state.counters["us_per_event"] = cpu * 1e6 / static_cast<double>(events);
  state.counters["events_per_read"] = static_cast<double>(events) / static_cast<double>(reads);
}
BENCHMARK(BM_ClientCpuPerEvent)->Arg(0)->Arg(400)->Arg(1000)->UseManualTime()->Iterations(3);

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

double micros_at(std::vector<Nanos> values, double q) {
  if (values.empty()) return 0;
  const auto rank = static_cast<size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(rank),
                   values.end());
  return static_cast<double>(values[rank]) / 1e3;
}

scripted::Schedule many(Nanos gap, int64_t events) {
  scripted::Schedule schedule;
  schedule.name = "many";
  schedule.streams.emplace_back();
  schedule.streams[0].content_tokens = events;
  schedule.streams[0].first_at = gap;
  schedule.streams[0].gap = gap;
  return schedule;
}

std::vector<Attempt> chat_attempts(int count) {
  std::vector<Attempt> attempts(static_cast<size_t>(count));
  for (Attempt& attempt : attempts)
    attempt.body = R"({"model":"scripted","stream":true,"max_tokens":1000000,)"
                   R"("messages":[{"role":"user","content":"x"}]})";
  return attempts;
}

void count_load(benchmark::State& state, const std::vector<evidence::RequestRow>& rows,
                const LoadReport& report) {
  for (const evidence::RequestRow& row : rows)
    if (row.outcome != evidence::Outcome::kOk) state.SkipWithError(row.error_detail.c_str());
  state.counters["us_per_event"] =
      static_cast<double>(report.cpu_ns) / 1e3 / static_cast<double>(report.events);
  state.counters["events_per_read"] =
      static_cast<double>(report.events) / static_cast<double>(report.reads);
  state.counters["core_use"] =
      static_cast<double>(report.cpu_ns) / static_cast<double>(report.ended - report.began);
  state.counters["late_in_batch"] = static_cast<double>(report.late_in_batch);
  state.counters["lag_p99_us"] = static_cast<double>(report.loop_lag.quantile(0.99)) / 1e3;
}

// Many streams at once, one event per read, from the scripted engine on four threads of its own:
// what one event costs the client's one thread, and how far its stamps lie behind the moment before
// the engine's write. Arguments: streams, milliseconds between two events of a stream, seconds.
void BM_ManyStreams(benchmark::State& state) {
  const auto streams = static_cast<int>(state.range(0));
  const Nanos gap = state.range(1) * kMillisecond;
  scripted::Options options;
  options.threads = 4;
  options.ledger_events = 40'000'000;
  auto server = scripted::Server::start(many(gap, state.range(2) * kSecond / gap), options);
  if (!server) return state.SkipWithError(base::to_string(server.error()).c_str());
  Client client({(*server)->base_url(), ""}, {});
  LoadReport report;
  std::vector<evidence::RequestRow> rows;
  for (auto _ : state) {
    const base::Cancel cancel;
    rows = client.run(chat_attempts(streams),
                      {.concurrency = streams, .connections = Connections::kPool}, cancel, {},
                      &report);
    state.SetIterationTime(static_cast<double>(report.cpu_ns) / 1e9);
  }
  (*server)->stop();
  const auto ledger = (*server)->ledger();
  const ClientErrors errors = client_errors(rows, ledger);
  count_load(state, rows, report);
  state.counters["stamp_p50_us"] = micros_at(errors.stamp, 0.5);
  state.counters["stamp_p99_us"] = micros_at(errors.stamp, 0.99);
  state.counters["stamp_p999_us"] = micros_at(errors.stamp, 0.999);
  state.counters["server_late_p99_us"] = static_cast<double>(ledger.lateness.at(990)) / 1e3;
}
BENCHMARK(BM_ManyStreams)
    ->Args({256, 50, 3})
    ->Args({1024, 50, 3})
    ->Args({4096, 50, 3})
    ->Args({8000, 50, 5})
    ->UseManualTime()
    ->Iterations(1);

// More streams than one process has descriptors for both ends: the engine runs in a child.
void BM_ManyStreamsApart(benchmark::State& state) {
  const auto streams = static_cast<int>(state.range(0));
  const Nanos gap = state.range(1) * kMillisecond;
  int down[2], up[2];
  if (pipe(down) != 0 || pipe(up) != 0) return state.SkipWithError("pipe");
  const pid_t child = fork();
  if (child == 0) {
    close(down[1]);
    scripted::Options options;
    options.threads = 4;
    auto server = scripted::Server::start(many(gap, state.range(2) * kSecond / gap), options);
    const std::string url = server ? (*server)->base_url() : "";
    char byte = 0;
    if (write(up[1], url.data(), url.size()) < 0 || read(down[0], &byte, 1) < 0) _exit(1);
    _exit(0);
  }
  char url[100] = "";
  const ssize_t size = read(up[0], url, sizeof url - 1);
  Client client({size > 0 ? url : "nowhere", ""}, {});
  LoadReport report;
  std::vector<evidence::RequestRow> rows;
  for (auto _ : state) {
    const base::Cancel cancel;
    rows = client.run(chat_attempts(streams),
                      {.concurrency = streams, .connections = Connections::kPool}, cancel, {},
                      &report);
    state.SetIterationTime(static_cast<double>(report.cpu_ns) / 1e9);
  }
  for (const int fd : {down[0], down[1], up[0], up[1]}) close(fd);
  waitpid(child, nullptr, 0);
  count_load(state, rows, report);
}
BENCHMARK(BM_ManyStreamsApart)->Args({16000, 200, 5})->UseManualTime()->Iterations(1);

// What the client alone takes for a stream that is open and quiet: the engine is another process's
// matter, so its sockets are accepted here and never answered.
void BM_OpenStream(benchmark::State& state) {
  const auto streams = static_cast<size_t>(state.range(0));
  const base::Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address);
  listen(listener.get(), 4096);
  getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length);
  Client client({"http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)), ""}, {});
  double bytes = 0;
  for (auto _ : state) {
    std::vector<Attempt> attempts(streams);
    for (Attempt& attempt : attempts) attempt.body = R"({"model":"m","stream":true})";
    base::Cancel cancel;
    const int64_t before = resident_bytes();
    std::thread server([&] {
      std::vector<base::Fd> peers;
      peers.reserve(streams);
      const std::string first = kHead + chunk(kEvent);
      while (peers.size() < streams) {
        peers.emplace_back(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        send_all(peers.back().get(), first);
      }
      std::this_thread::sleep_for(std::chrono::seconds(2));
      bytes = static_cast<double>(resident_bytes() - before) / static_cast<double>(streams);
      cancel.request();
    });
    client.run(std::move(attempts), static_cast<int>(streams), cancel);
    server.join();
  }
  state.counters["rss_per_stream"] = bytes;
}
BENCHMARK(BM_OpenStream)->Arg(1000)->Arg(8000)->Iterations(1)->Unit(benchmark::kMillisecond);

// The same path without sockets.
void BM_RecorderPerEvent(benchmark::State& state) {
  const Limits limits;
  const std::string event = chunk(kEvent);
  Recorder recorder(limits);
  int64_t events = 0, counted = 0;
  for (auto _ : state) {
    evidence::RequestRow row;
    recorder.begin(row);
    row.stamps.sent = 1;
    recorder.on_bytes(kHead, 2);
    recorder.on_bytes(event, 3);
    allocations = 0;
    counting = true;
    for (int i = 1; i < kEvents; ++i) recorder.on_bytes(event, 3 + i);
    counting = false;
    counted = allocations;
    recorder.on_bytes(chunk(kDone) + "0\r\n\r\n", 3 + kEvents);
    benchmark::DoNotOptimize(row.chunks.data());
    events += kEvents;
  }
  state.SetItemsProcessed(events);
  state.counters["allocations_per_stream"] =
      static_cast<double>(counted);  // behind the first event
}
BENCHMARK(BM_RecorderPerEvent)->Unit(benchmark::kMicrosecond);

// Making a prompt whose tokens are counted by its spaces: the cost of our own side.
void BM_BuildPrompt(benchmark::State& state) {
  int stream = 0;
  for (auto _ : state) {
    PromptBuilder builder([](const std::string& text) -> Result<int64_t> {
      return std::count(text.begin(), text.end(), ' ');
    });
    PromptSpec spec;
    spec.target_tokens = state.range(0);
    spec.stream = std::to_string(stream++);
    benchmark::DoNotOptimize(builder.build(spec));
  }
}
BENCHMARK(BM_BuildPrompt)->Arg(4096)->Arg(131072)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace anvil::measure
