#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/adapter_types.h"
#include "adapters/collective/adaptive_timeout.h"
#include "adapters/collective/assembler.h"
#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/membership_notes.h"
#include "adapters/collective/rank_watch.h"
#include "dpwa/base/settings.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/status_query.h"

namespace dpwa::collective {

// The nodes that step together with this one: its group, the watch over that group, and the search
// for the next one. One (training) thread.
class GroupSession {
 public:
  // `config` and `local` outlive it.
  GroupSession(const Config& config, LocalProcess& local, Settings terms);
  ~GroupSession();

  bool together() const { return group_ != nullptr; }
  // While together.
  ProcessGroup& group() { return *group_; }
  const ProcessGroup& group() const { return *group_; }
  RankWatch& watch() { return *watch_; }
  Place place() const;
  const std::string& name_of(int rank) const;

  Assembler& assembler() { return assembler_; }

  void take_up(Assembler::Formed formed);
  void drop();    // the group can no longer be used
  void forget();  // the same, and as if it had never begun: the run tries to start again
  void note_apart(bool apart);
  void note_left();  // this node will join no further group
  // Drops the group, and waits until the others have read that note: later a refused connection
  // would not tell them that this node has left. Some seconds at most.
  void leave();

  // In a failed group: the member that was lost, and the reason; empty: not known (yet).
  // lost_node() waits for this news for a moment.
  std::string lost_node() const;
  std::string suspect() const;
  std::string missed() const;  // members of the last group that this one lacks, quoted; or empty

 private:
  std::vector<std::size_t> others() const;
  bool goes_on_without_this(const StatusAnswer& answer) const;

  const Config& config_;
  LocalProcess& local_;
  NoticeBoard board_;
  AdaptiveTimeout patience_;
  Assembler assembler_;
  GroupMembers membership_;
  GroupMembers before_;  // of the last group
  std::shared_ptr<ProcessGroup> group_;
  std::unique_ptr<RankWatch> watch_;
  std::vector<std::unique_ptr<RankWatch>> retired_;  // that still wait for an answer
};

}  // namespace dpwa::collective
