#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "dpwa/kvclient/store_client.h"
#include "dpwa/kvstore/values.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::kvstore {

// Memory for the values of pushes that servers of this host read where they are, instead of
// receiving them over TCP (StoreClient::share). It grows to as many buffers of a key as it has
// pushes under way at a time, and stays.
class PushMemory {
 public:
  struct Taken {
    std::span<std::byte> bytes{};
    std::shared_ptr<void> owner{};
    explicit operator bool() const { return owner != nullptr; }
  };

  explicit PushMemory(kvclient::StoreClient& client) : client_(client) {}

  // A key that has been initialised.
  void add(const Key& key, const ValueSpec& spec);
  // Memory for the next push of this key, with values of earlier ones. It is free again when its
  // owner has ended. None: no server of this host reads it, or the value is too small.
  Taken take(const Key& key);

 private:
  struct Buffer {
    AlignedBuffer memory;
    std::byte* data = nullptr;  // in it
    std::weak_ptr<void> owner;  // who has it
  };
  struct Value {
    ValueSpec spec;
    std::vector<Buffer> buffers;
  };
  void grow(std::size_t buffers);

  kvclient::StoreClient& client_;
  std::map<Key, Value> values_;
  std::size_t memories_ = 0;
};

}  // namespace dpwa::kvstore
