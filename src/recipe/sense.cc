#include "recipe/sense.h"

#include <set>

#include "base/hash.h"
#include "base/strings.h"

namespace anvil::recipe {

namespace {
std::string count(int64_t value) {
  return std::to_string(value);
}

std::string indexed(std::string_view path, size_t index, std::string_view key = {}) {
  std::string out = std::string(path) + "[" + std::to_string(index) + "]";
  if (!key.empty()) out += "." + std::string(key);
  return out;
}

size_t length(const Recipe& recipe, std::string_view path) {
  const Json& value = recipe.at(path);
  return value.is_array() ? value.size() : 0;
}
}  // namespace

void Findings::error(std::string_view key, std::string problem, std::string remedy) {
  diagnostics_.push_back(
      {Diagnostic::Severity::kError, recipe_.position(key), std::move(problem), std::move(remedy)});
}

void Findings::warning(std::string_view key, std::string problem, std::string remedy) {
  diagnostics_.push_back({Diagnostic::Severity::kWarning, recipe_.position(key), std::move(problem),
                          std::move(remedy)});
}

bool is_pinned_image(std::string_view image) {
  const auto at = image.find("@sha256:");
  return at != std::string_view::npos && at > 0 && base::is_hex_digest(image.substr(at + 8), 64);
}

void check_declared(const Recipe& recipe, Findings& findings) {
  // Of an engine that somebody else runs, what is not declared is only not compared.
  if (recipe.text("launch.runner") == "external") return;
  for (const auto& [key, form] :
       {std::pair<const char*, const char*>{"model.repo", "\"OWNER/NAME\""},
        {"serving.context_tokens", "N, tokens per sequence"},
        {"serving.max_sequences", "N, sequences"}})
    if (!recipe.has(key)) {
      const std::string leaf = std::string(key).substr(std::string_view(key).find('.') + 1);
      findings.error(key, "missing", "add " + leaf + " = " + form);
    }
}

void check_model(const Recipe& recipe, Findings& findings) {
  std::set<std::string> files;
  bool weights = false;
  for (size_t i = 0; i < length(recipe, "model.artifact"); ++i) {
    const std::string file = recipe.text(indexed("model.artifact", i, "file"));
    if (recipe.text(indexed("model.artifact", i, "kind")) == "weights") weights = true;
    if (!file.empty() && !files.insert(file).second)
      findings.error(indexed("model.artifact", i, "file"), "\"" + file + "\" is listed twice",
                     "remove one of the two");
  }
  if (recipe.text("engine.kind") == "llama.cpp" && recipe.text("launch.runner") != "external" &&
      !weights && !recipe.has("launch.model_path"))
    findings.error("model.artifact", "llama.cpp needs a model file and none is named",
                   "add [[model.artifact]] with file and sha256, or launch.model_path");
  if (recipe.has("model.chat_template_sha256") && recipe.text("model.chat_template") == "default")
    findings.error("model.chat_template_sha256", "given, but the template is \"default\"",
                   "name the file in model.chat_template, or remove this line");

  const std::string image = recipe.text("engine.image");
  if (image.find('@') != std::string::npos && !is_pinned_image(image))
    findings.error("engine.image", "\"" + image + "\" has a malformed digest",
                   "wanted name@sha256: and 64 hex digits");
  if (recipe.has("engine.package") && recipe.text("engine.package").find("==") == std::string::npos)
    findings.warning("engine.package", "names no version", "write name==version");
  if (recipe.has("engine.package_sha256") && !recipe.has("engine.package"))
    findings.error("engine.package_sha256", "a digest of no package", "add engine.package");
}

void check_serving(const Recipe& recipe, Findings& findings) {
  const int64_t gpus = recipe.integer("hardware.gpus");
  const int64_t tensor = recipe.integer("serving.tensor_parallel", 1);
  const int64_t pipeline = recipe.integer("serving.pipeline_parallel", 1);
  const int64_t data = recipe.integer("serving.data_parallel", 1);
  const int64_t shared = recipe.integer("serving.decode_context_parallel", 1);
  const std::string kind = recipe.text("engine.kind");
  // The ranges of the fields keep this product within 64 bits; wrong values are refused already.
  const bool sane = tensor >= 1 && tensor <= 64 && pipeline >= 1 && pipeline <= 64 && data >= 1 &&
                    data <= 64 && shared >= 1 && gpus >= 0;
  if (sane) {
    const int64_t ranks = tensor * pipeline * data;
    const std::string product = "tensor_parallel " + count(tensor) + " x pipeline_parallel " +
                                count(pipeline) + " x data_parallel " + count(data) + " = " +
                                count(ranks) + " ranks";
    const bool one_rank_per_card = kind == "vllm" || kind == "sglang";
    if (gpus == 0 ? ranks > 1 : ranks > gpus || (one_rank_per_card && ranks < gpus))
      findings.error("serving.tensor_parallel", product + ", but hardware.gpus is " + count(gpus),
                     gpus == 0 ? "set hardware.gpus, or leave the parallel sizes at 1"
                               : "make the product equal to hardware.gpus");
    if (tensor % shared != 0)
      findings.error("serving.decode_context_parallel",
                     count(shared) + " does not divide tensor_parallel " + count(tensor),
                     "wanted a divisor of tensor_parallel");
  }

  const auto roles = recipe.list("hardware.roles");
  if (!roles.empty() && static_cast<int64_t>(roles.size()) != gpus)
    findings.error("hardware.roles",
                   count(static_cast<int64_t>(roles.size())) + " roles for " + count(gpus) +
                       (gpus == 1 ? " card" : " cards"),
                   "name one role per card");
  std::set<std::string> seen;
  for (size_t i = 0; i < roles.size(); ++i)
    if (!seen.insert(roles[i]).second)
      findings.error(indexed("hardware.roles", i), "\"" + roles[i] + "\" stands twice",
                     "each card has its own role");
  if (recipe.has("hardware.vram_gib") && gpus == 0)
    findings.error("hardware.vram_gib", "memory of a card, but hardware.gpus is 0",
                   "set hardware.gpus, or remove this line");

  const int64_t context = recipe.integer("serving.context_tokens");
  const int64_t sequences = recipe.integer("serving.max_sequences");
  const int64_t batched = recipe.integer("serving.batched_tokens");
  const int64_t depth = recipe.integer("speculation.depth");
  if (batched > 0 && sequences > 0 && sequences <= 4096 && depth >= 0 && depth <= 64 &&
      batched < sequences * (depth + 1))
    findings.error(
        "serving.batched_tokens",
        count(batched) + " cannot hold one step of " + count(sequences) + " sequences with " +
            count(depth) + " draft tokens each",
        "wanted at least max_sequences * (depth + 1) = " + count(sequences * (depth + 1)));
  if (!recipe.flag("serving.chunked_prefill", true) && batched > 0 && batched < context)
    findings.error("serving.batched_tokens",
                   count(batched) + " is less than the context of " + count(context) +
                       " tokens and chunked_prefill is off: long prompts could never be scheduled",
                   "raise it to context_tokens, or allow chunked_prefill");

  const bool keys = recipe.has("serving.kv_dtype_k");
  const bool values = recipe.has("serving.kv_dtype_v");
  if (keys || values) {
    const std::string_view which = keys ? "serving.kv_dtype_k" : "serving.kv_dtype_v";
    if (!kind.empty() && kind != "llama.cpp" && kind != "external")
      findings.error(which, kind + " has one type for keys and values", "use kv_dtype");
    else if (recipe.has("serving.kv_dtype"))
      findings.error("serving.kv_dtype", "given beside kv_dtype_k or kv_dtype_v",
                     "keep either one type for both, or the two");
    else if (keys != values)
      findings.error(which, "given without its counterpart", "give both kv_dtype_k and kv_dtype_v");
  }

  const auto efforts = recipe.list("serving.efforts");
  seen.clear();
  for (size_t i = 0; i < efforts.size(); ++i)
    if (!seen.insert(efforts[i]).second)
      findings.error(indexed("serving.efforts", i), "\"" + efforts[i] + "\" stands twice",
                     "list every effort once");
  if (const Json& deltas = recipe.at("fingerprint.efforts"); deltas.is_object()) {
    for (const auto& [effort, delta] : deltas.items()) {
      const std::string path = "fingerprint.efforts." + effort;
      if (!seen.contains(effort))
        findings.error(path, "not among serving.efforts",
                       "add it there, or remove it here; only qualified efforts are compared");
      else if (effort == efforts.front() && delta != 0)
        findings.error(
            path,
            "is " + delta.dump() + ", but this is the effort that the others are compared with",
            "set it to 0, and the others to their difference to it");
    }
  }
  if (kind == "vllm" && recipe.flag("serving.auto_tool_choice") &&
      !recipe.has("serving.tool_parser"))
    findings.error("serving.auto_tool_choice", "vLLM refuses it without a tool parser",
                   "add serving.tool_parser");
}

void check_speculation(const Recipe& recipe, Findings& findings) {
  const std::string method = recipe.text("speculation.method");
  const int64_t depth = recipe.integer("speculation.depth");
  if (method == "none") {
    if (depth > 0)
      findings.error("speculation.depth",
                     count(depth) + " draft tokens, but the method is \"none\"",
                     "name the method, or remove the depth");
    for (const std::string_view key :
         {"speculation.depth_mode", "speculation.draft_sampling", "speculation.rejection_sampling",
          "speculation.prompt_lookup_max", "speculation.draft"})
      if (recipe.has(key))
        findings.error(key, "has no meaning while speculation.method is \"none\"",
                       "name the method, or remove this");
    if (recipe.has("model.dtype.draft"))
      findings.warning("model.dtype.draft", "a draft format without speculation",
                       "remove it, unless the checkpoint carries the draft layers anyway");
    return;
  }
  if (depth == 0)
    findings.error("speculation.depth", "method \"" + method + "\" with 0 draft tokens",
                   "wanted 1 to 64, or method = \"none\"");
  if (recipe.has("speculation.prompt_lookup_max") && method != "ngram")
    findings.error("speculation.prompt_lookup_max", "only the method \"ngram\" looks prompts up",
                   "remove it");
  const bool draft = recipe.has("speculation.draft.repo") || recipe.has("speculation.draft.file") ||
                     recipe.has("speculation.draft.path");
  if (method == "draft-model" && !draft)
    findings.error("speculation.draft", "method \"draft-model\" and no draft model",
                   "add [speculation.draft] with repo and revision, file, or path");
  if ((method == "ngram" || method == "suffix") && draft)
    findings.error("speculation.draft", "the method \"" + method + "\" uses no draft model",
                   "remove [speculation.draft]");
  if (recipe.has("speculation.draft.revision") && !recipe.has("speculation.draft.repo"))
    findings.error("speculation.draft.revision", "a revision of no repository",
                   "add speculation.draft.repo");
  if (const std::string file = recipe.text("speculation.draft.file"); !file.empty()) {
    bool listed = false;
    for (size_t i = 0; i < length(recipe, "model.artifact"); ++i)
      listed = listed || (recipe.text(indexed("model.artifact", i, "file")) == file &&
                          recipe.text(indexed("model.artifact", i, "kind")) == "draft");
    if (!listed)
      findings.error("speculation.draft.file", "\"" + file + "\" is not an artifact",
                     "add [[model.artifact]] with this file and kind = \"draft\"");
  }
}

std::vector<std::string> find_unpinned(const Recipe& recipe) {
  std::vector<std::string> out;
  bool hashed_weights = false;
  for (size_t i = 0; i < length(recipe, "model.artifact"); ++i) {
    if (!recipe.has(indexed("model.artifact", i, "sha256")))
      out.push_back(indexed("model.artifact", i, "sha256"));
    else if (recipe.text(indexed("model.artifact", i, "kind")) == "weights")
      hashed_weights = true;
  }
  if (!recipe.has("model.revision") && !hashed_weights) out.push_back("model.revision");
  if (recipe.text("model.chat_template") != "default" && !recipe.has("model.chat_template_sha256"))
    out.push_back("model.chat_template_sha256");
  const bool image = is_pinned_image(recipe.text("engine.image"));
  if (recipe.text("launch.runner") == "docker") {
    if (!image) out.push_back("engine.image");
  } else if (!image && !recipe.has("engine.package_sha256") &&
             !recipe.has("engine.source_commit")) {
    out.push_back("engine.package_sha256");
  }
  for (size_t i = 0; i < length(recipe, "engine.patch"); ++i)
    if (!recipe.has(indexed("engine.patch", i, "sha256")))
      out.push_back(indexed("engine.patch", i, "sha256"));
  if (recipe.has("speculation.draft.repo") && !recipe.has("speculation.draft.revision"))
    out.push_back("speculation.draft.revision");
  return out;
}

}  // namespace anvil::recipe
