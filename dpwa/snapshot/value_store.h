#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace dpwa {

// One version of a value that peers may have: immutable, and there for as long as it is held. Any
// thread.
class Value {
 public:
  virtual ~Value() = default;
  virtual std::uint64_t version() const = 0;  // above 0; grows with every change of the value
  virtual std::span<const std::byte> bytes() const = 0;
  // CRC32C of bytes [offset, offset + length).
  virtual std::uint32_t chunk_checksum(std::size_t offset, std::size_t length) const = 0;
};

// The values that a node serves, by name, each with a size of its own. The snapshot store is one:
// the model is its only value. The keys of a parameter server are another. Any thread.
class ValueStore {
 public:
  virtual ~ValueStore() = default;
  // Null: there is no value of that name, or none yet.
  virtual std::shared_ptr<const Value> latest(std::string_view name) const = 0;
};

}  // namespace dpwa
