#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace dpwa {
class Security;
namespace group {
class SharedEntries;
}
}  // namespace dpwa

namespace dpwa::collective {

// One member's view of a group that is to be formed.
struct GroupOptions {
  int rank = 0;
  int size = 1;
  // Counts the groups of a run: members of different epochs never form one group.
  std::uint64_t epoch = 0;
  // A hash of the members: processes that were given different members never form one group either.
  std::uint64_t members = 0;
  // By rank, for messages: the program's names of the members. Empty: they have only ranks.
  std::vector<std::string> names;
  // Where this node listens for its peers: the host name or address that they use. Neither
  // environment variables nor interfaces are looked at.
  std::string own_address = "127.0.0.1";
  // Of connections that the engine encrypts; null: none are.
  std::shared_ptr<const Security> security;
  // Whether members of one host may share memory.
  bool same_host = true;
  // Ends forming early.
  std::stop_token stop{};
  // How long forming waits for the last member and for all connections.
  std::chrono::milliseconds form_timeout{30'000};
  // How long an operation waits for one message of a peer before it fails.
  std::chrono::milliseconds timeout{300'000};
  // Called once, on a thread of the engine, when the group is broken: a member, perhaps this one,
  // has ended or aborted. It must return soon, must not call the group, and must not throw.
  std::function<void()> on_broken;
};

// This node's place in one group of one epoch, whatever connects the members. Operations are called
// by one thread at a time, in the same order by all members; abort(), abandon() and what is known
// of the end of the group by any thread.
//
// A group is useless after a member has died: its operations fail, at the latest after the timeout
// of the group. Abort it, destroy it, and form the next one.
class StepGroup {
 public:
  virtual ~StepGroup() = default;
  StepGroup(const StepGroup&) = delete;
  StepGroup& operator=(const StepGroup&) = delete;

  const GroupOptions& options() const { return options_; }
  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::uint64_t epoch() const { return options_.epoch; }
  // By rank; empty: they have none.
  const std::vector<std::string>& names() const { return options_.names; }
  virtual const std::string& engine() const = 0;
  // How its members are connected; empty: as always with this engine.
  virtual const std::string& setting() const = 0;

  // Ends all operations under way with an error, here and at the other members, within
  // milliseconds. Every later operation fails.
  virtual void abort() noexcept = 0;
  // The same, because `rank` is lost. The others are told, if the engine can do that.
  virtual void abandon(int rank) noexcept = 0;
  virtual bool aborted() const = 0;
  // Whether it is of no further use: aborted here, or broken by the end of another member.
  virtual bool broken() const = 0;
  // The rank whose end broke the group, as far as this member knows. If several ended at once, any
  // of them; none if a member has aborted. A hint for messages: it may arrive some milliseconds
  // after the first error, or never.
  virtual std::optional<int> lost_rank() const = 0;
  // Leaves in order: waits, at most `limit`, until all members call it, so that the others still
  // receive their data. After this the group can only be destroyed.
  virtual void leave(std::chrono::milliseconds limit) noexcept = 0;

  // Runs `operation`, and converts its exceptions to a CollectiveError with the name `what`.
  virtual void run(const std::string& what, const std::function<void()>& operation) const = 0;
  // Bytes in host memory. Exceptions of the engine pass through, so call these in run(). `all` gets
  // the `own` of every member, in the order of ranks; all have the same size.
  virtual void gather(std::span<const std::byte> own, std::span<std::byte> all) const = 0;
  // Fills `data` with that of `root`.
  virtual void broadcast(std::span<std::byte> data, int root) const = 0;

 protected:
  explicit StepGroup(GroupOptions options) : options_(std::move(options)) {}

 private:
  const GroupOptions options_;
};

// How long a rank that leaves in order waits for the others.
inline constexpr std::chrono::milliseconds leave_limit(2000);

// An engine, as those that need groups of it know it. Copies may outlive the node; any thread.
struct Connector {
  std::string engine;        // its name
  std::string setting;       // how it is set up, for the log; empty: there is nothing to say
  bool has_members = false;  // a launcher has connected them: they need not meet
  // Connects this member with the others, which meet over these entries. Blocks for form_timeout at
  // most. Throws CollectiveError, and other exceptions.
  std::function<std::unique_ptr<StepGroup>(const GroupOptions&,
                                           const std::shared_ptr<group::SharedEntries>&)>
      form;
};

}  // namespace dpwa::collective
