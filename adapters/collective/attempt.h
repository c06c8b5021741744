#pragma once

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>

#include "adapters/collective/engine/process_group.h"
#include "adapters/collective/group_members.h"
#include "dpwa/base/threads.h"

namespace dpwa::collective {

// One attempt of the GroupFormer to form a group, on a thread that is never waited for.
struct Attempt {
  GroupMembers members;
  bool newcomer = false;
  std::stop_source stop;
  Mutex mutex;
  std::uint16_t store_port DPWA_GUARDED_BY(mutex) = 0;  // where it hosts the store
  bool done DPWA_GUARDED_BY(mutex) = false;
  std::unique_ptr<ProcessGroup> group DPWA_GUARDED_BY(mutex);  // null: it failed
  std::string problem DPWA_GUARDED_BY(mutex);

  // `port`: of the store at `host_address`; 0: this node hosts it, or there is none.
  void run(const std::shared_ptr<const Engine>& engine, GroupOptions options,
           const std::string& host_address, std::uint16_t port);
};

}  // namespace dpwa::collective
