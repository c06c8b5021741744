#include "dpwa/kvworker/push_memory.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "dpwa/snapshot/reused_memory.h"

namespace dpwa::kvstore {
namespace {

// Of the files that a server maps of one worker; pushes beyond them go over TCP.
constexpr std::size_t most_memories = 1024;

std::size_t room(const ValueSpec& spec) {
  return (spec.bytes() + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

void PushMemory::add(const Key& key, const ValueSpec& spec) {
  if (spec.bytes() >= least_reused_bytes) values_[key].spec = spec;
}

// One memory for the same buffer of all keys that lack it: programs initialise their keys before
// the first push.
void PushMemory::grow(std::size_t buffers) {
  const auto lacks = [&](const Value& value) { return value.buffers.size() < buffers; };
  std::size_t bytes = 0;
  for (const auto& [key, value] : values_) {
    if (lacks(value)) bytes += room(value.spec);
  }
  AlignedBuffer memory = AlignedBuffer::shared(bytes);
  ++memories_;
  client_.share(memory);
  std::byte* data = memory.bytes().data();
  for (auto& [key, value] : values_) {
    if (!lacks(value)) continue;
    value.buffers.push_back({memory, data, {}});
    data += room(value.spec);
  }
}

PushMemory::Taken PushMemory::take(const Key& key) {
  const auto found = values_.find(key);
  if (found == values_.end() || !client_.uses_memory()) return {};
  Value& value = found->second;
  const auto is_free = [](const Buffer& buffer) { return buffer.owner.expired(); };
  auto buffer = std::ranges::find_if(value.buffers, is_free);
  if (buffer == value.buffers.end()) {
    if (memories_ >= most_memories) return {};
    grow(value.buffers.size() + 1);
    buffer = std::prev(value.buffers.end());
  }
  const auto owner = std::make_shared<AlignedBuffer>(buffer->memory);
  buffer->owner = owner;
  return {{buffer->data, value.spec.bytes()}, owner};
}

}  // namespace dpwa::kvstore
