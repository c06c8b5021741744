#include "test/dpwa/collectives/shared_members.h"

#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "test/support/eventually.h"

namespace dpwa::test {

using namespace collectives;

std::vector<std::unique_ptr<SharedGroup>> shared_members(int size, std::size_t processors) {
  std::vector<std::shared_ptr<LentMemory>> memory;
  for (int rank = 0; rank < size; ++rank) {
    memory.push_back(LentMemory::create());
    if (!memory.back()) throw std::runtime_error("no memory to share");
  }
  std::vector<std::unique_ptr<SharedGroup>> members;
  for (int rank = 0; rank < size; ++rank) {
    std::vector<std::optional<BorrowedMemory>> others;
    for (int other = 0; other < size; ++other) {
      if (other == rank) {
        others.emplace_back(std::nullopt);
        continue;
      }
      const int file = memory[static_cast<std::size_t>(other)]->descriptor();
      auto borrowed = BorrowedMemory::open(FileDescriptor(::dup(file)));
      if (!borrowed) throw std::runtime_error(borrowed.error());
      others.emplace_back(*std::move(borrowed));
    }
    members.push_back(std::make_unique<SharedGroup>(rank, memory[static_cast<std::size_t>(rank)],
                                                    std::move(others), processors));
  }
  return members;
}

std::vector<std::vector<std::byte>> run_shared(
    int size, std::size_t processors,
    const std::function<std::vector<std::byte>(SharedGroup&)>& body) {
  const auto members = shared_members(size, processors);
  std::vector<std::vector<std::byte>> results(members.size());
  at_once(members.size(), [&](std::size_t rank) { results[rank] = body(*members[rank]); });
  return results;
}

}  // namespace dpwa::test
