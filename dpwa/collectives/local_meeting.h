#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/time.h"
#include "dpwa/collectives/lent_memory.h"

namespace dpwa::collectives {

// Where the members of a group that are on one host exchange the memory that they lend, over Unix
// sockets between processes of one user. One thread.
class LocalMeeting {
 public:
  LocalMeeting();  // throws std::system_error

  // Tells the others where to come, in one line without spaces; from each member to all others, by
  // other means.
  const std::string& invitation() const { return invitation_; }
  // What the invitations of processes that can share memory have in common: those of one user, host
  // and network namespace.
  static std::string ground_of(const std::string& invitation);

  struct Member {
    BorrowedMemory memory;
    FileDescriptor socket;  // at its end when the other process ends
    std::size_t processors = 1;
  };
  struct Terms {
    int rank = 0;
    std::uint64_t group = 0;  // processes that name different ones do not meet
    TimePoint until{};
    std::stop_token stop{};
    std::size_t processors = 1;  // that this process may use
  };
  // The other members by rank; none at the own one. Throws std::runtime_error: one has not come, or
  // does not fit.
  std::vector<std::optional<Member>> meet(std::span<const std::string> invitations,
                                          const LentMemory& own, const Terms& terms);

 private:
  FileDescriptor listener_;
  std::string invitation_;
};

}  // namespace dpwa::collectives
