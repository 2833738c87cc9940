#include "engine/failure.h"

#include <gtest/gtest.h>

#include <csignal>
#include <set>

#include "engine/interface_rules.h"
#include "engine/test_recipe.h"

namespace anvil::engine {
namespace {

struct LineCase {
  const char* table;
  const char* phase;
  const char* line;
  const char* klass;
};

// One line for every cause of every shipped table; the same line may serve several.
const LineCase kLines[] = {
    // llama.cpp: as the server prints them
    {"llama.cpp", "weights",
     "0.00.008.456 E gguf_init_from_file: failed to open GGUF file '/tmp/none.gguf' (No such file "
     "or directory)",
     "model_missing"},
    {"llama.cpp", "weights",
     "0.00.219.142 E llama_model_load: error loading model: tensor 'token_embd.weight' data is not "
     "within the file bounds, model is corrupted or incomplete",
     "model_corrupt"},
    {"llama.cpp", "weights",
     "0.00.010.268 E gguf_init_from_reader: invalid magic characters: 'D??]', expected 'GGUF'",
     "model_corrupt"},
    {"llama.cpp", "start",
     "0.00.004.773 E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, "
     "port: 18979",
     "port_in_use"},
    {"llama.cpp", "weights",
     "0.05.831.462 E ggml_aligned_malloc: insufficient memory (attempted to allocate 23437.50 MB)",
     "oom_host"},
    {"llama.cpp", "weights",
     "0.05.862.952 E llama_init_from_model: failed to initialize the context: failed to allocate "
     "buffer for kv cache",
     "oom_host"},
    {"llama.cpp", "weights",
     "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 98304.00 MiB on device 0: cudaMalloc "
     "failed: out of memory",
     "oom_device"},
    {"llama.cpp", "start", "error: invalid argument: --no-such-flag", "bad_flag"},
    {"llama.cpp", "start",
     "error while handling argument \"-c\": invalid literal for int() with base 10: 'x'",
     "bad_flag"},
    {"llama.cpp", "start", "llama-server: error: the following arguments are required: -m",
     "bad_flag"},
    {"llama.cpp", "weights",
     "llama_model_load: error loading model: unknown model architecture: 'gemma9'",
     "model_unsupported"},
    {"llama.cpp", "context", "srv    load_model: failed to load draft model, '/d.gguf'",
     "draft_model"},
    {"llama.cpp", "context", "common_chat_templates_init: failed to initialize chat template",
     "template"},
    {"llama.cpp", "ready", "CUDA error: an illegal memory access was encountered", "device_fault"},
    {"llama.cpp", "weights", "0.00.010.399 E llama_model_load: error loading model: something new",
     "model_load"},
    // Causes that no engine owns
    {"llama.cpp", "start",
     "llama-server: error while loading shared libraries: libcudart.so.13: cannot open shared "
     "object file: No such file or directory",
     "missing_library"},
    {"llama.cpp", "start",
     "llama-server: /lib/libc.so.6: version `GLIBC_2.38' not found (required by llama-server)",
     "missing_library"},
    {"vllm-0.32", "start", "ModuleNotFoundError: No module named 'vllm'", "missing_module"},
    {"vllm-0.32", "start", "/bin/sh: /usr/bin/vllm: /opt/py/bin/python: bad interpreter: No such",
     "bad_interpreter"},
    {"vllm-0.32", "start",
     "OSError: [Errno 98] error while attempting to bind on address ('127.0.0.1', 8000): address "
     "already in use",
     "port_in_use"},
    {"vllm-0.32", "ready", "OSError: [Errno 24] Too many open files: '/dev/shm/x'", "fd_limit"},
    {"vllm-0.32", "weights", "OSError: [Errno 28] No space left on device", "disk_full"},
    {"vllm-0.32", "kv",
     "RuntimeError: unable to open shared memory object </torch_1> in read-write",
     "shm_small_or_stale"},
    {"vllm-0.32", "start", "PermissionError: [Errno 13] Permission denied: '/models'",
     "permission"},
    {"vllm-r16", "start",
     "docker: Error response from daemon: error setting rlimit type 8: operation not permitted",
     "memlock_refused"},
    {"vllm-r16", "start", "Error response from daemon: manifest unknown", "image_pull"},
    {"vllm-0.32", "start",
     "RuntimeError: CUDA driver version is insufficient for CUDA runtime version", "driver_old"},
    {"vllm-0.32", "start", "RuntimeError: Found no NVIDIA driver on your system.", "no_gpu"},
    {"vllm-0.32", "start", "ValueError: invalid literal for int() with base 10: 'GPU-1234'",
     "gpu_uuid"},
    {"vllm-0.32", "profile",
     "RuntimeError: CUDA error: no kernel image is available for execution on the device", "arch"},
    {"vllm-0.32", "kv", "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory",
     "host_oom"},
    // vLLM
    {"vllm-0.32", "kv",
     "(EngineCore pid=357) ERROR 07-29 14:43:33 [core.py:708] ValueError: To serve at least one "
     "request with the models's max seq len (131072), (7.48 GiB KV cache is needed, which is "
     "larger "
     "than the available KV cache memory (7.33 GiB). Based on the available memory, the estimated "
     "maximum model length is 128448.",
     "kv_gate_short"},
    {"vllm-0.32", "kv", "ValueError: No available memory for the cache blocks.", "kv_none"},
    {"vllm-0.32", "start",
     "ValueError: Free memory on device (70.1/95.59 GiB) on startup is less than desired GPU "
     "memory "
     "utilization (0.95, 90.81 GiB).",
     "vram_busy"},
    {"vllm-0.32", "weights", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
     "oom_load"},
    {"vllm-0.32", "graphs", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
     "oom_profile"},
    {"vllm-0.32", "ready", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
     "oom_first_request"},
    {"vllm-0.32", "ready", "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling",
     "oom_first_request"},
    {"vllm-0.32", "start",
     "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
     "nccl_p2p"},
    {"vllm-0.32", "start", "RuntimeError: NCCL error: unhandled system error", "nccl_net"},
    {"vllm-0.32", "graphs", "RuntimeError: NCCL error: Failed to CUDA calloc 4194304 bytes",
     "nccl_oom"},
    {"vllm-0.32", "weights", "TimeoutError: Timed out waiting for engine core processes to start",
     "start_timeout"},
    {"vllm-0.32", "start", "huggingface_hub.errors.OfflineModeIsEnabled: Cannot reach hub",
     "offline_missing"},
    {"vllm-0.32", "start", "huggingface_hub.errors.GatedRepoError: 403 Client Error.", "gated"},
    {"vllm-0.32", "start", "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error.",
     "not_found"},
    {"vllm-0.32", "start",
     "ValueError: Invalid repository ID or local directory specified: '/nowhere'.",
     "model_missing"},
    {"vllm-0.32", "start", "ValueError: Please pass the argument `trust_remote_code=True`.",
     "trust_code"},
    {"vllm-0.32", "start", "ValueError: No valid attention backend found for cuda with",
     "no_backend"},
    {"vllm-0.32", "weights",
     "ValueError: MTP speculative decoding layer 61 weights missing from checkpoint",
     "spec_weights"},
    {"vllm-0.32", "weights",
     "AssertionError: Tried to load weights of size torch.Size([1]) to a parameter of size",
     "checkpoint_mismatch"},
    {"vllm-0.32", "weights",
     "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
     "model_corrupt"},
    {"vllm-0.32", "start", "pydantic: Model architectures ['X'] are not supported for now.",
     "model_unsupported"},
    {"vllm-0.32", "start", "vllm: error: unrecognized arguments: --max-model-length 4096",
     "bad_flag"},
    {"vllm-0.32", "start",
     "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
     "config_rejected"},
    {"vllm-0.32", "start", "RuntimeError: UVA is not available", "wsl_pin"},
    {"vllm-0.32", "ready", "torch.AcceleratorError: CUDA error: an illegal memory access was",
     "device_fault"},
    {"vllm-0.32", "profile", "RuntimeError: Worker_TP1 exited unexpectedly with signal 9",
     "host_oom"},
    {"vllm-0.32", "ready", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered",
     "engine_dead"},
    // The image line
    {"vllm-r16", "ready", "ERROR Skipping unknown DSpark weight mtp.0.shared_experts",
     "drafter_partial"},
    {"vllm-r16", "start", "ValueError: num_speculative_tokens:7 must be divisible by n_predict=5",
     "spec_depth"},
    // SGLang
    {"sglang", "weights",
     "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static. Current value",
     "sgl_kv_none"},
    {"sglang", "weights", "torch.OutOfMemoryError: CUDA out of memory.", "oom_load"},
    {"sglang", "graphs", "Exception: Capture cuda graph failed: CUDA out of memory", "oom_profile"},
    {"sglang", "ready", "torch.OutOfMemoryError: CUDA out of memory.", "oom_first_request"},
    {"sglang", "start", "launch_server.py: error: unrecognized arguments: --tpsize 2", "bad_flag"},
    {"sglang", "ready", "Scheduler hit an exception: Traceback", "engine_dead"},
    {"sglang", "start", "RuntimeError: NCCL error: unhandled cuda error", "nccl_p2p"},
    {"sglang", "start", "RuntimeError: NCCL error: unhandled system error", "nccl_net"},
    {"sglang", "start", "RuntimeError: Failed to CUDA calloc", "nccl_oom"},
    {"sglang", "start", "huggingface_hub.errors.LocalEntryNotFoundError: x", "offline_missing"},
    {"sglang", "start", "Access to model o/n is restricted", "gated"},
    {"sglang", "start", "o/n is not a local folder and is not a valid model identifier",
     "not_found"},
    {"sglang", "start", "OSError: /m does not appear to have a file named config.json",
     "model_missing"},
    {"sglang", "start", "ValueError: trust_remote_code=True", "trust_code"},
    {"sglang", "start", "No valid attention backend found for", "no_backend"},
    {"sglang", "weights", "RuntimeError: size mismatch for lm_head", "checkpoint_mismatch"},
    {"sglang", "weights", "SafetensorError: incomplete metadata, file not fully covered",
     "model_corrupt"},
    {"sglang", "start", "ValueError: Unknown architecture X", "model_unsupported"},
    {"sglang", "ready", "CUDA error: an illegal memory access", "device_fault"},
};

TEST(Failures, EveryLineHasItsClass) {
  for (const LineCase& c : kLines) {
    const Failure failure =
        classify(shipped_table(c.table), {"an ordinary line", c.line}, Ending{.code = 1}, c.phase);
    EXPECT_EQ(failure.klass, c.klass) << c.line;
    EXPECT_EQ(failure.line, c.line);
    EXPECT_EQ(failure.phase, c.phase);
    EXPECT_FALSE(failure.hint.empty()) << c.klass;
  }
}

TEST(Failures, EveryClassHasALine) {
  std::set<std::pair<std::string, std::string>> tested;
  std::set<std::string> anywhere;
  for (const LineCase& c : kLines) {
    tested.emplace(c.table, c.klass);
    anywhere.insert(c.klass);
  }
  for (const std::string& name : InterfaceTable::shipped()) {
    const InterfaceTable table = shipped_table(name);
    for (const FailureRule& rule : table.rules().failures) {
      EXPECT_TRUE(rule.wrapper || anywhere.contains(rule.klass)) << name << " " << rule.klass;
    }
  }
  // An engine's own rules are tested against its own table.
  for (const char* name : {"llama.cpp", "vllm-0.32", "sglang"}) {
    const size_t common = shipped_table("openai").rules().failures.size();
    const InterfaceTable table = shipped_table(name);
    const auto& rules = table.rules().failures;
    for (size_t i = 0; i + common < rules.size(); ++i) {
      if (rules[i].wrapper) continue;
      EXPECT_TRUE(tested.contains({name, rules[i].klass})) << name << " " << rules[i].klass;
    }
  }
}

TEST(Failures, TheFirstCauseCountsAndWrappersNever) {
  const Failure failure = classify(
      shipped_table("vllm-0.32"),
      {"(EngineCore pid=1) INFO 07-29 14:43:33 [x.py:1] Starting to load model m",
       "(EngineCore pid=1) ERROR 07-29 14:43:33 [x.py:1] EngineCore failed to start.",
       "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. "
       "Failed core proc(s): {'EngineCore': -9} signal 9",
       "(Worker_TP1 pid=3) ERROR [x.py:2] ValueError: No available memory for the cache blocks.",
       "(Worker_TP0 pid=2) ERROR [x.py:2] torch.OutOfMemoryError: CUDA out of memory"},
      Ending{.code = 1}, "kv");
  EXPECT_EQ(failure.klass, "kv_none");
}

TEST(Failures, AHarmlessLineIsNotTheCauseOfADeath) {
  const InterfaceTable table = shipped_table("vllm-0.32");
  const std::string warning =
      "(APIServer pid=1) WARNING 11-30 17:44:43 [import_utils.py:1] Failed to import: "
      "libcuda.so.1: cannot open shared object file: No such file or directory";
  const std::string cause = "ValueError: No available memory for the cache blocks.";
  EXPECT_EQ(classify(table, {warning, cause}, Ending{.code = 1}, "kv").klass, "kv_none");
  Ending killed{.how = Ending::How::kSignalled};
  killed.signal = SIGKILL;
  EXPECT_EQ(classify(table, {warning}, killed, "kv").klass, "killed");
  EXPECT_EQ(classify(table, {warning}, Ending{.code = 1}, "kv").klass, "missing_library");
}

TEST(Failures, ABetterCauseBeatsALastResort) {
  const InterfaceTable table = shipped_table("llama.cpp");
  const std::string last = "E llama_model_load: error loading model: done_getting_tensors: what";
  EXPECT_EQ(classify(table, {last}, Ending{.code = 1}, "weights").klass, "model_load");
  EXPECT_EQ(
      classify(table, {last, "cudaMalloc failed: out of memory"}, Ending{.code = 1}, "weights")
          .klass,
      "oom_device");
}

TEST(Failures, TheSystemSpeaksWhenTheLogDoesNot) {
  const InterfaceTable table = shipped_table("llama.cpp");
  const auto by_signal = [&](int number) {
    Ending ending{.how = Ending::How::kSignalled};
    ending.signal = number;
    return classify(table, {"loading"}, ending, "weights");
  };
  EXPECT_EQ(by_signal(SIGKILL).klass, "killed");
  EXPECT_EQ(by_signal(SIGKILL).line, "killed by signal 9 (SIGKILL)");
  EXPECT_EQ(by_signal(SIGSEGV).klass, "crashed");
  EXPECT_EQ(by_signal(SIGILL).klass, "illegal_instruction");
  EXPECT_EQ(by_signal(SIGTERM).klass, "killed");
  EXPECT_EQ(classify(table, {}, Ending{.code = 127}, "start").klass, "missing_program");
  EXPECT_EQ(classify(table, {}, Ending{.how = Ending::How::kStuck}, "weights").klass, "stuck");
  EXPECT_EQ(classify(table, {}, Ending{.how = Ending::How::kCeiling}, "weights").klass,
            "start_ceiling");
  EXPECT_EQ(classify(table, {"cudaMalloc failed: out of memory"},
                     Ending{.how = Ending::How::kStuck}, "weights")
                .klass,
            "oom_device");
  EXPECT_EQ(classify(table, {"cudaMalloc failed: out of memory"},
                     Ending{.how = Ending::How::kCancelled}, "weights")
                .klass,
            "cancelled");
}

TEST(Failures, TheUnclassifiedKeepTheirLastLines) {
  std::vector<std::string> lines;
  for (int i = 0; i < 30; ++i) lines.push_back("line " + std::to_string(i));
  const Failure failure = classify(shipped_table("llama.cpp"), lines, Ending{.code = 3}, "weights");
  EXPECT_EQ(failure.klass, "unclassified");
  EXPECT_EQ(failure.line.substr(0, 8), "line 10\n");
  EXPECT_EQ(failure.line.substr(failure.line.size() - 7), "line 29");
  EXPECT_NE(failure.hint.find("exited with code 3"), std::string::npos);
  EXPECT_EQ(classify(shipped_table("llama.cpp"), {}, Ending{}, "start").line, "exited with code 0");
}

}  // namespace
}  // namespace anvil::engine
