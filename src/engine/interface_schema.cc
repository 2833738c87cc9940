#include "engine/interface_schema.h"

namespace anvil::engine {

namespace {

using enum recipe::FieldType;

std::vector<recipe::Field> fields() {
  return {
      {.path = "name", .required = true, .doc = "What recipes call this table."},
      {.path = "engine", .required = true, .doc = "Kind of engine (engine.kind of a recipe)."},
      {.path = "versions", .doc = "Builds or versions it was checked against."},
      {.path = "extends",
       .doc = "A shipped table: what this one does not say is taken from there; failure signatures "
              "are added behind its own."},
      {.path = "abstract", .type = kBool, .doc = "Only for other tables to extend."},
      {.path = "program", .type = kTextList, .doc = "Head of the command line."},
      {.path = "program_hint", .doc = "How to get the program."},
      {.path = "fixed", .type = kTextList, .doc = "Arguments that every launch gets."},
      {.path = "model", .choices = {"file", "folder"}, .doc = "What the engine loads as a model."},
      {.path = "api_key_env", .doc = "Variable that takes the key which requests must carry."},
      {.path = "version_args", .type = kTextList, .doc = "Makes the program print its version."},
      {.path = "version_patterns",
       .type = kTextList,
       .doc = "Log patterns for what it prints; their captures are facts of phase `start`."},
      {.path = "declared",
       .type = kTextList,
       .doc = "Recipe fields that need no flag here; `*` is all of them."},
      {.path = "efforts", .type = kTextList, .doc = "Reasoning efforts that requests may carry."},
      {.path = "measured_request.*",
       .type = kAny,
       .doc = "Merged into the body of every measured request, e.g. what makes the engine report "
              "tokens with every chunk."},
      {.path = "cold_request.*",
       .type = kAny,
       .doc = "Merged as well into requests whose prompt must not come from the prefix cache."},
      {.path = "mild",
       .type = kTextList,
       .doc = "Marks of log lines that report no error, looked for in the first 64 bytes; such a "
              "line counts as a cause only when nothing better is known."},

      {.path = "field[].recipe", .required = true, .doc = "Recipe field."},
      {.path = "field[].flag", .doc = "Flag that carries it."},
      {.path = "field[].env", .doc = "Variable that carries it."},
      {.path = "field[].aliases", .type = kTextList, .doc = "Other spellings of the flag."},
      {.path = "field[].form",
       .choices = {"value", "equals", "positional", "bool-true", "bool-false", "bool-pair", "json",
                   "repeat", "join"},
       .doc = "How it is written: `--flag value` (default), `--flag=value`, the bare value, the "
              "flag alone when true (or when false), one of two flags, a key of one JSON argument, "
              "the flag once per element, one comma-separated value."},
      {.path = "field[].key", .doc = "Key of the JSON argument (form `json`)."},
      {.path = "field[].off", .doc = "The flag for false (form `bool-pair`), or that undoes it."},
      {.path = "field[].on", .doc = "Text for true of a `bool-true` variable; default `true`."},
      {.path = "field[].value",
       .doc = "Text with `{expression}` parts over recipe fields; default is the field itself."},
      {.path = "field[].always",
       .type = kBool,
       .doc = "Written even when the recipe does not have the field."},
      {.path = "field[].when.*",
       .type = kAny,
       .doc = "Only when each named field has one of the listed values, is `positive` or "
              "`not VALUE`."},
      {.path = "field[].unless",
       .type = kTextList,
       .doc = "Not when the recipe has one of these fields."},
      {.path = "field[].skip",
       .type = kAny,
       .doc = "Values that need no flag because the engine does that anyway."},
      {.path = "field[].only",
       .type = kAny,
       .doc = "The values that this engine line can have at all; nothing is written."},
      {.path = "field[].map.*", .doc = "Recipe value = what the engine calls it."},
      {.path = "field[].unmapped",
       .choices = {"error", "skip"},
       .doc = "What happens to a value that `map` lacks; default `error`."},
      {.path = "field[].multiple",
       .type = kInteger,
       .min = 1,
       .doc = "The engine rounds the field up to a multiple of this."},

      {.path = "readiness.path", .doc = "Asked until it answers `ready`."},
      {.path = "readiness.ready", .type = kInteger, .doc = "Status of a ready engine."},
      {.path = "readiness.loading", .type = kIntegerList, .doc = "Statuses while it loads."},
      {.path = "models.path", .doc = "The list of served models."},
      {.path = "tokenize.path", .doc = "Text to tokens."},
      {.path = "tokenize.detokenize", .doc = "Tokens to text."},
      {.path = "tokenize.form", .choices = {"llama.cpp", "vllm", "sglang"}, .doc = "Its dialect."},
      {.path = "render.path", .doc = "Chat request to prompt."},
      {.path = "metrics.path", .doc = "Prometheus text."},
      {.path = "metrics.running", .type = kAny, .doc = "Series: requests that run (gauge)."},
      {.path = "metrics.waiting", .type = kAny, .doc = "Requests that wait (gauge)."},
      {.path = "metrics.kv_used_ratio", .type = kAny, .doc = "Share of the KV cache in use."},
      {.path = "metrics.prompt_tokens", .type = kAny, .doc = "Prompt tokens."},
      {.path = "metrics.cached_tokens", .type = kAny, .doc = "Of these, from the prefix cache."},
      {.path = "metrics.output_tokens", .type = kAny, .doc = "Generated tokens."},
      {.path = "metrics.drafts", .type = kAny, .doc = "Draft rounds."},
      {.path = "metrics.draft_tokens", .type = kAny, .doc = "Drafted tokens."},
      {.path = "metrics.accepted_tokens", .type = kAny, .doc = "Accepted tokens."},
      {.path = "metrics.accepted_per_position",
       .type = kAny,
       .doc = "Accepted tokens by label `position`."},
      {.path = "metrics.preemptions",
       .type = kAny,
       .doc = "Preemptions. Every name may be a list: the first that exists counts."},

      {.path = "identity[].field", .required = true, .doc = "Recipe field that is observed."},
      {.path = "identity[].path", .doc = "GET path of the answer that shows it."},
      {.path = "identity[].pointer", .doc = "JSON pointer into the answer."},
      {.path = "identity[].log",
       .doc = "Instead: text with `{name}` parts, values that were captured from the log."},
      {.path = "identity[].argument",
       .doc = "Key inside a Python dictionary that `log` yields; dots go deeper."},
      {.path = "identity[].transform",
       .choices = {"served-id", "served-key", "sha256", "artifact"},
       .doc = "`served-id`: the entry of a model list that is ours; `served-key`: its `key`; "
              "`sha256`: digest of the text; `artifact`: the file or folder, whose digests are "
              "known from before the launch."},
      {.path = "identity[].key", .doc = "Key of the model list entry."},
      {.path = "identity[].compare",
       .choices = {"equal", "version", "build"},
       .doc = "`version`: equal up to a local suffix (0.32.0+cpu); `build`: b11549 equals "
              "11549-abcdef."},
      {.path = "identity[].unknown",
       .type = kTextList,
       .doc = "Answers that say nothing: not observable."},
      {.path = "identity[].map.*", .doc = "What the engine calls it = recipe value."},

      {.path = "phase[].name", .required = true, .doc = "Phase that the line begins."},
      {.path = "phase[].pattern", .required = true, .doc = "Log pattern."},
      {.path = "phase[].fact",
       .type = kBool,
       .doc = "Begins no phase; its values are kept with the phase in which it was seen."},
      {.path = "phase[].keep",
       .choices = {"first", "last", "min", "max"},
       .doc = "Which value counts when several lines carry it; default `first`."},

      {.path = "failure[].class", .required = true, .doc = "Name of the cause."},
      {.path = "failure[].patterns", .type = kTextList, .required = true, .doc = "Log patterns."},
      {.path = "failure[].hint", .required = true, .doc = "Likely cause and what to do."},
      {.path = "failure[].phases", .type = kTextList, .doc = "Only in these phases."},
      {.path = "failure[].wrapper",
       .type = kBool,
       .doc = "These lines wrap a cause that stands elsewhere; they are never the cause."},
      {.path = "failure[].last", .type = kBool, .doc = "Counts only when no other cause is seen."},

      {.path = "consequence[].what", .required = true, .doc = "What follows from other fields."},
      {.path = "consequence[].expression", .required = true, .doc = "Its value."},
      {.path = "consequence[].because", .required = true, .doc = "Why."},
  };
}

std::vector<recipe::TableDoc> tables() {
  return {
      {"field[]",
       "How one typed recipe field becomes a flag or a variable. Fields without flag "
       "and variable are only checked (`only`)."},
      {"readiness", "When the engine is ready."},
      {"models", "Which models it serves."},
      {"tokenize", "Its tokenizer."},
      {"render", "Its chat template, applied."},
      {"metrics", "Its counters in the normal form."},
      {"identity[]",
       "How a declared field is observed. Several entries for one field: the first "
       "that yields something counts."},
      {"phase[]", "Log lines that mark the phases of a start."},
      {"failure[]",
       "Log lines that show why a start failed or an engine died. The first line that "
       "matches is the cause."},
      {"consequence[]", "What a comparison of two recipes has to mention besides the fields."},
  };
}

}  // namespace

const recipe::Schema& interface_schema() {
  static const recipe::Schema schema("anvil/interface/v1", "interface table", fields(), tables());
  return schema;
}

}  // namespace anvil::engine
