#include <benchmark/benchmark.h>

#include <string>

#include "wire/chat_request.h"
#include "wire/gguf.h"
#include "wire/http_head.h"
#include "wire/prometheus.h"

namespace anvil::wire {
namespace {

void BM_ResponseHead(benchmark::State& state) {
  const std::string head =
      "HTTP/1.1 200 OK\r\nServer: uvicorn\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
      "Cache-Control: no-cache\r\nX-Request-Id: 0123456789abcdef\r\n"
      "Access-Control-Allow-Origin: *\r\nTransfer-Encoding: chunked\r\n\r\n";
  ResponseHeadParser parser;
  for (auto _ : state) {
    parser.reset();
    benchmark::DoNotOptimize(parser.parse(head));
  }
}
BENCHMARK(BM_ResponseHead);

void BM_RequestHead(benchmark::State& state) {
  const HeaderField fields[] = {{"Content-Type", "application/json"},
                                {"Content-Length", "1234"},
                                {"Authorization", "Bearer 0123456789"}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        request_head("POST", "/v1/chat/completions", "127.0.0.1:8000", fields));
  }
}
BENCHMARK(BM_RequestHead);

void BM_ChatBody(benchmark::State& state) {
  GenerationRequest request;
  request.model = "m";
  request.messages = {{.role = "user", .content = std::string(4096, 'a')}};
  request.max_tokens = 64;
  for (auto _ : state) benchmark::DoNotOptimize(to_body(request));
}
BENCHMARK(BM_ChatBody);

void BM_Prometheus(benchmark::State& state) {
  std::string text;
  for (int i = 0; i < 500; ++i) {
    text += "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"" + std::to_string(i) +
            "\",model_name=\"m\"} " + std::to_string(i * 3) + ".0\n";
  }
  for (auto _ : state) benchmark::DoNotOptimize(parse_prometheus(text));
  state.SetItemsProcessed(state.iterations() * 500);
}
BENCHMARK(BM_Prometheus);

void BM_Gguf(benchmark::State& state) {
  std::string file = "GGUF";
  const auto number = [&](uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) file += static_cast<char>(value >> (8 * i));
  };
  const auto text = [&](std::string_view value) {
    number(value.size(), 8);
    file += value;
  };
  const uint64_t tokens = 100'000;
  number(3, 4), number(0, 8), number(1, 8);
  text("tokenizer.ggml.tokens");
  number(9, 4), number(8, 4), number(tokens, 8);
  for (uint64_t i = 0; i < tokens; ++i) text("token");
  for (auto _ : state) benchmark::DoNotOptimize(parse_gguf(file));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(file.size()));
}
BENCHMARK(BM_Gguf);

}  // namespace
}  // namespace anvil::wire
