#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/threads.h"
#include "dpwa/rules/membership.h"

namespace dpwa {

// The membership of a node, shared by its threads. Each call reads the clock itself, and holds a
// lock for as long as one message takes. Membership decides. This class only knows which addresses
// are of use: a loopback address is of no use on another machine.
class Members {
 public:
  // Without exchanges: the members are always these names, and no node may join.
  Members(const std::string& self, std::uint64_t incarnation,
          const std::vector<std::string>& peers);
  Members(MemberClaim self, std::vector<MemberClaim> listed, MembershipOptions options,
          std::uint64_t random_seed);

  bool exchanges() const { return exchanges_; }

  bool exchange_is_due(const std::string& to) const;
  MemberExchange request(const std::string& to);
  MemberExchange answer(const std::string& to, const MemberExchange& request);
  // `address`: of the other end of the connection, numeric.
  void merge(const std::string& from, std::uint64_t incarnation, MemberExchange exchange,
             const std::string& address);
  // Whether the table of `from` has parts that are still wanted.
  bool merge_answer(const std::string& from, std::uint64_t incarnation, MemberExchange exchange,
                    const std::string& address);
  void heard(const std::string& name, std::uint64_t incarnation);
  void reached(const std::string& name, std::uint64_t incarnation);
  void failed(const std::string& name);
  void keep(const std::string& name);
  void list(const MemberClaim& claim);
  void unlist(const std::string& name);
  // From now on the addresses of this member are those of the last answer to the name of its host.
  void follow(const std::string& name, const std::string& host);
  std::string host_of(const std::string& name) const;  // empty: an address, or not listed
  void leave();

  // Lets time pass. The result: the members to ask beside the pulls.
  std::vector<MemberClaim> tick();
  // Some of the running members, to tell them something at once.
  std::vector<MemberClaim> some_running(std::size_t most);

  Membership::Admission admission(const std::string& name) const;
  // The claim held of `name`, with the status to act on.
  std::optional<MemberClaim> find(const std::string& name) const;
  bool is_listed(const std::string& name) const;
  // Whether the file has `name` at an address within `network` (network.h), or at none.
  bool is_listed_at(const std::string& name, const std::string& network) const;
  MemberClaim self() const;
  std::vector<Member> all() const;  // by PeerId, free places too
  std::size_t size() const;         // places, free ones too
  std::optional<MemberClaim> claim_at(PeerId place) const;
  // The changes since `version`, by PeerId, and the version that includes them.
  struct News {
    std::uint64_t version = 0;
    std::vector<std::pair<PeerId, Member>> members;
  };
  News since(std::uint64_t version) const;
  std::vector<PeerId> running_listed() const;
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  void take_up_hosts() DPWA_REQUIRES(mutex_);
  void changed() DPWA_REQUIRES(mutex_) {
    version_.store(membership_.version(), std::memory_order_release);
  }

  const bool exchanges_;
  mutable Mutex mutex_;
  Membership membership_ DPWA_GUARDED_BY(mutex_);
  Random random_ DPWA_GUARDED_BY(mutex_);
  std::map<std::string, std::string> hosts_ DPWA_GUARDED_BY(mutex_);  // by the name of the member
  std::atomic<std::uint64_t> version_;
};

// Keeps the credible part of a message that came from `address`. A sender that states a loopback
// address is dialled at the address that it called from. Other members with such an address are
// left out, and so are claims of processes that begin more than a day in the future.
//
// A link-local address (fe80::) identifies no node beyond the link: a sender that has no other
// address is also dialled at the address that it called from.
void keep_believable(MemberExchange& exchange, const std::string& address, std::uint64_t now_us);

// Keeps the part of a message that may be sent, so that encoding it never fails. The scope of a
// link-local address (fe80::1%eth0) is valid only on this host and is not sent, and a claim that
// MEMBERS cannot carry is left out. The own node stays: without an address to send it states "::",
// and is dialled at the address that it calls from.
void keep_tellable(MemberExchange& exchange);

}  // namespace dpwa
