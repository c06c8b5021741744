#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dpwa/base/backoff.h"
#include "dpwa/base/invariant.h"
#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/rules/member.h"
#include "dpwa/rules/options.h"
#include "dpwa/rules/per_peer.h"

namespace dpwa {

// The members of the cluster, without a coordinator: SWIM (Das, Gupta, Motivala 2002), with the
// pulls of gossip averaging as its probes, and its news sent along with them. Two rules are from
// Lifeguard (Dadgar, Phillips, Currey 2018): a suspect is told of the suspicion first, and a node
// that was wrong about a peer takes longer to suspect it again. Beyond both, dead nodes are asked
// now and then and tables are compared, so that two halves of a split network find each other
// again.
//
// A place (PeerId) keeps its member until the member is forgotten; those of the file come first and
// keep their places. The table is bounded: when it is full, dead members make room first, then
// members known only from reports of others. Pure: time and randomness are arguments. One owner,
// one thread.
//
// A member that is not vouched for is asked whether it is there, and nothing else: it is not told
// to others and is in no digest, so that invented names cause no messages among other nodes.
class Membership {
 public:
  static constexpr std::size_t max_news = 32;  // in one exchange
  static constexpr std::size_t part_size = 64;
  static constexpr std::size_t max_changes = 1024;  // remembered
  static constexpr std::size_t max_claims = 2 + max_news + part_size;
  // Of the names that one member has told of, so many are held at a time that have not answered:
  // as many as one message has.
  static constexpr std::size_t max_unmet_of_one = max_claims;
  // A process raises its refutation by one at a time. A reported refutation is believed only up to
  // this far ahead of the last one from the process itself, plus one for every second since.
  static constexpr std::uint32_t max_refutation_jump = 64;
  static constexpr Duration refutation_pause = std::chrono::milliseconds(100);
  static constexpr std::uint32_t max_refutation = 1U << 31;  // that a message carries
  // Names that were only heard of may be invented: one that does not answer is asked again after
  // this, then twice that each time, and is forgotten once it has been held dead for a minute.
  static constexpr Backoff meet_pause{std::chrono::seconds(2), std::chrono::seconds(128), 0};
  static constexpr Duration forget_unmet = std::chrono::minutes(1);

  // `listed`: the other nodes of the file. One with an incarnation is held to run as that process.
  Membership(MemberClaim self, std::vector<MemberClaim> listed, MembershipOptions options);

  // --- what there is to send
  bool exchange_is_due(const std::string& to, TimePoint now) const;
  MemberExchange request(const std::string& to, TimePoint now);
  MemberExchange answer(const std::string& to, const MemberExchange& request, TimePoint now);

  // --- what arrives
  // From the node that calls itself `from`, in the process `incarnation`: its handshake says so.
  void merge(const std::string& from, std::uint64_t incarnation, const MemberExchange& exchange,
             TimePoint now);
  // The same, as the answer to request(): tells whether more parts are wanted.
  bool merge_answer(const std::string& from, std::uint64_t incarnation,
                    const MemberExchange& exchange, TimePoint now);
  // It answered or called, in the process `incarnation`.
  void heard(const std::string& name, std::uint64_t incarnation, TimePoint now);
  // It answered at its address.
  void reached(const std::string& name, std::uint64_t incarnation, TimePoint now);
  // It gave no answer.
  void failed(const std::string& name, TimePoint now);
  // Time passes: suspects die, the dead are forgotten.
  void tick(TimePoint now);
  // It counts as listed: it was named as one to join by.
  void keep(const std::string& name);
  // The cluster file now lists this node, at this address; or it no longer lists a node, which then
  // counts as one that joined, or is removed when joining is closed.
  void list(const MemberClaim& claim, TimePoint now);
  void unlist(const std::string& name);
  // The own node leaves: every exchange says so from now on.
  void leave();

  // The members to ask outside of the pulls, about twice a second: at most a dozen, those that may
  // have died or come back, those known only from reports, and a running one when there was no
  // request for a while.
  std::vector<MemberClaim> to_ask(TimePoint now, Random& random) const;
  // Some running members, to tell them something at once.
  std::vector<MemberClaim> some_running(std::size_t most, Random& random) const;
  // One that has just failed, to know its state soon; else a dead one, or a listed one that left,
  // because it may be back.
  std::optional<PeerId> to_probe(Random& random) const;
  // One of those that are alive and vouched for.
  std::optional<PeerId> any_alive(Random& random) const;
  // Running members that are known only from reports and were not reached yet: up to `most` that
  // were never asked, and one whose pause is over.
  std::vector<PeerId> to_meet(std::size_t most, TimePoint now, Random& random) const;

  enum class Admission { known, may_join, closed, full };
  Admission admission(const std::string& name) const;

  const MemberClaim& self() const { return self_; }
  const std::vector<Member>& members() const { return members_; }  // by PeerId, free places too
  std::optional<PeerId> find(const std::string& name) const;
  const Member* member(const std::string& name) const;  // null: none has that name
  std::size_t running() const { return running_; }      // alive or suspect, the own node not
  std::uint64_t digest() const { return digest_ ^ digest_of(self_); }
  // Grows with every change of a name, an address, a status() or the source that vouches for a
  // member.
  std::uint64_t version() const { return version_; }
  // The places that have changed since then, in their order: all of them after more changes than
  // are remembered.
  std::vector<PeerId> changed_since(std::uint64_t version) const;

 private:
  friend struct InvariantTest<Membership>;
  void note_change(PeerId place);
  // `known`: the place of that member.
  void hear_claim(const MemberClaim& claim, std::optional<PeerId> known, const std::string& from,
                  TimePoint now);
  // The place of each claim is mostly the one after that of the claim before.
  std::optional<PeerId> find_after(std::optional<PeerId> last, const std::string& name) const;
  void hear_of_self(const MemberClaim& claim, TimePoint now);
  bool at_address_of_listed(const MemberClaim& claim) const;
  static bool may_move(const Member& member, const MemberClaim& told);
  static std::int64_t most_refutations(const Member& member, TimePoint now);  // to be believed
  void note_listed_addresses(const MemberClaim& claim);
  void announce(const MemberClaim& claim, TimePoint now);
  // The place for a new member; `by_itself`: it spoke to this node.
  std::optional<PeerId> place_for(const std::string& name, bool by_itself);
  void hold(PeerId place, const MemberClaim& claim, TimePoint now);  // and tell others
  void forget(PeerId place);
  // To be called with -1 before, and 1 after a change of the claim or of vouched_for().
  void count(const Member& member, int by);
  void make_listed(PeerId place);
  void end_hearsay(Member& member);  // it no longer counts among those that its teller told of
  MemberExchange begin(const std::string& to);
  void add_news(MemberExchange& exchange, const std::string& to);
  void add_part(MemberExchange& exchange, std::uint32_t part) const;
  Duration suspicion() const;

  MemberClaim self_;
  MembershipOptions options_;
  std::vector<Member> members_;
  std::unordered_map<std::string, PeerId> places_;  // of all members, by name
  MemberNews news_;
  std::unordered_map<std::string, std::string> listed_addresses_;  // to the name of the node
  std::unordered_map<std::string, std::size_t> unmet_;  // by the member that told of them
  TimePoint refuted_ = TimePoint::min();                // last
  TimePoint requested_ = TimePoint::min();              // likewise
  unsigned self_told_ = 0;    // times that the own claim has been told as it is
  std::uint32_t part_ = 0;    // next to be asked for and told
  bool differed_ = false;     // the last answer's digest, from the own one
  std::uint64_t digest_ = 0;  // of the others that run
  std::size_t running_ = 0;
  std::uint64_t version_ = 1;
  std::deque<PeerId> changes_;  // the place of each of the latest changes
};

}  // namespace dpwa
