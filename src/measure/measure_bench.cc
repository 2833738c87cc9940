#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <thread>

#include "measure/client.h"
#include "measure/prompts.h"
#include "measure/recorder.h"

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

double thread_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
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
    const double before = thread_cpu_seconds();
    const auto rows = client.run(std::move(attempts), kStreams, cancel);
    const double spent = thread_cpu_seconds() - before;
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

// The same path without sockets.
void BM_RecorderPerEvent(benchmark::State& state) {
  const Limits limits;
  const std::string event = chunk(kEvent);
  int64_t events = 0;
  for (auto _ : state) {
    evidence::RequestRow row;
    Recorder recorder(limits);
    recorder.begin(row);
    row.stamps.sent = 1;
    recorder.on_bytes(kHead, 2);
    for (int i = 0; i < kEvents; ++i) recorder.on_bytes(event, 3 + i);
    recorder.on_bytes(chunk(kDone) + "0\r\n\r\n", 3 + kEvents);
    benchmark::DoNotOptimize(row.chunks.data());
    events += kEvents;
  }
  state.SetItemsProcessed(events);
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
