#include "dpwa/kvstore/snapshot_plan.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

namespace dpwa::kvstore {

std::vector<SnapshotPlan::Wish> SnapshotPlan::tick(TimePoint now) {
  std::vector<Wish> wishes;
  const auto add = [&](std::optional<Wish> wish) {
    if (wish) wishes.push_back(*std::move(wish));
  };
  if (refusal_) return wishes;
  const Epoch& epoch = engine_.epoch();
  if (epoch.number == 0) {
    add(start(now));
    return wishes;
  }
  if (!epoch.has(engine_.self())) return wishes;
  add(collect());
  add(complete());
  const SnapshotSchedule::View seen = view();
  schedule_.look(epoch, seen, now);
  if (schedule_.due(epoch, engine_.self().name, seen, now))
    schedule_.begins(engine_.begin_snapshot(), epoch, seen, now);
  return wishes;
}

SnapshotSchedule::View SnapshotPlan::view() const {
  return {engine_.shard().snapshot(),
          std::max(engine_.over_everywhere(), engine_.epoch().from.number),
          engine_.updates_everywhere(),
          engine_.stored_everywhere(),
          status_.number,
          engine_.knows_updates()};
}

void SnapshotPlan::listed(std::vector<SnapshotId> held, bool had_complete) {
  engine_.set_stock(std::move(held), had_complete);
}

std::optional<SnapshotPlan::Wish> SnapshotPlan::start(TimePoint now) {
  if (engine_.loaded() || loading_) return std::nullopt;
  auto start = engine_.start(now);
  if (!start) return std::nullopt;
  if (!start->problem.empty()) {
    refuse(start->problem +
           "; accepted: the missing files, or empty folders to begin from the first step");
    return std::nullopt;
  }
  retention_.common = std::move(start->common);
  if (start->from.number == 0) {
    engine_.load({}, {});
    return std::nullopt;
  }
  loading_ = true;
  return Load{start->from};
}

void SnapshotPlan::loaded(const SnapshotId& id, std::vector<ShardEngine::Captured> part,
                          TimePoint written) {
  status_.number = status_.started_from = id.number;
  last_ = written;
  engine_.load(id, std::move(part));
}

// A part is whole when every slice that workers find here has been captured, and no slice is to
// come that belongs to the snapshot. Parts of earlier snapshots then stay incomplete.
std::optional<SnapshotPlan::Wish> SnapshotPlan::collect() {
  for (ShardEngine::Captured& each : engine_.take_captured()) {
    const SliceId slice = each.slice;
    captured_[each.snapshot].insert_or_assign(slice, std::move(each));
  }
  const Epoch& epoch = engine_.epoch();
  const std::uint32_t number = engine_.shard().snapshot();
  captured_.erase(captured_.begin(), captured_.lower_bound(std::max(number, written_ + 1)));
  if (number <= written_ || number <= epoch.from.number) return std::nullopt;
  if (engine_.shard().is_snapshot_torn()) {  // the next one begins by the schedule
    written_ = number;
    captured_.clear();
    schedule_.gave_up();
    engine_.snapshot_over(number, /*stored=*/false);
    return std::nullopt;
  }
  if (!engine_.shard().all_past_snapshot()) return std::nullopt;
  if (!SnapshotSchedule::all_up(epoch) || captured_[number].size() != engine_.shard().primaries())
    return std::nullopt;
  written_ = number;
  Write write{{epoch.run, number}, {}};
  for (auto& [id, slice] : captured_[number]) write.part.push_back(std::move(slice));
  captured_.erase(number);
  return write;
}

void SnapshotPlan::written(const SnapshotId& id, bool stored, TimePoint now) {
  engine_.snapshot_over(id.number, stored);
  status_.failing = !stored;
  if (stored) {
    ready_[id.number] = now;
  } else {
    ++status_.failures;
  }
}

std::optional<SnapshotPlan::Wish> SnapshotPlan::complete() {
  const auto ready = ready_.find(engine_.stored_everywhere());
  if (ready == ready_.end()) return std::nullopt;
  const Complete wish{{engine_.epoch().run, ready->first}, ready->second};
  ready_.erase(ready_.begin(), std::next(ready));
  return wish;
}

void SnapshotPlan::completed(const Complete& wish) {
  status_.number = wish.id.number;
  last_ = wish.written;
}

SnapshotStatus SnapshotPlan::status(TimePoint now) const {
  SnapshotStatus status = status_;
  if (status.number > 0)
    status.age_s = std::max(0.0, std::chrono::duration<double>(now - last_).count());
  return status;
}

}  // namespace dpwa::kvstore
