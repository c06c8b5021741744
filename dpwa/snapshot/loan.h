#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "dpwa/snapshot/memory_file.h"

namespace dpwa {

// Where memory lies that a message lends to its receiver, another process of the same host.
struct MemoryPlace {
  std::uint32_t memory = 0;  // the lender's number of the memory file, which it has shared
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  // MAPPED, PUSH: the generation of the memory file, which changes when the lender takes its memory
  // back. ANSWER: the number of the lease on the connection, counted from 1, for READ.
  std::uint64_t mark = 0;
  bool operator==(const MemoryPlace&) const = default;
};

// Memory that is read where another process has it. It may change at any time: what was read counts
// only if the loan is intact() afterwards. Values of this process are a loan of bytes alone.
struct Loan {
  std::span<const std::byte> bytes;
  std::shared_ptr<MemoryFile> file{};  // that holds them; null: memory of this process
  // The file whose generation tells that the memory was taken back: that of the bytes, or one for
  // all that its lender lends. Null: it stays.
  std::shared_ptr<const MemoryFile> watched{};
  std::uint64_t generation = 0;  // of that file, as it was lent

  // Whether what was read before this call was still lent.
  bool intact() const { return !watched || watched->generation() == generation; }
};

}  // namespace dpwa
