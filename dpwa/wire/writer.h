#pragma once

#include <boost/endian/conversion.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dpwa/wire/frame.h"

namespace dpwa::wire {

// Builds one frame: room for the header first, then little-endian fields. One owner, one thread.
class Writer {
 public:
  Writer() : bytes_(header_bytes) {}

  void u8(std::uint8_t value) { store(value); }
  void u16(std::uint16_t value) { store(value); }
  void u32(std::uint32_t value) { store(value); }
  void u64(std::uint64_t value) { store(value); }
  void i64(std::int64_t value) { store(value); }
  void f64(double value) { store(value); }
  void bytes(std::span<const std::uint8_t> values);
  void reserved(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  // u16 length + text. Throws std::invalid_argument when a peer would refuse the text.
  void text(std::string_view value, std::size_t min_bytes, std::size_t max_bytes,
            std::string_view what);
  // The same with a u32 length.
  void long_text(std::string_view value, std::size_t max_bytes, std::string_view what);

  // Appends the CRC32C of the fields so far.
  void checksum();
  // Fills in the header for the body so far plus `bytes_to_follow`, and gives the frame away.
  std::vector<std::byte> finish(MessageType type, std::uint32_t request_id,
                                std::uint64_t bytes_to_follow = 0) &&;

 private:
  template <typename T>
  void store(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    boost::endian::endian_store<T, sizeof(T), boost::endian::order::little>(
        reinterpret_cast<unsigned char*>(bytes_.data() + at), value);
  }
  void append(std::string_view value);

  std::vector<std::byte> bytes_;
};

}  // namespace dpwa::wire
