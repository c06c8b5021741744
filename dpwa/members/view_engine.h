#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/members/neighbours.h"
#include "dpwa/members/proposer.h"
#include "dpwa/members/vote.h"

namespace dpwa::members {

struct ViewOptions {
  ProcessId self;
  std::vector<std::string> names;  // of the cluster file, in its order
  // So many of the names begin a run; 0: all. With fewer, more than half, the disks of all of them
  // must outlast the start.
  std::size_t minimum = 0;
  std::uint64_t settings = 0;  // a digest of what all members have to agree on
  bool serves = false;
  Quorum quorum = Quorum::majority;  // of a run that this process proposes
  // How long an answer may take. Anything that waits for others is asked for again after it.
  Duration patience = std::chrono::milliseconds(200);
  std::uint64_t seed = 0;  // for the numbers of runs
};

// The part of one process in the decisions on views: it votes, proposes, applies, leaves. Each
// decision is one instance of Paxos among the voters of the view before, so a number never has two
// views, whichever messages are lost or late and whichever processes die.
//
// A promise freezes its giver: it completes no operation until the next view is installed. So the
// promises say exactly what each has completed, and the next view says it to all. What one of its
// members has completed goes to the others, the rest is repeated by the new members from unchanged
// inputs. Nothing of an operation may leave the group before all members have completed it.
//
// The votes of a process that has ended count, but only from the file that it kept (vote.h), and
// only once the kernel says that it has ended: a later process of its machine then answers for it.
// A majority of the former processes is needed, not of their successors.
//
// One joins in two steps: first without a vote, until its state is that of the members, then as a
// member. Whoever finds itself left out applies again.
//
// Pure; one owner, one thread.
class ViewEngine {
 public:
  // `former`: what earlier processes of this name kept on this machine, which have all ended.
  explicit ViewEngine(ViewOptions options, std::optional<Kept> former = {});

  enum class Standing : std::uint8_t {
    applies,  // is in no view
    joining,
    member,
    left,
    refused,  // its settings differ from those of the run
  };
  Standing standing() const;
  // Its counter grows once another process is known that had this name with no lower one.
  const ProcessId& self() const { return self_; }
  const View& view() const { return kept_.installed; }
  Base base() const { return {view().number, digest_}; }
  bool frozen() const { return frozen_; }
  const Progress& progress() const { return progress_; }

  // From whom one that is joining gets the state; another one gives it from the beginning.
  std::optional<ProcessId> giver() const;

  // An operation is complete here, under the view of this number. False: it is not, because that
  // view is no longer the installed one, or because a promise has been given.
  bool complete(std::uint64_t number, std::uint64_t operation);
  // Begins with the state after all operations up to this one, under the view of this number.
  // False: it does not, because that view is no longer the installed one.
  bool begin_at(std::uint64_t number, std::uint64_t through);
  // The digest of the state after all operations up to this one: to be compared with those of
  // processes that join, and, on one that joins, with those of the members.
  void note_state(std::uint64_t through, std::uint64_t digest);
  // An operation cannot be completed in this view, because messages are lost: the next one, perhaps
  // with the same members, repeats it.
  void renew() { renews_ = true; }
  // The next view is to be without this process, which votes until then.
  void leave() { leaving_ = true; }

  void suspect(const ProcessId& process) { neighbours_.suspect(process); }
  bool suspects(const ProcessId& process) const { return neighbours_.suspects(process); }
  void receive(const ProcessId& from, const ViewMessage& message, TimePoint now);
  // Any other message shows that its sender lives, and in which view.
  void heard(const ProcessId& from, const Base& base, TimePoint now);
  // To be called some times in each `patience`.
  void tick(TimePoint now);

  // The voters without whom nothing is decided; empty until that has been so for `after`.
  std::vector<std::string> missing(TimePoint now, Duration after) const;

  struct Outgoing {
    std::string to;
    ViewMessage message;
  };
  // What to do next, in this order.
  struct Wishes {
    std::optional<Kept> keep;  // on the disk, before all that follows
    std::vector<Outgoing> send;
    std::vector<View> installed;  // to be acted upon
  };
  Wishes take();

 private:
  void handle(const ProcessId& from, const Prepare& message, TimePoint now);
  void handle(const ProcessId& from, const Promise& message, TimePoint now);
  void handle(const ProcessId& from, const Accept& message, TimePoint now);
  void handle(const ProcessId& from, const Accepted& message, TimePoint now);
  void handle(const ProcessId& from, const Installed& message, TimePoint now);
  void handle(const ProcessId& from, const AskView& message, TimePoint now);
  void handle(const ProcessId& from, const Apply& message, TimePoint now);
  void handle(const ProcessId& from, const Ready& message, TimePoint now);
  void handle(const ProcessId& from, const Leave& message, TimePoint now);
  void handle(const ProcessId& from, const Refuse& message, TimePoint now);

  void compare(const ProcessId& with, const Base& its);
  void tell_progress();
  void forget_state();
  bool at_base(const ProcessId& from, const Base& base);
  bool may_propose(const ProcessId& from) const;
  Facts facts(TimePoint now) const;
  std::size_t place(TimePoint now) const;
  Apply application() const;
  void consider(TimePoint now);
  void begin_ballot(TimePoint now);
  void choose(TimePoint now);
  std::vector<Vote*> own_votes();
  void install(const View& view);
  void renumber(const ProcessId& above);
  void make_itself_heard(TimePoint now);
  void answer(const ProcessId& to, ViewMessage message, TimePoint now);
  void send(const std::string& to, ViewMessage message);
  void send_to(const std::set<std::string>& names, const ViewMessage& message);
  std::set<std::string> names_of_voters() const;

  const ViewOptions options_;
  ProcessId self_;
  Neighbours neighbours_;
  Proposer proposer_;
  Kept kept_;
  std::uint64_t digest_ = 0;  // of the installed view
  // Since the last take().
  bool changed_ = false;  // kept_
  std::vector<View> installed_;
  bool frozen_ = false;
  TimePoint frozen_since_{};
  std::optional<std::pair<std::string, Prepare>> asked_;  // while it is joining: by whom, what
  bool renews_ = false;
  bool leaving_ = false;
  bool left_ = false;
  bool refused_ = false;
  Progress progress_;
  std::map<std::uint64_t, std::uint64_t> states_;  // the last ones: digest by operation
  std::optional<TimePoint> wanted_since_;          // a change
  TimePoint told_{};                               // when it last made itself heard
  std::vector<Outgoing> outgoing_;
};

}  // namespace dpwa::members
