#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/snapshot/byte_range.h"

namespace dpwa::same_host {

// One snapshot buffer of a peer, mapped for reading. It stays valid when the peer dies. What it
// holds may change at any moment: whether a read was whole, the generation tells afterwards.
class Mapping {
 public:
  // `file`: a peer's memory file of `data_bytes`. Refuses, and says why, anything that could fail
  // under a reader: a file that is no memory, can shrink, or has another size.
  static boost::system::result<std::shared_ptr<Mapping>, std::string> open(FileDescriptor file,
                                                                           std::size_t data_bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Makes the pages of a range present, each once; false when the system cannot.
  bool populate(ByteRange range);
  std::span<const std::byte> bytes(ByteRange range) const;
  // Reads before this call are of the memory as it was when the result was the generation.
  std::uint64_t generation() const;

 private:
  Mapping(const std::byte* data, std::size_t data_bytes) : data_(data), data_bytes_(data_bytes) {}

  const std::byte* const data_;
  const std::size_t data_bytes_;
  ByteRange populated_;
};

}  // namespace dpwa::same_host
