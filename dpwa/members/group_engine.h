#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/settings.h"
#include "dpwa/base/time.h"
#include "dpwa/members/failure_detector.h"
#include "dpwa/members/group_messages.h"
#include "dpwa/members/view_engine.h"

namespace dpwa::members {

struct GroupEngineOptions {
  ViewOptions view;  // `settings` are not used: `terms` are compared instead, and named
  Settings terms;    // have to be the same on all
  // So many of these terms are compared before the first view, because with other values of them
  // the processes cannot meet at all. The others are compared by whoever joins a run.
  std::size_t first_terms = 1;
  Duration beat = std::chrono::milliseconds(100);  // between two signs of life
  Duration lost_after{};                           // as of FailureDetector
  // A silent member is suspected also while this process does not wait for it, after three times as
  // long.
  bool judges_at_rest = false;
  // A run ends without a vote where every name has a new process, so that it does not hang on files
  // that may be lost.
  bool ends_with_its_processes = true;
};

// One process of the cluster as another one knows it.
struct Peer {
  std::optional<ProcessId> id;  // the last process of the name that spoke
  TimePoint first{};            // when it spoke first
  TimePoint heard{};            // and last
  TimePoint beat{};             // the last sign of life of its own accord
  unsigned refusals = 0;        // in a row: nothing listens at its address
  Beat said{};                  // its last beat
  bool has_said = false;        // there was one
  std::string barred;   // why no connection to it is admitted, in words that follow its name
  unsigned bars = 0;    // such failures in a row
  bool leaves = false;  // in order: it has said so
  std::string differs;  // how its terms differ, in words; empty: they do not
  // Why it is suspected, in words that follow its name, until it is in a view again; empty: it is
  // not.
  std::string lost;

  // A single refusal may come from a machine that is short of resources.
  bool refuses() const { return refusals >= 2; }
  // A single failure may be that of keys which are just being replaced.
  bool bars_us() const { return bars >= 2; }
  // Why this process of its name will not come any more, in words that follow the name; empty: it
  // may.
  std::string why_gone(const ProcessId& process) const;
};

// Who steps together, as one process takes part in it: the views (view_engine.h), the signs of life
// on which suspicion rests, and the terms. Pure: messages come in and go out through take(), time
// is an argument. One owner, one thread.
class GroupEngine {
 public:
  // `former`: as of ViewEngine.
  GroupEngine(GroupEngineOptions options, std::optional<Kept> former);

  // --- events
  void connected(const std::string& name);  // from here to there
  // `refused`: nothing listens there. `barred`: why one of the two does not let the other one in,
  // such as another key, in words that follow its name; empty: that is not the reason.
  void not_reached(const std::string& name, bool refused, const std::string& barred = {});
  void receive(const ProcessId& from, const GroupMessage& message, TimePoint now);
  void tick(TimePoint now);  // some times in each `beat`

  // --- of this process
  // It waits for the others in an exchange. A member that is silent from then on is suspected.
  void set_waiting(bool waits, TimePoint now);
  // It has no group, and waits for one: the same.
  void set_seeking(bool seeks, TimePoint now);
  // It lives and does not come: what it says does not count until the next view.
  void give_up(const std::string& name);

  ViewEngine& views() { return *views_; }
  const ViewEngine& views() const { return *views_; }
  const Settings& terms() const { return options_.terms; }
  const std::map<std::string, Peer>& peers() const { return peers_; }
  // Whether it is the process of its name whose words count.
  bool counts(const ProcessId& id) const;
  const FailureDetector& silence() const { return silence_; }
  // Voters of the view without which the others decide nothing, and which are gone: name and
  // reason. Empty: those that are left decide, or it is not known yet.
  std::vector<std::pair<std::string, std::string>> lacking(TimePoint now) const;

  struct Outgoing {
    std::string to;
    GroupMessage message;
  };
  struct Wishes {
    std::optional<Kept> keep;  // on the disk, before all that follows
    std::vector<Outgoing> send;
    std::vector<View> installed;
  };
  Wishes take();

 private:
  bool may_apply(const Peer& peer) const;
  bool is_possible(const View& view, TimePoint now) const;
  void note(const ProcessId& from, TimePoint now);
  void note_beat(Peer& peer, TimePoint now);
  void note_waits(TimePoint now);
  void judge(TimePoint now);
  std::string why_lost(const Peer& peer, Duration lost_after, TimePoint now) const;
  void begin_again_where_all_are_new(TimePoint now);

  const GroupEngineOptions options_;
  std::optional<ViewEngine> views_;
  std::map<std::string, Peer> peers_;  // by name, of all names but the own
  std::set<ProcessId> given_up_;
  std::set<std::uint64_t> over_;   // runs of which no process seemed to be left
  TimePoint over_at_{};            // the last one
  std::set<std::string> greeted_;  // connections that have just been made: they get the terms
  FailureDetector silence_;
  Beat own_;
  bool seeks_ = false;
  std::optional<TimePoint> waits_since_;  // for the others; none: it does not
  TimePoint beat_at_{};                   // the last one
  bool beats_ = false;                    // with the next take()
};

}  // namespace dpwa::members
