#include "wire/gguf.h"

#include <algorithm>
#include <cstring>

namespace anvil::wire {

namespace {

constexpr uint64_t kMaxHeader = uint64_t{1} << 30;
constexpr uint64_t kMaxStringKept = 64 * 1024;
constexpr uint32_t kMaxDimensions = 8;
constexpr int kMaxArrayDepth = 4;

// ggml's element types: how many weights one block holds, and its size.
struct TensorType {
  uint32_t type;
  std::string_view name;
  uint32_t block;
  uint32_t bytes;
};
constexpr TensorType kTensorTypes[] = {
    {0, "f32", 1, 4},         {1, "f16", 1, 2},         {2, "q4_0", 32, 18},
    {3, "q4_1", 32, 20},      {6, "q5_0", 32, 22},      {7, "q5_1", 32, 24},
    {8, "q8_0", 32, 34},      {9, "q8_1", 32, 36},      {10, "q2_K", 256, 84},
    {11, "q3_K", 256, 110},   {12, "q4_K", 256, 144},   {13, "q5_K", 256, 176},
    {14, "q6_K", 256, 210},   {15, "q8_K", 256, 292},   {16, "iq2_xxs", 256, 66},
    {17, "iq2_xs", 256, 74},  {18, "iq3_xxs", 256, 98}, {19, "iq1_s", 256, 50},
    {20, "iq4_nl", 32, 18},   {21, "iq3_s", 256, 110},  {22, "iq2_s", 256, 82},
    {23, "iq4_xs", 256, 136}, {24, "i8", 1, 1},         {25, "i16", 1, 2},
    {26, "i32", 1, 4},        {27, "i64", 1, 8},        {28, "f64", 1, 8},
    {29, "iq1_m", 256, 56},   {30, "bf16", 1, 2},       {34, "tq1_0", 256, 54},
    {35, "tq2_0", 256, 66},   {39, "mxfp4", 32, 17},    {40, "nvfp4", 64, 36},
};

struct FileType {
  uint64_t number;
  std::string_view name;
};
constexpr FileType kFileTypes[] = {
    {0, "F32"},      {1, "F16"},      {2, "Q4_0"},    {3, "Q4_1"},    {7, "Q8_0"},
    {8, "Q5_0"},     {9, "Q5_1"},     {10, "Q2_K"},   {11, "Q3_K_S"}, {12, "Q3_K_M"},
    {13, "Q3_K_L"},  {14, "Q4_K_S"},  {15, "Q4_K_M"}, {16, "Q5_K_S"}, {17, "Q5_K_M"},
    {18, "Q6_K"},    {19, "IQ2_XXS"}, {20, "IQ2_XS"}, {21, "Q2_K_S"}, {22, "IQ3_XS"},
    {23, "IQ3_XXS"}, {24, "IQ1_S"},   {25, "IQ4_NL"}, {26, "IQ3_S"},  {27, "IQ3_M"},
    {28, "IQ2_S"},   {29, "IQ2_M"},   {30, "IQ4_XS"}, {31, "IQ1_M"},  {32, "BF16"},
    {36, "TQ1_0"},   {37, "TQ2_0"},   {38, "MXFP4"},  {39, "NVFP4"},
};

const TensorType* tensor_type(uint32_t type) {
  for (const TensorType& row : kTensorTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

enum ValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Bytes of a scalar; 0 for strings, arrays and unknown types.
uint64_t scalar_bytes(uint32_t type) {
  switch (type) {
    case kUint8:
    case kInt8:
    case kBool:
      return 1;
    case kUint16:
    case kInt16:
      return 2;
    case kUint32:
    case kInt32:
    case kFloat32:
      return 4;
    case kUint64:
    case kInt64:
    case kFloat64:
      return 8;
    default:
      return 0;
  }
}

tl::unexpected<Error> broken(std::string detail) {
  return fail(Kind::kProtocol, Side::kHost, "GGUF header: " + std::move(detail));
}

// What stops the reading of a prefix: it is too short, or it is no GGUF.
struct Stop {
  uint64_t need = 0;
  std::optional<Error> error;
};

// Reads little-endian values. Once it has stopped, everything it returns is empty or zero.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  bool stopped() const { return stop_.has_value(); }
  const std::optional<Stop>& stop() const { return stop_; }
  uint64_t at() const { return at_; }

  void refuse(std::string detail) {
    if (!stop_) stop_ = Stop{0, broken(std::move(detail)).value()};
  }
  std::string_view take(uint64_t length) {
    if (stop_) return {};
    if (length > kMaxHeader || at_ + length > kMaxHeader) {
      stop_ = Stop{
          0, Error(Kind::kTooLarge, Side::kHost, "GGUF header is larger than the limit of 1 GiB")};
      return {};
    }
    if (length > bytes_.size() - at_) {
      stop_ = Stop{at_ + length, std::nullopt};
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, length);
    at_ += length;
    return taken;
  }
  uint64_t number(uint64_t length) {
    const std::string_view raw = take(length);
    uint64_t value = 0;
    for (size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  std::string_view text() { return take(number(8)); }

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;
  std::optional<Stop> stop_;
};

void skip_array(Reader& reader, int depth) {
  const auto type = static_cast<uint32_t>(reader.number(4));
  const uint64_t count = reader.number(8);
  if (reader.stopped()) return;
  if (const uint64_t size = scalar_bytes(type)) {
    reader.take(count > kMaxHeader ? count : count * size);
    return;
  }
  if ((type != kString && type != kArray) || depth >= kMaxArrayDepth) {
    return reader.refuse("array of unknown type " + std::to_string(type));
  }
  for (uint64_t i = 0; i < count && !reader.stopped(); ++i) {
    if (type == kString) {
      reader.text();
    } else {
      skip_array(reader, depth + 1);
    }
  }
}

void read_value(Reader& reader, const std::string& key, GgufHeader& header) {
  const auto type = static_cast<uint32_t>(reader.number(4));
  if (reader.stopped()) return;
  switch (type) {
    case kUint8:
    case kUint16:
    case kUint32:
    case kUint64:
    case kInt8:
    case kInt16:
    case kInt32:
    case kInt64:
    case kBool: {
      const uint64_t value = reader.number(scalar_bytes(type));
      if (!reader.stopped()) header.integers[key] = value;
      return;
    }
    case kFloat32:
    case kFloat64:
      reader.take(scalar_bytes(type));
      return;
    case kArray:
      skip_array(reader, 0);
      return;
    case kString: {
      const std::string_view text = reader.text();
      if (key == "tokenizer.chat_template") {
        header.chat_template.assign(text);
      } else if (text.size() <= kMaxStringKept) {
        header.strings[key].assign(text);
      }
      return;
    }
    default:
      reader.refuse("key '" + key + "' has the unknown type " + std::to_string(type));
  }
}

void read_tensor(Reader& reader, GgufHeader& header) {
  GgufTensor tensor;
  tensor.name.assign(reader.text());
  const uint64_t dimensions = reader.number(4);
  if (dimensions > kMaxDimensions) return reader.refuse("a tensor has too many dimensions");
  uint64_t elements = 1;
  for (uint64_t i = 0; i < dimensions; ++i) {
    tensor.shape.push_back(reader.number(8));
    if (__builtin_mul_overflow(elements, tensor.shape.back(), &elements)) {
      return reader.refuse("tensor '" + tensor.name + "' is impossibly large");
    }
  }
  tensor.type = static_cast<uint32_t>(reader.number(4));
  tensor.offset = reader.number(8);
  if (reader.stopped()) return;
  if (const TensorType* type = tensor_type(tensor.type)) {
    const uint64_t blocks = elements / type->block + (elements % type->block != 0);
    if (__builtin_mul_overflow(blocks, type->bytes, &tensor.bytes)) {
      return reader.refuse("tensor '" + tensor.name + "' is impossibly large");
    }
  }
  header.tensors.push_back(std::move(tensor));
}

void take_known(GgufHeader& header) {
  const auto text = [&](const std::string& key) {
    const auto found = header.strings.find(key);
    return found == header.strings.end() ? std::string() : found->second;
  };
  const auto number = [&](const std::string& key) -> std::optional<uint64_t> {
    const auto found = header.integers.find(key);
    if (found == header.integers.end()) return std::nullopt;
    return found->second;
  };
  header.architecture = text("general.architecture");
  header.name = text("general.name");
  header.tokenizer_model = text("tokenizer.ggml.model");
  header.file_type = number("general.file_type");
  header.context_length = number(header.architecture + ".context_length");
}

// Where the data begins and how long the file must be at least.
void place_data(Reader& reader, GgufHeader& header) {
  const auto given = header.integers.find("general.alignment");
  const uint64_t alignment = given == header.integers.end() ? 32 : given->second;
  if (alignment == 0 || alignment > (1u << 20)) return reader.refuse("impossible alignment");
  header.data_offset = (reader.at() + alignment - 1) / alignment * alignment;
  header.minimum_file_bytes = header.tensors.empty() ? reader.at() : header.data_offset;
  for (const GgufTensor& tensor : header.tensors) {
    uint64_t end = 0;
    if (__builtin_add_overflow(tensor.offset, tensor.bytes, &end) ||
        __builtin_add_overflow(end, header.data_offset, &end)) {
      return reader.refuse("tensor '" + tensor.name + "' lies impossibly far behind");
    }
    header.minimum_file_bytes = std::max(header.minimum_file_bytes, end);
  }
}

}  // namespace

std::string_view quantisation(const GgufHeader& header) {
  if (!header.file_type) return {};
  for (const FileType& row : kFileTypes) {
    if (row.number == *header.file_type) return row.name;
  }
  return {};
}

std::string_view ggml_type_name(uint32_t type) {
  const TensorType* row = tensor_type(type);
  return row ? row->name : std::string_view();
}

Result<GgufParse> parse_gguf(std::string_view prefix) {
  Reader reader(prefix);
  GgufHeader header;
  if (const size_t seen = std::min<size_t>(prefix.size(), 4);
      prefix.substr(0, seen) != std::string_view("GGUF").substr(0, seen)) {
    return broken("the file does not begin with GGUF");
  }
  reader.take(4);
  header.version = static_cast<uint32_t>(reader.number(4));
  if (!reader.stopped() && header.version != 2 && header.version != 3) {
    return broken("version " + std::to_string(header.version) + " is not known (2 and 3 are)");
  }
  const uint64_t tensors = reader.number(8);
  const uint64_t keys = reader.number(8);
  for (uint64_t i = 0; i < keys && !reader.stopped(); ++i) {
    const std::string key(reader.text());
    read_value(reader, key, header);
  }
  for (uint64_t i = 0; i < tensors && !reader.stopped(); ++i) read_tensor(reader, header);
  if (!reader.stopped()) place_data(reader, header);

  if (reader.stopped()) {
    if (reader.stop()->error) return fail(*reader.stop()->error);
    return GgufParse{std::nullopt, reader.stop()->need};
  }
  take_known(header);
  return GgufParse{std::move(header), 0};
}

}  // namespace anvil::wire
