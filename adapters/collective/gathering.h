#pragma once

#include <c10/core/Device.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/group_members.h"
#include "dpwa/base/threads.h"
#include "dpwa/config/config.h"
#include "dpwa/group/group_handler.h"
#include "dpwa/group/shared_entries.h"
#include "dpwa/net/local_process.h"

namespace dpwa::collective {

// How long a rank that leaves in order waits for the others.
inline constexpr std::chrono::milliseconds leave_limit(2000);

// Forms the group of all nodes of the file, once, for programs that need no other group.
// Blocks for collective.start_wait at most, then throws std::runtime_error with the names of the
// nodes that are missing.
std::shared_ptr<ProcessGroup> gather_all(const Config& config, LocalProcess& local,
                                         std::shared_ptr<group::Inbox> inbox);
// The text of its error.
std::string not_together(const std::string& problem);

// One attempt of the GroupFormer to form a group, on a thread that is never waited for.
struct Attempt {
  GroupMembers members;
  bool newcomer = false;
  std::stop_source stop;
  Mutex mutex;
  bool done DPWA_GUARDED_BY(mutex) = false;
  std::unique_ptr<ProcessGroup> group DPWA_GUARDED_BY(mutex);  // null: it failed
  std::string problem DPWA_GUARDED_BY(mutex);
  bool hopeless DPWA_GUARDED_BY(mutex) = false;  // the next one fails in the same way

  // The members meet over `entries`, unless the engine has them.
  void run(const std::shared_ptr<const Engine>& engine, GroupOptions options,
           const std::shared_ptr<group::SharedEntries>& entries);
};

// Throws ConfigError for an engine that this build lacks, or that this process cannot use.
void require_engine(const Config& config);
// Throws ConfigError for a model on a device that the engine of the file cannot send from.
void require_device(const Config& config, const c10::Device& device);

}  // namespace dpwa::collective
