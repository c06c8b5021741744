#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/lookout.h"
#include "adapters/collective/next_group.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_node.h"

namespace dpwa::collective {

// Brings this node into its next group while the trainer goes on, on a thread of its own: looks at
// what the other nodes say, does what next_group() decides, and keeps the group that has formed
// until the trainer takes it. Called by the trainer's thread.
class Assembler {
 public:
  // All outlive it.
  Assembler(const Config& config, LocalNode& local, NoticeBoard& board, Patience& patience);
  ~Assembler();
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;

  // This node has no group, or none of use any more, and looks for the next one until take().
  // `admits`: it is between two steps, where newcomers can be taken in.
  void seek(bool admits);
  // In a group that is whole: forms the one that has the newcomers as well.
  void admit();
  void rest();                   // there is nobody to admit any more
  bool hosts_admission() const;  // and is the first member
  // In a group that is whole, by its first member: nodes wait to be admitted.
  bool newcomers_wait() const;

  struct Formed {
    Membership membership;
    std::unique_ptr<ProcessGroup> group;
    bool newcomer = false;  // this node was in no group, or its group has gone on without it
  };
  // The epoch of the group that waits to be taken; 0: none.
  std::uint64_t formed() const;
  // Takes it; none within `limit`, or once `given_up` says so.
  std::optional<Formed> take(Duration limit, const std::function<bool()>& given_up);

  // Why this node may not go on as the group; empty: it may, or does not know yet.
  std::string minority() const;
  // The node that looks for its first group cannot come together with that one, and why, as with
  // other settings; empty: none is known.
  std::string stranger() const;
  // What the last attempt came to, and who is missing, in words.
  std::string problem() const;

 private:
  enum class Task { rest, seek, admit };
  struct Attempt;

  void work();
  void look_for_newcomers();
  void tell_of_strangers(const std::vector<Sight>& sights);
  void drop_untaken();
  void look_for_group(Task task, bool admits);
  void act(const NextGroup& next, bool newcomer);
  void begin(const NextGroup& next, bool newcomer);
  void drop_attempt();
  bool attempt_is_idle(const std::vector<Sight>& sights) const;
  void harvest();

  const Config& config_;
  LocalNode& local_;
  NoticeBoard& board_;
  const std::shared_ptr<const Engine> engine_;
  Lookout lookout_;                        // of the thread
  std::shared_ptr<Attempt> attempt_;       // of the thread
  std::uint64_t failed_ = 0;               // of the thread: the last epoch that came to nothing
  TimePoint looked_{};                     // of the thread
  std::map<std::string, TimePoint> told_;  // of the thread: when nodes were named as strangers

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Task task_ = Task::rest;  // guarded by mutex_, as all below
  bool admits_ = false;
  bool ends_ = false;
  bool newcomers_wait_ = false;
  std::optional<Formed> formed_;
  TimePoint formed_at_{};
  Membership before_;  // the group of before
  std::string minority_;
  std::string stranger_;
  std::string problem_;
  std::string missing_;
  std::thread thread_;
};

}  // namespace dpwa::collective
