#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/base/backoff.h"
#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// The messages that decide an epoch. `base`: the number of the epoch before the proposed one.
// `ballot`: unique to its proposer; a higher ballot replaces a lower one.
struct Ballot {
  std::uint64_t base = 0;
  std::uint64_t ballot = 0;
  bool operator==(const Ballot&) const = default;
};
struct Promise {
  std::uint64_t base = 0;
  std::uint64_t ballot = 0;  // the promised ballot: this one, or (not granted) an earlier one
  bool granted = false;
  std::uint64_t accepted_ballot = 0;  // of the last proposal that got this vote; 0 = none
  Epoch accepted;
  bool operator==(const Promise&) const = default;
};
struct Proposal {
  std::uint64_t base = 0;
  std::uint64_t ballot = 0;
  Epoch epoch;
  bool operator==(const Proposal&) const = default;
};
struct Vote {
  std::uint64_t base = 0;
  std::uint64_t ballot = 0;
  bool operator==(const Vote&) const = default;
};
// An epoch that has been decided.
struct EpochNews {
  Epoch epoch;
  bool operator==(const EpochNews&) const = default;
};
// Asks for the latest epoch: the receiver seems to have a later one.
struct AskEpoch {
  bool operator==(const AskEpoch&) const = default;
};
using EpochMessage = std::variant<Ballot, Promise, Proposal, Vote, EpochNews, AskEpoch>;

// The part of one member, server or worker, in the decisions on epochs: it votes, and a server may
// also propose. Each decision is one instance of Paxos ("The Part-Time Parliament", Lamport 1998)
// among the members of the last epoch, so that two epochs never have the same number, whichever
// messages are lost, late or doubled and whichever members die. A promise need not survive the
// process, because a new incarnation is not a member of the old epoch. Where it votes for its
// former process, all other members have to vote as well (is_majority).
//
// Pure: time is an argument, messages go out through take(). One owner, one thread.
class EpochEngine {
 public:
  // `servers`: all names, in the order of the cluster file. `retry`: how long a ballot or a vote
  // may lack a majority before a new ballot begins; with each up to four times as long.
  EpochEngine(MemberId self, const std::vector<std::string>& servers, Duration retry);

  const Epoch& installed() const { return installed_; }
  const MemberId& self() const { return self_; }
  // From now on this is a later process of its name (base/incarnation.h), and no member.
  void renumber(std::uint64_t incarnation) { self_.incarnation = incarnation; }

  // Proposes the next epoch, whose number must be higher than that of the installed one. A decision
  // that an earlier proposer left unfinished is completed first, so that another epoch may follow
  // instead. No effect while a proposal of this member is under way.
  void propose(Epoch next, TimePoint now);
  bool proposing() const { return proposer_.has_value(); }
  // Until a majority has promised, another epoch may take the place of the proposed one, or none.
  // No effect afterwards, or when an earlier proposer's epoch has to be completed.
  void amend(std::optional<Epoch> next);
  // The members without whose votes a proposal of this member stays undecided; empty until it has
  // been made for as long as `after`.
  std::vector<std::string> undecided(TimePoint now, Duration after) const;
  // The members that are gone and for which their next processes voted, where a decision of this
  // member needed that. What was decided or stored among those alone is lost.
  std::vector<std::string> take_replaced() { return std::exchange(replaced_, {}); }
  // Whether it can be an epoch of these servers at all; one that cannot is ignored.
  bool fits(const Epoch& epoch) const;

  // Returns true when an epoch has been installed.
  bool receive(const MemberId& from, const EpochMessage& message, TimePoint now);
  void tick(TimePoint now);

  // A message came from a member in another epoch: sends it the latest epoch, or asks for it.
  void compare(const std::string& with, std::uint64_t its_epoch);

  struct Outgoing {
    std::string to;
    EpochMessage message;
  };
  std::vector<Outgoing> take() { return std::exchange(outgoing_, {}); }

 private:
  friend struct InvariantTest<EpochEngine>;
  struct Proposer {
    Epoch next;
    std::uint64_t ballot = 0;
    bool promised = false;  // a majority has promised: the votes are under way
    std::vector<MemberId> yes;
    std::uint64_t highest_accepted = 0;
    Epoch accepted;  // with that ballot, by one of those that have promised
    TimePoint proposed{};
    TimePoint began{};  // of this ballot, or of the votes
    unsigned ballots = 0;
    std::vector<std::string> lacking;  // that did not answer the ballot before

    bool has(const std::string& name) const;
    bool add(const MemberId& member);  // false: that member has answered already
  };

  bool handle(const MemberId& from, const Ballot& message, TimePoint now);
  bool handle(const MemberId& from, const Promise& message, TimePoint now);
  bool handle(const MemberId& from, const Proposal& message, TimePoint now);
  bool handle(const MemberId& from, const Vote& message, TimePoint now);
  bool handle(const MemberId& from, const EpochNews& message, TimePoint now);
  bool handle(const MemberId& from, const AskEpoch& message, TimePoint now);

  bool at_base(const MemberId& from, std::uint64_t base);
  bool counts(const MemberId& from) const;
  bool may_propose(const MemberId& from) const;
  void begin_ballot(TimePoint now);
  bool is_over(const Epoch& accepted) const;
  bool ask_for_votes(TimePoint now);
  void note_replaced();
  bool install(const Epoch& epoch);
  void send(const std::string& to, EpochMessage message);
  void send_to_members(const Epoch& epoch, const EpochMessage& message);

  MemberId self_;
  const Backoff patience_;  // with a ballot, or with its votes
  Epoch installed_;
  std::uint64_t promised_ = 0;
  std::uint64_t accepted_ballot_ = 0;
  Epoch accepted_;
  std::uint64_t round_ = 0;
  std::optional<Proposer> proposer_;
  std::vector<std::string> replaced_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace dpwa::kvstore
