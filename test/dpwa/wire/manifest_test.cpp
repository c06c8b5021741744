#include <doctest/doctest.h>
#include <openssl/evp.h>

#include <stdexcept>

#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

void put(std::vector<std::byte>& out, std::uint64_t value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i) out.push_back(std::byte(value >> (8 * i)));
}

// A tensor as the protocol writes it, without any check.
void put_tensor(std::vector<std::byte>& out, std::string_view name, int dtype, int rule,
                const std::vector<std::uint64_t>& shape) {
  put(out, name.size(), 2);
  for (const char c : name) out.push_back(std::byte(c));
  put(out, dtype, 1);
  put(out, rule, 1);
  put(out, shape.size(), 1);
  for (const std::uint64_t extent : shape) put(out, extent, 8);
}

std::vector<std::byte> with_one_tensor(std::string_view name, int dtype, int rule,
                                       const std::vector<std::uint64_t>& shape) {
  std::vector<std::byte> content;
  put(content, 1, 4);
  put_tensor(content, name, dtype, rule, shape);
  return sealed(content);
}

TEST_CASE("a MANIFEST survives the round trip") {
  const Manifest sent = sample_manifest();
  const auto manifest = decode_manifest(body_of(encode(sent, 1)));
  REQUIRE(manifest.has_value());
  CHECK(manifest->tensors() == sent.tensors());
  CHECK(manifest->fingerprint() == sent.fingerprint());
  CHECK(manifest->total_bytes() == sent.total_bytes());
  CHECK_FALSE(first_difference({"w1", *manifest}, {"w2", sent}));
}

TEST_CASE("an empty MANIFEST survives the round trip") {
  const auto manifest = decode_manifest(body_of(encode(Manifest(std::vector<TensorSpec>{}), 1)));
  REQUIRE(manifest.has_value());
  CHECK(manifest->tensors().empty());
}

TEST_CASE("the largest tensor description survives the round trip") {
  std::vector<std::uint64_t> shape(max_rank, 1);
  shape.front() = max_snapshot_bytes;
  const std::string name(max_tensor_name_bytes, 'n');
  const Manifest sent({{name, DType::uint8, BlendRule::carry, shape}});
  const auto manifest = decode_manifest(body_of(encode(sent, 1)));
  REQUIRE(manifest.has_value());
  CHECK(manifest->total_bytes() == max_snapshot_bytes);
}

TEST_CASE("the fingerprint is the SHA-256 of its tag and the encoded tensor list") {
  const Manifest manifest = sample_manifest();
  const auto frame = encode(manifest, 1);
  const auto body = body_of(frame);
  std::string text = "dpwa-manifest-1";
  text.append(reinterpret_cast<const char*>(body.data()), body.size() - 4);
  Fingerprint digest{};
  REQUIRE(EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  CHECK(manifest.fingerprint() == digest);
}

TEST_CASE("a tensor with an unknown dtype or rule, a bad name or too many dimensions is refused") {
  REQUIRE(decode_manifest(with_one_tensor("w", 1, 1, {2, 3})).has_value());
  for (const int dtype : {0, 11, 255}) {
    CHECK(fault_of(decode_manifest(with_one_tensor("w", dtype, 3, {2}))) == Fault::bad_value);
  }
  for (const int rule : {0, 4, 255}) {
    CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, rule, {2}))) == Fault::bad_value);
  }
  CHECK(fault_of(decode_manifest(with_one_tensor("", 1, 1, {2}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("a\nb", 1, 1, {2}))) == Fault::bad_value);
  const std::string long_name(256, 'n');
  CHECK(fault_of(decode_manifest(with_one_tensor(long_name, 1, 1, {2}))) == Fault::bad_value);
  const std::vector<std::uint64_t> deep(max_rank + 1, 1);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 1, deep))) == Fault::bad_value);
}

TEST_CASE("a dtype that does not fit its blend rule is refused") {
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 5, 1, {2}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 2, {2}))) == Fault::bad_value);
}

TEST_CASE("sizes that overflow are refused") {
  const std::uint64_t big = std::uint64_t{1} << 33;
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 1, {big, big}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 1, 1, {~0ull}))) == Fault::bad_value);
  CHECK(fault_of(decode_manifest(with_one_tensor("w", 2, 1, {1ull << 48}))) == Fault::bad_value);

  std::vector<std::byte> content;
  put(content, 40, 4);
  for (int i = 0; i < 40; ++i) {
    put_tensor(content, std::string("w").append(std::to_string(i)), 9, 3, {1ull << 47});
  }
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
}

TEST_CASE("a name used twice is refused") {
  std::vector<std::byte> content;
  put(content, 2, 4);
  put_tensor(content, "w", 1, 1, {2});
  put_tensor(content, "w", 1, 1, {3});
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
}

TEST_CASE("a tensor count beyond the bytes sent or beyond the bound is refused") {
  std::vector<std::byte> content;
  put(content, 65536, 4);
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::truncated);
  content.clear();
  put(content, 65537, 4);
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
  content.clear();
  put(content, 0xFFFFFFFF, 4);
  CHECK(fault_of(decode_manifest(sealed(content))) == Fault::bad_value);
}

}  // namespace
}  // namespace dpwa::wire
