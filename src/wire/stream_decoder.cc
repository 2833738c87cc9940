#include "wire/stream_decoder.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "wire/on_demand.h"

namespace anvil::wire {

namespace {

using namespace on_demand;

constexpr int64_t kMaxToolCalls = 1024;

// One document at a time is parsed on a thread, so its decoders need only one of these.
struct Workspace {
  od::parser parser;
  std::unique_ptr<char[]> buffer;
  size_t capacity = 0;
};

Workspace& workspace() {
  thread_local Workspace shared;
  return shared;
}

}  // namespace

struct StreamDecoder::State {
  explicit State(Api which) : api(which) {}

  Result<Delta> read(std::string_view event_type, std::string_view data);
  Result<void> read_body(std::string_view body);
  void reset(Api which);

  Api api;
  Answer answer;
  bool done = false;
  bool unary = false;
  size_t expected_text = 0;

 private:
  error_code read_document(std::string_view event_type, std::string_view data);
  error_code read_completion(od::object root);
  error_code read_choice(od::object choice);
  error_code read_message(od::value message);
  error_code read_content(od::value value, std::string& to, uint32_t& bytes);
  error_code read_tool_call(od::object call, int64_t position);
  error_code count_token_ids(od::value value);
  error_code read_usage(od::value value);
  error_code read_timings(od::value value);
  error_code read_error(od::value value);
  void take_error(ReportedError error);
  void take_finish(std::string_view finish);
  void append(std::string_view text, std::string& to, uint32_t& bytes);

  error_code read_responses_event(od::object root, std::string_view event_type);
  error_code read_response(od::value value, bool terminal);
  // How much of an output item is there: its head, its end after it was streamed, or all of it for
  // the first time.
  enum class Item { kAdded, kDone, kWhole };
  error_code read_output_item(od::object item, int64_t index, Item part);
  error_code read_item_parts(od::value value);
  ToolCall& tool_at(int64_t index);
  void take_tool(ToolCall& call, std::string_view id, std::string_view name);
  void complete_arguments(ToolCall& call, std::string_view arguments);
  bool has_output() const;

  Delta delta_;
  std::vector<int64_t> tool_index_;  // of answer.tool_calls, ascending
  bool tool_index_bad_ = false;
  std::optional<int64_t> token_ids_;  // seen so far; nothing where the engine sends none
};

void StreamDecoder::State::reset(Api which) {
  api = which;
  answer = {};
  done = unary = tool_index_bad_ = false;
  tool_index_.clear();
  token_ids_.reset();
}

void StreamDecoder::State::append(std::string_view text, std::string& to, uint32_t& bytes) {
  if (to.empty() && expected_text > 0 && (&to == &answer.content || &to == &answer.reasoning))
    to.reserve(expected_text);
  to.append(text);
  bytes += static_cast<uint32_t>(text.size());
}

// Parses a copy of the data: simdjson reads past the end of its input.
error_code StreamDecoder::State::read_document(std::string_view event_type, std::string_view data) {
  Workspace& work = workspace();
  if (data.size() > work.capacity) {
    size_t capacity = std::max<size_t>(work.capacity, 2048);
    while (capacity < data.size()) capacity *= 2;
    work.buffer = std::make_unique<char[]>(capacity + simdjson::SIMDJSON_PADDING);
    JSON_TRY(work.parser.allocate(capacity));
    work.capacity = capacity;
  }
  std::copy(data.begin(), data.end(), work.buffer.get());
  od::document document;
  JSON_TRY(work.parser
               .iterate(work.buffer.get(), data.size(), work.capacity + simdjson::SIMDJSON_PADDING)
               .get(document));
  od::object root;
  JSON_TRY(document.get_object().get(root));
  JSON_TRY(api == Api::kResponses && !unary ? read_responses_event(root, event_type)
                                            : read_completion(root));
  // There is no current location behind the end of the document.
  return document.current_location().error() == simdjson::OUT_OF_BOUNDS
             ? SUCCESS
             : simdjson::TRAILING_CONTENT;
}

Result<Delta> StreamDecoder::State::read(std::string_view event_type, std::string_view data) {
  delta_ = {};
  const std::string_view text = base::trim(data);
  if (text == "[DONE]") {
    done = delta_.done = true;
    return delta_;
  }
  if (const error_code code = text.empty() ? simdjson::EMPTY : read_document(event_type, text)) {
    if (event_type == "error" && !text.empty() && text.front() != '{') {
      take_error({std::string(text.substr(0, 500)), "error", ""});
      return delta_;
    }
    return fail(Kind::kProtocol, Side::kUpstream,
                std::string(simdjson::error_message(code)) + " in a stream event: '" +
                    base::to_valid_utf8(text.substr(0, 80)) + "'");
  }
  if (!delta_.completion_tokens) delta_.completion_tokens = token_ids_;
  if (tool_index_bad_) {
    return fail(Kind::kProtocol, Side::kUpstream,
                "tool call index is not between 0 and " + std::to_string(kMaxToolCalls - 1) +
                    " in a stream event: '" + base::to_valid_utf8(text.substr(0, 80)) + "'");
  }
  if (event_type == "error" && !delta_.error) {
    take_error({std::string(text.substr(0, 500)), "error", ""});
  }
  return delta_;
}

Result<void> StreamDecoder::State::read_body(std::string_view body) {
  unary = true;
  const std::string_view text = base::trim(body);
  const error_code code = text.empty() ? simdjson::EMPTY : read_document({}, text);
  if (code == SUCCESS && !tool_index_bad_) return {};
  return fail(Kind::kProtocol, Side::kUpstream,
              std::string(code ? simdjson::error_message(code) : "impossible tool call index") +
                  " in the answer: '" + base::to_valid_utf8(text.substr(0, 80)) + "'");
}

// A chunk or a whole body of chat or completions; also the whole body of Responses, whose keys do
// not collide with them.
error_code StreamDecoder::State::read_completion(od::object root) {
  std::string_view message, type, object;
  std::string code;
  const error_code result = each_field(root, [&](std::string_view key, od::value value) {
    std::string_view text;
    if (key == "choices") {
      return each_object(value, [&](od::object choice) { return read_choice(choice); });
    }
    if (key == "usage") return read_usage(value);
    if (key == "timings") return read_timings(value);
    if (key == "error") return read_error(value);
    if (key == "id" || key == "model" || key == "system_fingerprint") {
      JSON_TRY(text_of(value, text));
      if (!text.empty()) {
        (key == "id"      ? answer.id
         : key == "model" ? answer.model
                          : answer.system_fingerprint)
            .assign(text);
      }
      return SUCCESS;
    }
    if (key == "object") return text_of(value, object);
    if (key == "message") return text_of(value, message);
    if (key == "type") return text_of(value, type);
    if (key == "code") return word_of(value, code);
    if (api == Api::kResponses && key == "status") {
      JSON_TRY(text_of(value, text));
      take_finish(text);
      return SUCCESS;
    }
    if (api == Api::kResponses && key == "output") {
      int64_t index = 0;
      return each_object(
          value, [&](od::object item) { return read_output_item(item, index++, Item::kWhole); });
    }
    return SUCCESS;
  });
  if (object == "error") take_error({std::string(message), std::string(type), code});
  return result;
}

error_code StreamDecoder::State::read_choice(od::object choice) {
  std::optional<int64_t> index;
  JSON_TRY(find_then_rewind(choice, "index", [&](od::value v) { return integer_of(v, index); }));
  if (index.value_or(0) != 0) return SUCCESS;
  return each_field(choice, [&](std::string_view key, od::value value) {
    if (key == "delta" || (unary && key == "message")) return read_message(value);
    if (key == "text") return read_content(value, answer.content, delta_.content_bytes);
    if (key == "finish_reason") {
      std::string_view finish;
      JSON_TRY(text_of(value, finish));
      take_finish(finish);
      return SUCCESS;
    }
    if (key == "usage") return read_usage(value);
    if (key == "token_ids") return count_token_ids(value);
    return SUCCESS;
  });
}

// vLLM's tokens of this event, summed up: what they are does not matter here.
error_code StreamDecoder::State::count_token_ids(od::value value) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  if (type != od::json_type::array) return SUCCESS;
  od::array tokens;
  JSON_TRY(value.get_array().get(tokens));
  size_t count = 0;
  JSON_TRY(tokens.count_elements().get(count));
  token_ids_ = token_ids_.value_or(0) + static_cast<int64_t>(count);
  return SUCCESS;
}

error_code StreamDecoder::State::read_message(od::value message) {
  // An engine that sends both spellings sends the same text twice.
  bool has_reasoning = false;
  return each_field_if(message, [&](std::string_view key, od::value value) {
    if (key == "content") return read_content(value, answer.content, delta_.content_bytes);
    if (key == "reasoning" || key == "reasoning_content" || key == "thinking") {
      if (has_reasoning) return SUCCESS;
      const uint32_t before = delta_.reasoning_bytes;
      JSON_TRY(read_content(value, answer.reasoning, delta_.reasoning_bytes));
      has_reasoning = delta_.reasoning_bytes != before;
      return SUCCESS;
    }
    if (key == "tool_calls") {
      int64_t position = 0;
      return each_object(value, [&](od::object call) { return read_tool_call(call, position++); });
    }
    if (key == "refusal") {
      uint32_t ignored = 0;
      return read_content(value, answer.refusal, ignored);
    }
    return SUCCESS;
  });
}

// A string, null, or a list of parts with a "text".
error_code StreamDecoder::State::read_content(od::value value, std::string& to, uint32_t& bytes) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  if (type == od::json_type::string) {
    std::string_view text;
    JSON_TRY(value.get_string().get(text));
    append(text, to, bytes);
    return SUCCESS;
  }
  if (type != od::json_type::array) return SUCCESS;
  return each_object(value, [&](od::object part) {
    return each_field(part, [&](std::string_view key, od::value inner) {
      std::string_view text;
      if (key == "text") JSON_TRY(text_of(inner, text));
      append(text, to, bytes);
      return SUCCESS;
    });
  });
}

// The slot of a call, created in its place if it is new.
ToolCall& StreamDecoder::State::tool_at(int64_t index) {
  if (index < 0 || index >= kMaxToolCalls) {
    tool_index_bad_ = true;
    index = 0;
  }
  const auto at = std::lower_bound(tool_index_.begin(), tool_index_.end(), index);
  const auto offset = at - tool_index_.begin();
  if (at == tool_index_.end() || *at != index) {
    tool_index_.insert(at, index);
    answer.tool_calls.insert(answer.tool_calls.begin() + offset, ToolCall{});
  }
  return answer.tool_calls[static_cast<size_t>(offset)];
}

// Engines that repeat the id or the whole name with every piece are understood too.
void StreamDecoder::State::take_tool(ToolCall& call, std::string_view id, std::string_view name) {
  if (call.id.empty()) call.id.assign(id);
  if (name.empty() || name == call.name) return;
  append(name, call.name, delta_.tool_bytes);
}

// The full text of arguments whose pieces may or may not have been streamed before.
void StreamDecoder::State::complete_arguments(ToolCall& call, std::string_view arguments) {
  if (call.arguments.empty()) append(arguments, call.arguments, delta_.tool_bytes);
}

// `position` in its list stands for an index that is missing.
error_code StreamDecoder::State::read_tool_call(od::object call, int64_t position) {
  std::optional<int64_t> index;
  std::string_view id, name, arguments;
  JSON_TRY(each_field(call, [&](std::string_view key, od::value value) {
    if (key == "index") return integer_of(value, index);
    if (key == "id") return text_of(value, id);
    if (key != "function") return SUCCESS;
    return each_field_if(value, [&](std::string_view inner_key, od::value inner) {
      if (inner_key == "name") return text_of(inner, name);
      if (inner_key != "arguments") return SUCCESS;
      std::optional<od::object> object;
      JSON_TRY(to_object(inner, object));
      return object ? object->raw_json().get(arguments) : text_of(inner, arguments);
    });
  }));
  ToolCall& slot = tool_at(index.value_or(position));
  take_tool(slot, id, name);
  append(arguments, slot.arguments, delta_.tool_bytes);
  return SUCCESS;
}

// The spellings of chat, completions and Responses.
error_code StreamDecoder::State::read_usage(od::value value) {
  std::optional<od::object> object;
  JSON_TRY(to_object(value, object));
  if (!object) return SUCCESS;
  delta_.usage = true;
  Usage& usage = answer.usage;
  std::optional<int64_t> completion;
  JSON_TRY(each_field(*object, [&](std::string_view key, od::value count) {
    if (key == "prompt_tokens" || key == "input_tokens") return count_of(count, usage.prompt);
    if (key == "completion_tokens" || key == "output_tokens") {
      return count_of(count, completion);
    }
    if (key == "reasoning_tokens") return count_of(count, usage.reasoning);
    if (key == "total_tokens") return count_of(count, usage.total);
    if (key == "prompt_tokens_details" || key == "input_tokens_details") {
      return each_field_if(count, [&](std::string_view name, od::value detail) {
        return name == "cached_tokens" ? count_of(detail, usage.cached) : SUCCESS;
      });
    }
    if (key == "completion_tokens_details" || key == "output_tokens_details") {
      return each_field_if(count, [&](std::string_view name, od::value detail) {
        return name == "reasoning_tokens" ? count_of(detail, usage.reasoning) : SUCCESS;
      });
    }
    return SUCCESS;
  }));
  if (completion) usage.completion = delta_.completion_tokens = completion;
  return SUCCESS;
}

error_code StreamDecoder::State::read_timings(od::value value) {
  std::optional<od::object> object;
  JSON_TRY(to_object(value, object));
  if (!object) return SUCCESS;
  if (!answer.timings) answer.timings.emplace();
  EngineTimings& timings = *answer.timings;
  JSON_TRY(each_field(*object, [&](std::string_view key, od::value number) {
    if (key == "cache_n") return count_of(number, timings.cache_n);
    if (key == "prompt_n") return count_of(number, timings.prompt_n);
    if (key == "predicted_n") return count_of(number, timings.predicted_n);
    if (key == "draft_n") return count_of(number, timings.draft_n);
    if (key == "draft_n_accepted") return count_of(number, timings.draft_n_accepted);
    if (key == "prompt_ms") return number_of(number, timings.prompt_ms);
    if (key == "predicted_ms") return number_of(number, timings.predicted_ms);
    return SUCCESS;
  }));
  if (!delta_.completion_tokens) delta_.completion_tokens = timings.predicted_n;
  return SUCCESS;
}

// {"message","type","code"}, a bare string, or null for none.
error_code StreamDecoder::State::read_error(od::value value) {
  od::json_type type;
  JSON_TRY(value.type().get(type));
  ReportedError error;
  if (type == od::json_type::string) {
    JSON_TRY(word_of(value, error.message));
  } else if (type == od::json_type::object) {
    JSON_TRY(each_field_if(value, [&](std::string_view key, od::value inner) {
      if (key == "message") return word_of(inner, error.message);
      if (key == "type") return word_of(inner, error.type);
      if (key == "code") return word_of(inner, error.code);
      return SUCCESS;
    }));
  } else {
    return SUCCESS;
  }
  take_error(std::move(error));
  return SUCCESS;
}

void StreamDecoder::State::take_error(ReportedError error) {
  answer.error = std::move(error);
  delta_.error = true;
}

void StreamDecoder::State::take_finish(std::string_view finish) {
  if (finish.empty()) return;
  answer.finish.assign(finish);
  delta_.finish = true;
  if (finish == "error" && !answer.error) {
    take_error({"the engine ended the answer with finish_reason error", "finish_reason", ""});
  }
}

bool StreamDecoder::State::has_output() const {
  return !answer.content.empty() || !answer.reasoning.empty() || !answer.tool_calls.empty();
}

error_code StreamDecoder::State::read_responses_event(od::object root,
                                                      std::string_view event_type) {
  std::string_view type = event_type;
  JSON_TRY(find_then_rewind(root, "type", [&](od::value v) { return text_of(v, type); }));

  const bool terminal = type == "response.completed" || type == "response.incomplete" ||
                        type == "response.failed" || type == "response.cancelled";
  const bool item_done = type == "response.output_item.done";
  const bool is_error = type == "error";
  std::optional<int64_t> index;
  std::string_view text, arguments, message;
  std::string code;
  JSON_TRY(each_field(root, [&](std::string_view key, od::value value) {
    if (key == "output_index") return integer_of(value, index);
    if (key == "delta") return text_of(value, text);
    if (key == "arguments") return text_of(value, arguments);
    if (key == "response") return read_response(value, terminal);
    if (key == "error") return read_error(value);
    if (key == "message") return text_of(value, message);
    if (key == "code") return word_of(value, code);
    return SUCCESS;
  }));

  if (type == "response.output_text.delta") {
    append(text, answer.content, delta_.content_bytes);
  } else if (type == "response.reasoning_text.delta" ||
             type == "response.reasoning_summary_text.delta") {
    append(text, answer.reasoning, delta_.reasoning_bytes);
  } else if (type == "response.refusal.delta") {
    answer.refusal.append(text);
  } else if (type == "response.function_call_arguments.delta") {
    append(text, tool_at(index.value_or(0)).arguments, delta_.tool_bytes);
  } else if (type == "response.function_call_arguments.done") {
    complete_arguments(tool_at(index.value_or(0)), arguments);
  } else if (item_done || type == "response.output_item.added") {
    // Again from the beginning: the item may stand before its index.
    JSON_TRY(root.reset().error());
    JSON_TRY(each_field(root, [&](std::string_view key, od::value value) {
      std::optional<od::object> item;
      if (key == "item") JSON_TRY(to_object(value, item));
      if (!item) return SUCCESS;
      return read_output_item(*item, index.value_or(0), item_done ? Item::kDone : Item::kAdded);
    }));
  } else if (is_error && !delta_.error) {
    take_error({std::string(message), "error", code});
  }
  if (terminal) {
    done = delta_.done = true;
    if (answer.finish.empty()) take_finish(type.substr(std::string_view("response.").size()));
    if (type == "response.failed" && !answer.error) take_error({"the response failed", "", ""});
  }
  return SUCCESS;
}

// The response object inside an event. Only a terminal one carries a meaningful status, and its
// output is read only when nothing had been streamed.
error_code StreamDecoder::State::read_response(od::value value, bool terminal) {
  const bool streamed = has_output();
  return each_field_if(value, [&](std::string_view key, od::value inner) {
    std::string_view text;
    if (key == "id" || key == "model") {
      JSON_TRY(text_of(inner, text));
      if (!text.empty()) (key == "id" ? answer.id : answer.model).assign(text);
      return SUCCESS;
    }
    if (key == "usage") return read_usage(inner);
    if (key == "timings") return read_timings(inner);
    if (key == "error") return read_error(inner);
    if (!terminal) return SUCCESS;
    if (key == "status") {
      JSON_TRY(text_of(inner, text));
      take_finish(text);
    } else if (key == "output" && !streamed) {
      int64_t index = 0;
      return each_object(
          inner, [&](od::object item) { return read_output_item(item, index++, Item::kWhole); });
    }
    return SUCCESS;
  });
}

// An item of a Responses output. While a stream runs, only function calls are taken from items:
// text comes as deltas.
error_code StreamDecoder::State::read_output_item(od::object item, int64_t index, Item part) {
  std::string_view type, id, call_id, name, arguments;
  JSON_TRY(find_then_rewind(item, "type", [&](od::value value) { return text_of(value, type); }));
  JSON_TRY(each_field(item, [&](std::string_view key, od::value value) {
    if (key == "id") return text_of(value, id);
    if (key == "call_id") return text_of(value, call_id);
    if (key == "name") return text_of(value, name);
    if (key == "arguments") return text_of(value, arguments);
    if (part != Item::kWhole) return SUCCESS;
    if (type == "message" && key == "content") return read_item_parts(value);
    if (type == "reasoning" && (key == "content" || key == "summary")) {
      return read_content(value, answer.reasoning, delta_.reasoning_bytes);
    }
    return SUCCESS;
  }));
  if (type != "function_call") return SUCCESS;
  ToolCall& slot = tool_at(index);
  take_tool(slot, call_id.empty() ? id : call_id, name);
  if (part != Item::kAdded) complete_arguments(slot, arguments);
  return SUCCESS;
}

// [{"type":"output_text","text"}, {"type":"refusal","refusal"}]
error_code StreamDecoder::State::read_item_parts(od::value value) {
  return each_object(value, [&](od::object part) {
    return each_field(part, [&](std::string_view key, od::value inner) {
      std::string_view text;
      if (key == "text") {
        JSON_TRY(text_of(inner, text));
        append(text, answer.content, delta_.content_bytes);
      } else if (key == "refusal") {
        JSON_TRY(text_of(inner, text));
        answer.refusal.append(text);
      }
      return SUCCESS;
    });
  });
}

StreamDecoder::StreamDecoder(Api api) : state_(std::make_unique<State>(api)) {}
StreamDecoder::~StreamDecoder() = default;
StreamDecoder::StreamDecoder(StreamDecoder&&) noexcept = default;
StreamDecoder& StreamDecoder::operator=(StreamDecoder&&) noexcept = default;

Result<Delta> StreamDecoder::on_event(std::string_view event_type, std::string_view data) {
  return state_->read(event_type, data);
}

const Answer& StreamDecoder::answer() const {
  return state_->answer;
}

Answer StreamDecoder::take_answer() {
  return std::exchange(state_->answer, {});
}

bool StreamDecoder::done() const {
  return state_->done;
}

Result<Answer> StreamDecoder::read_whole(std::string_view body) {
  TRY(state_->read_body(body));
  return take_answer();
}

void StreamDecoder::reset(Api api) {
  state_->reset(api);
}

void StreamDecoder::prefetch() const {
  constexpr size_t kLine = 64;
  const auto* first = reinterpret_cast<const char*>(state_.get());
  for (size_t at = 0; at < sizeof(State); at += kLine) __builtin_prefetch(first + at, 1);
}

void StreamDecoder::expect_text(size_t bytes) {
  state_->expected_text = bytes;
}

Result<Answer> parse_answer(Api api, std::string_view body) {
  return StreamDecoder(api).read_whole(body);
}

}  // namespace anvil::wire
