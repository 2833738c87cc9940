#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "wire/chunked.h"
#include "wire/sse.h"
#include "wire/stream_decoder.h"

namespace anvil::wire {
namespace {

constexpr int kEvents = 1000;

// What llama.cpp's server sends for one token.
std::string token_event(int index, bool timings) {
  std::string data =
      R"({"choices":[{"finish_reason":null,"index":0,"delta":{"content":" token)" +
      std::to_string(index % 10) +
      R"("}}],"created":1796000000,"id":"chatcmpl-XUjLyVXfZtCBBDqYE8TUBU0gXl0Pb2Cm","model":"gemma-3-270m",)"
      R"("system_fingerprint":"b11434-0123456","object":"chat.completion.chunk")";
  if (timings) {
    data +=
        R"(,"timings":{"cache_n":0,"prompt_n":23,"prompt_ms":130.557,"prompt_per_token_ms":5.676,)"
        R"("prompt_per_second":176.168,"predicted_n":)" +
        std::to_string(index) +
        R"(,"predicted_ms":38.462,"predicted_per_token_ms":38.462,"predicted_per_second":25.99})";
  }
  return "data: " + data + "}\n\n";
}

// The whole body, one chunk for each event.
std::string stream(bool timings) {
  std::string body;
  const auto add = [&](const std::string& piece) {
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    body += size + piece + "\r\n";
  };
  for (int i = 0; i < kEvents - 1; ++i) add(token_event(i, timings));
  add("data: [DONE]\n\n");
  return body + "0\r\n\r\n";
}

// Argument 0: bytes that arrive at once (0 = one event), argument 1: timings in every event.
void BM_ChunkedSseDecode(benchmark::State& state) {
  const bool timings = state.range(1) != 0;
  const std::string body = stream(timings);
  size_t at_once = static_cast<size_t>(state.range(0));
  if (at_once == 0) at_once = body.size() / kEvents;
  ChunkedDecoder chunked;
  SseSplitter sse;
  StreamDecoder decoder(Api::kChat);
  uint64_t output = 0;
  for (auto _ : state) {
    chunked.reset();
    sse.reset();
    decoder.reset(Api::kChat);
    for (size_t at = 0; at < body.size(); at += at_once) {
      std::string_view input = std::string_view(body).substr(at, at_once);
      while (!input.empty()) {
        const auto step = chunked.next(input);
        if (!step) return state.SkipWithError("chunked");
        input.remove_prefix(step->consumed);
        const auto fed = sse.feed(step->payload, [&](const SseEvent& event) -> Result<void> {
          output += TRY(decoder.on_event(event.event, event.data)).content_bytes;
          return {};
        });
        if (!fed) return state.SkipWithError("event");
      }
    }
    if (!decoder.done()) return state.SkipWithError("not done");
  }
  benchmark::DoNotOptimize(output);
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
  state.counters["ns_per_event"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kEvents / 1e9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_ChunkedSseDecode)->ArgsProduct({{0, 100, 65536}, {0, 1}});

void BM_Chunked(benchmark::State& state) {
  const std::string body = stream(false);
  ChunkedDecoder chunked;
  for (auto _ : state) {
    chunked.reset();
    std::string_view input(body);
    size_t payload = 0;
    while (!input.empty()) {
      const auto step = chunked.next(input);
      input.remove_prefix(step->consumed);
      payload += step->payload.size();
    }
    benchmark::DoNotOptimize(payload);
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
}
BENCHMARK(BM_Chunked);

void BM_Sse(benchmark::State& state) {
  std::string body;
  for (int i = 0; i < kEvents; ++i) body += token_event(i, false);
  SseSplitter sse;
  for (auto _ : state) {
    size_t data = 0;
    benchmark::DoNotOptimize(sse.feed(body, [&](const SseEvent& event) -> Result<void> {
      data += event.data.size();
      return {};
    }));
    benchmark::DoNotOptimize(data);
  }
  state.SetItemsProcessed(state.iterations() * kEvents);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(body.size()));
}
BENCHMARK(BM_Sse);

void BM_Decode(benchmark::State& state) {
  const std::string event = token_event(7, state.range(0) != 0);
  const std::string data = event.substr(6, event.size() - 8);
  StreamDecoder decoder(Api::kChat);
  for (auto _ : state) {
    benchmark::DoNotOptimize(decoder.on_event("", data));
    if (decoder.answer().content.size() > (1u << 20)) decoder.reset(Api::kChat);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_Decode)->Arg(0)->Arg(1);

void BM_ParseAnswer(benchmark::State& state) {
  const std::string body =
      R"({"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":")" +
      std::string(4096, 'a') +
      R"("}}],"id":"x","usage":{"prompt_tokens":5,"completion_tokens":900}})";
  for (auto _ : state) benchmark::DoNotOptimize(parse_answer(Api::kChat, body));
}
BENCHMARK(BM_ParseAnswer);

}  // namespace
}  // namespace anvil::wire
