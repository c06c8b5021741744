#include "dpwa/base/checksum.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace dpwa::wire {
namespace {

std::uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text)));
}

TEST_CASE("CRC32C gives the known answers of RFC 3720") {
  CHECK(crc_of("123456789") == 0xE3069283u);
  const std::vector<std::byte> zeros(32, std::byte{0});
  CHECK(crc32c(zeros) == 0x8A9136AAu);
  const std::vector<std::byte> ones(32, std::byte{0xFF});
  CHECK(crc32c(ones) == 0x62A8AB43u);
}

TEST_CASE("CRC32C of nothing is zero") {
  CHECK(crc_of("") == 0u);
}

TEST_CASE("CRC32C of data in parts is that of the whole") {
  std::vector<std::byte> data(5000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  Crc32c checksum;
  CHECK(checksum.value() == 0u);
  for (std::size_t at = 0, part = 0; at < data.size(); at += part++) {
    checksum.update(std::span(data).subspan(at, std::min(part, data.size() - at)));
  }
  CHECK(checksum.value() == crc32c(data));
}

TEST_CASE("CRC32C does not depend on the alignment of the data") {
  std::vector<std::byte> data(1000 + 64);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  for (std::size_t shift = 1; shift < 64; ++shift) {
    std::vector<std::byte> moved(shift + 1000);
    std::copy_n(data.begin(), 1000, moved.begin() + static_cast<std::ptrdiff_t>(shift));
    CHECK(crc32c(std::span(moved).subspan(shift)) == crc32c(std::span(data).first(1000)));
  }
}

}  // namespace
}  // namespace dpwa::wire
