#pragma once

#include <cstdint>
#include <map>

#include "dpwa/base/time.h"
#include "dpwa/kvstore/epoch.h"

namespace dpwa::kvstore {

// Which workers of an epoch may begin, of those that came to programs which count the steps of each
// key apart (WorkerEntry::since). With merged pushes such a worker takes part in whole steps of the
// others: in no round that has a push of a step that began before its worker knew of the newcomer.
// So nobody in such a step waits for it. As long as others may still send pushes of such steps, no
// slice can say with which round the newcomer begins. Pure; time is an argument.
class Newcomers {
 public:
  void install(const Epoch& epoch, TimePoint now);
  // All pushes of this worker of the epoch whose steps began in earlier epochs than this one have
  // been sent. True: that is news.
  bool passed(const MemberId& worker, std::uint64_t number);
  bool may_begin(const Epoch& epoch, const WorkerEntry& worker) const;
  // Workers whose programs do not fit together may wait for the newcomer in some other way. After
  // a time it begins with the rounds that are open. True: that goes for one more of them.
  bool end_patience(TimePoint now);

 private:
  std::map<MemberId, std::uint64_t> past_epoch_;
  std::map<MemberId, TimePoint> came_;  // max(): waited for long
};

}  // namespace dpwa::kvstore
