#include "dpwa/engine/lineage_watch.h"

#include <algorithm>

namespace dpwa {

void LineageWatch::hear(const std::string& name, const LineageReport& report, bool seed) {
  if (const auto known = reports_.find(name); known != reports_.end()) {
    known->second = report;
  } else if (!full() || seed) {
    reports_[name] = report;
  }
}

bool LineageWatch::yields_to(const std::string& name, const Progress& peer, const Progress& own,
                             const Surroundings& others, Duration start_wait, TimePoint now) {
  if (!asked_) asked_ = now;
  const bool by_file = std::ranges::any_of(others.members, &Member::seed);
  std::vector<LineageReport> reports;
  bool counts = false;
  for (const Member& member : others.members) {
    const bool out = member.claim.name.empty() || member.status() != MemberStatus::alive;
    if (out || (by_file && !member.seed)) continue;
    counts = counts || member.claim.name == name;
    const auto known = reports_.find(member.claim.name);
    reports.push_back(known == reports_.end() ? LineageReport{} : known->second);
  }
  if (!counts || !takeovers_.allows(name, now)) return false;
  const bool heard_enough = now - *asked_ >= start_wait;
  if (!yields(own, peer, reports, of_file_, heard_enough)) return false;
  const auto given = others.given.find(name);
  return given == others.given.end() || given->second.lineage != own.lineage ||
         TakeoverLimit::may_cross(own, peer, given->second.at, now);
}

void LineageWatch::took_over(const std::string& name, TimePoint now) {
  takeovers_.took(name, now);
  asked_.reset();
}

}  // namespace dpwa
