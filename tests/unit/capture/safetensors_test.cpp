#include "quoka/capture/safetensors.hpp"

#include <cstring>
#include <fstream>

#include "quoka/core/error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace quoka {
namespace {

using namespace test;

std::string file_bytes(const std::string& header, const std::string& data, std::uint64_t length) {
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

std::string file_bytes(const std::string& header, const std::string& data) {
  return file_bytes(header, data, header.size());
}

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void check_refused(const std::string& bytes, const std::string& message,
                   const SafetensorsLimits& limits = {}) {
  const TempDir directory;
  write(directory / "x.safetensors", bytes);
  INFO(message);
  CHECK_THROWS_AS(SafetensorsFile(directory / "x.safetensors", limits), FormatError);
  CHECK_THROWS_WITH(SafetensorsFile(directory / "x.safetensors", limits),
                    contains(message) && contains("x.safetensors"));
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// A file of the entries with n zero bytes of data.
std::string with_data(const std::string& entries, std::size_t n) {
  return file_bytes("{" + entries + "}", std::string(n, '\0'));
}

}  // namespace

TEST_CASE("a safetensors file gives its tensors and texts", "[capture][safetensors]") {
  const TempDir directory;
  const std::string header =
      "{\"__metadata__\":{\"a\":\"b\"}," + entry("x", "F16", "[2,1]", "[0,4]") + "," +
      entry("none", "I64", "[0,3]", "[4,4]") + "," + entry("scalar", "F32", "[]", "[4,8]") + "}   ";
  write(directory / "x", file_bytes(header, "abcdefgh"));
  SafetensorsFile file(directory / "x");
  CHECK(file.metadata().at("a") == "b");
  CHECK(file.tensors().size() == 3);
  CHECK(file.tensors().at("none").shape == std::vector<Index>{0, 3});
  CHECK(file.tensors().at("scalar").shape.empty());
  std::string bytes(2, ' ');
  file.read(file.tensors().at("x"), 1, std::as_writable_bytes(std::span(bytes)));
  CHECK(bytes == "cd");
}

TEST_CASE("headers that do not fit the file are refused", "[capture][safetensors]") {
  check_refused("abc", "has 3 bytes");
  check_refused(file_bytes("{}", "", 100), "cut off");
  check_refused(file_bytes("{}", "", ~std::uint64_t{0}), "header has 18446744073709551615 bytes");
  check_refused(file_bytes("{}", "", std::uint64_t{20} << 20), "header has 20971520 bytes");
  check_refused(file_bytes("", ""), "does not begin");
}

TEST_CASE("headers that are not the JSON of the format are refused", "[capture][safetensors]") {
  check_refused(file_bytes(" {}", ""), "does not begin");
  check_refused(file_bytes("{}x", ""), "something else than an }");
  check_refused(file_bytes("{}\n", ""), "something else than an }");
  check_refused(file_bytes("{}{}", ""), "not valid JSON");
  check_refused(file_bytes("{\"a\":}", ""), "not valid JSON");
  check_refused(file_bytes("{\"\xff\":1}", ""), "not valid JSON");
  check_refused(file_bytes(std::string("{}\0}", 4), ""), "zero byte");
  check_refused(file_bytes("{\"a\":[[[[[[]]]]]]}", ""), "nested more than 3 levels");
  check_refused(file_bytes("{\"a\":1}", ""), "not described by exactly");
  check_refused(
      with_data("\"x\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0],\"more\":1}", 0),
      "not described by exactly");
  check_refused(file_bytes("{\"__metadata__\":{\"a\":1}}", ""), "'a' is not a text");
  check_refused(file_bytes("{\"__metadata__\":[]}", ""), "__metadata__ is not an object");
}

TEST_CASE("a name that appears twice is refused however it is written", "[capture][safetensors]") {
  const std::string x = entry("x", "F32", "[0]", "[0,0]");
  check_refused(with_data(x + "," + x, 0), "'x' appears twice");
  check_refused(with_data(x + "," + entry("\\u0078", "F32", "[0]", "[0,0]"), 0),
                "'x' appears twice");
  check_refused(file_bytes("{\"__metadata__\":{\"a\":\"1\",\"\\u0061\":\"2\"}}", ""),
                "'a' appears twice");
}

TEST_CASE("number formats that are not accepted are refused by name", "[capture][safetensors]") {
  for (const char* dtype : {"F64", "F8_E4M3", "BOOL", "U8", "F4", "float32", ""}) {
    check_refused(with_data(entry("x", dtype, "[0]", "[0,0]"), 0),
                  std::string("dtype '") + dtype + "' is not accepted");
  }
}

TEST_CASE("shapes and places that are not whole numbers are refused", "[capture][safetensors]") {
  check_refused(with_data(entry("x", "F32", "[-1]", "[0,0]"), 0), "something else than whole");
  check_refused(with_data(entry("x", "F32", "[1.0]", "[0,4]"), 4), "something else than whole");
  check_refused(with_data(entry("x", "F32", "[\"1\"]", "[0,4]"), 4), "something else than whole");
  check_refused(with_data(entry("x", "F32", "1", "[0,4]"), 4), "is not a list");
  check_refused(with_data(entry("x", "F32", "[1]", "[0,4,8]"), 8), "3 numbers instead of 2");
  check_refused(with_data(entry("x", "F32", "[1]", "[0,99999999999999999999]"), 4),
                "something else than whole");
}

TEST_CASE("shapes that are too large are refused before anything is allocated",
          "[capture][safetensors]") {
  check_refused(with_data(entry("x", "F32", "[1,1,1,1,1]", "[0,4]"), 4), "5 axes, more than 4");
  check_refused(with_data(entry("x", "F32", "[4294967296]", "[0,4]"), 4), "extent of 4294967296");
  check_refused(with_data(entry("x", "F32", "[2147483648,2147483648,2147483648]", "[0,4]"), 4),
                "does not fit into 64 bits");
  check_refused(with_data(entry("x", "F32", "[2]", "[0,4]"), 4), "needs 8 bytes");
}

TEST_CASE("tensors that overlap or leave holes or leave the file are refused",
          "[capture][safetensors]") {
  const std::string first = entry("a", "F32", "[1]", "[0,4]");
  check_refused(with_data(first + "," + entry("b", "F32", "[1]", "[0,4]"), 4), "may not overlap");
  check_refused(with_data(first + "," + entry("b", "F32", "[1]", "[2,6]"), 6), "may not overlap");
  check_refused(with_data(first + "," + entry("b", "F32", "[1]", "[8,12]"), 12), "leave holes");
  check_refused(with_data(entry("a", "F32", "[1]", "[4,8]"), 8), "leave holes");
  check_refused(with_data(first, 5), "the file at 5");
  check_refused(with_data(first, 3), "do not lie in the 3 bytes");
  check_refused(with_data(entry("a", "F32", "[1]", "[4,0]"), 4), "do not lie in");
}

TEST_CASE("headers with too many tensors or values are refused", "[capture][safetensors]") {
  SafetensorsLimits limits;
  limits.max_tensors = 2;
  std::string entries;
  for (const char* name : {"a", "b", "c"}) {
    entries += (entries.empty() ? "" : ",") + entry(name, "F32", "[0]", "[0,0]");
  }
  check_refused(with_data(entries, 0), "more than 2 tensors", limits);
  std::string shape = "[0";
  for (int i = 0; i < 40; ++i) {
    shape += ",0";
  }
  check_refused(with_data(entry("x", "F32", shape + "]", "[0,0]"), 0), "more than 32 values",
                limits);
}

TEST_CASE("a file that shrinks while it is read is an error", "[capture][safetensors]") {
  const TempDir directory;
  const auto path = directory / "x.safetensors";
  const std::string data(100'000, 'x');  // more than any buffer that was read ahead
  write(path, file_bytes("{" + entry("x", "F32", "[25000]", "[0,100000]") + "}", data));
  SafetensorsFile file(path);
  std::filesystem::resize_file(path, 1000);
  std::vector<std::byte> bytes(100'000);
  CHECK_THROWS_WITH(file.read(file.tensors().at("x"), 0, bytes), contains("ended while"));
}

}  // namespace quoka
