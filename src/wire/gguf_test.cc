#include "wire/gguf.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace anvil::wire {
namespace {

// Writes GGUF headers, well-formed or not.
class Writer {
 public:
  Writer& number(uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i));
    return *this;
  }
  Writer& text(std::string_view text) {
    number(text.size(), 8);
    bytes_ += text;
    return *this;
  }
  Writer& head(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    bytes_ += "GGUF";
    return number(version, 4).number(tensors, 8).number(keys, 8);
  }
  Writer& key_text(std::string_view key, std::string_view value) {
    return text(key).number(8, 4).text(value);
  }
  Writer& key_u32(std::string_view key, uint32_t value) {
    return text(key).number(4, 4).number(value, 4);
  }
  Writer& tensor(std::string_view name, std::vector<uint64_t> shape, uint32_t type,
                 uint64_t offset) {
    text(name).number(shape.size(), 4);
    for (uint64_t size : shape) number(size, 8);
    return number(type, 4).number(offset, 8);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::string small_model() {
  Writer writer;
  writer.head(2, 9)
      .key_text("general.architecture", "gemma3")
      .key_text("general.name", "Gemma 3 270m")
      .key_u32("gemma3.context_length", 32768)
      .key_u32("general.file_type", 15)
      .key_text("tokenizer.ggml.model", "llama")
      .key_text("tokenizer.chat_template", "{{ messages }}");
  writer.text("tokenizer.ggml.tokens").number(9, 4).number(8, 4).number(3, 8);
  writer.text("<bos>").text("").text("a");
  writer.text("tokenizer.ggml.scores").number(9, 4).number(6, 4).number(2, 8).number(0, 8);
  writer.text("general.ratio").number(12, 4).number(0, 8);
  writer.tensor("token_embd.weight", {256, 4}, 12, 0).tensor("norm", {32}, 0, 576);
  return writer.bytes();
}

TEST(GgufTest, ReadsWhatAModelSaysAboutItself) {
  const std::string file = small_model();
  const auto parse = parse_gguf(file);
  ASSERT_TRUE(parse.has_value()) << parse.error().detail;
  ASSERT_TRUE(parse->header.has_value());
  const GgufHeader& header = *parse->header;
  EXPECT_EQ(header.version, 3u);
  EXPECT_EQ(header.architecture, "gemma3");
  EXPECT_EQ(header.name, "Gemma 3 270m");
  EXPECT_EQ(header.context_length, 32768u);
  EXPECT_EQ(quantisation(header), "Q4_K_M");
  EXPECT_EQ(header.tokenizer_model, "llama");
  EXPECT_EQ(header.chat_template, "{{ messages }}");
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].bytes, 4u * 144);
  EXPECT_EQ(ggml_type_name(header.tensors[0].type), "q4_K");
  EXPECT_EQ(header.tensors[1].bytes, 128u);
  EXPECT_EQ(header.data_offset % 32, 0u);
  EXPECT_EQ(header.minimum_file_bytes, header.data_offset + 576 + 128);
}

TEST(GgufTest, AsksForMoreAtEveryShorterPrefix) {
  const std::string file = small_model();
  for (size_t length = 0; length < file.size(); ++length) {
    const auto parse = parse_gguf(std::string_view(file).substr(0, length));
    ASSERT_TRUE(parse.has_value()) << length << ": " << parse.error().detail;
    EXPECT_FALSE(parse->header.has_value()) << length;
    EXPECT_GT(parse->need_bytes, length);
    EXPECT_LE(parse->need_bytes, file.size());
  }
}

TEST(GgufTest, DoesNotDependOnWhatFollows) {
  const std::string file = small_model();
  EXPECT_EQ(parse_gguf(file + "tensor data")->header->minimum_file_bytes,
            parse_gguf(file)->header->minimum_file_bytes);
}

TEST(GgufTest, TakesTheAlignmentOfTheFile) {
  Writer writer;
  writer.head(1, 1).key_u32("general.alignment", 4096).tensor("t", {3}, 24, 0);
  const auto parse = parse_gguf(writer.bytes());
  EXPECT_EQ(parse->header->data_offset, 4096u);
  EXPECT_EQ(parse->header->minimum_file_bytes, 4099u);
  EXPECT_EQ(quantisation(*parse->header), "");
}

TEST(GgufTest, LeavesTheSizeOfUnknownTypesOut) {
  Writer writer;
  writer.head(1, 0).tensor("t", {8}, 999, 64);
  const auto parse = parse_gguf(writer.bytes());
  EXPECT_EQ(parse->header->tensors[0].bytes, 0u);
  EXPECT_EQ(ggml_type_name(999), "");
}

TEST(GgufTest, RefusesWhatIsNoGguf) {
  const auto kind = [](const std::string& bytes) -> std::string {
    const auto parse = parse_gguf(bytes);
    return parse ? "accepted" : std::string(describe(parse.error().kind).name);
  };
  EXPECT_EQ(kind("GGML"), "protocol");
  EXPECT_EQ(kind("PK"), "protocol");
  EXPECT_EQ(kind("version https://git-lfs.github.com/spec/v1"), "protocol");
  EXPECT_EQ(kind(Writer().head(0, 0, 1).bytes()), "protocol");
  EXPECT_EQ(kind(Writer().head(0, 1).text("k").number(99, 4).bytes()), "protocol");
  EXPECT_EQ(kind(Writer().head(0, 1).text("k").number(9, 4).number(77, 4).number(1, 8).bytes()),
            "protocol");
  EXPECT_EQ(kind(Writer().head(0, 1).number(~0ull, 8).bytes()), "too_large");
  EXPECT_EQ(kind(Writer().head(0, 1).text("k").number(9, 4).number(10, 4).number(~0ull, 8).bytes()),
            "too_large");
  EXPECT_EQ(kind(Writer().head(0, 1).key_u32("general.alignment", 0).bytes()), "protocol");
  EXPECT_EQ(kind(Writer().head(1, 0).text("t").number(9, 4).bytes()), "protocol");
  EXPECT_EQ(kind(Writer().head(1, 0).tensor("t", {1ull << 40, 1ull << 40}, 0, 0).bytes()),
            "protocol");
  EXPECT_EQ(kind(Writer().head(1, 0).tensor("t", {1ull << 62}, 0, 0).bytes()), "protocol");
  EXPECT_EQ(kind(Writer().head(1, 0).tensor("t", {1}, 0, ~0ull).bytes()), "protocol");
}

TEST(GgufTest, BoundsNestedArrays) {
  Writer writer;
  writer.head(0, 1).text("k").number(9, 4);
  for (int i = 0; i < 10; ++i) writer.number(9, 4).number(1, 8);
  EXPECT_FALSE(parse_gguf(writer.bytes()).has_value());
}

TEST(GgufTest, ReadsARealFile) {
  const char* path = std::getenv("ANVIL_GGUF");
  if (path == nullptr) GTEST_SKIP() << "set ANVIL_GGUF to a GGUF file";
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  ASSERT_TRUE(file.good());
  const auto size = static_cast<uint64_t>(file.tellg());
  uint64_t length = 4096;
  for (int round = 0; round < 40; ++round) {
    std::string prefix(std::min(length, size), '\0');
    file.seekg(0);
    file.read(prefix.data(), static_cast<std::streamsize>(prefix.size()));
    const auto parse = parse_gguf(prefix);
    ASSERT_TRUE(parse.has_value()) << parse.error().detail;
    if (parse->header) {
      EXPECT_FALSE(parse->header->architecture.empty());
      EXPECT_LE(parse->header->minimum_file_bytes, size);
      RecordProperty("minimum", std::to_string(parse->header->minimum_file_bytes));
      RecordProperty("quantisation", std::string(quantisation(*parse->header)));
      return;
    }
    ASSERT_LT(prefix.size(), size) << "the whole file holds no whole header";
    length = std::max(length * 2, parse->need_bytes);
  }
  FAIL() << "the header did not end";
}

}  // namespace
}  // namespace anvil::wire
