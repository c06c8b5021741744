#include "dpwa/rules/lineage.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "dpwa/base/backoff.h"

namespace dpwa {

bool yields(const Progress& own, const Progress& peer, std::span<const LineageReport> others,
            bool own_counts, bool heard_enough) {
  if (peer.lineage == 0 || peer.lineage == own.lineage || !std::isfinite(peer.clock)) return false;
  if (own.lineage == 0) return true;
  std::size_t ours = own_counts ? 1 : 0;
  std::size_t theirs = 0;
  double our_clock = own.clock;
  double their_clock = peer.clock;
  for (const LineageReport& report : others) {
    if (report.lineage == own.lineage) {
      ++ours;
      our_clock = std::max(our_clock, report.clock);
    } else if (report.lineage == peer.lineage) {
      ++theirs;
      their_clock = std::max(their_clock, report.clock);
    } else if (report.lineage == 0 && !heard_enough) {
      ++ours;
    }
  }
  if (theirs != ours) return theirs > ours;
  if (our_clock != their_clock) return our_clock < their_clock;
  return own.lineage > peer.lineage;
}

bool is_elder(const LineageReport& one, const LineageReport& other) {
  constexpr double least_share = .1, least_steps = 10;
  const double ahead = one.clock - other.clock;
  const double clearly = std::max(least_steps, least_share * std::max(one.clock, other.clock));
  return std::abs(ahead) > clearly ? ahead > 0 : one.lineage < other.lineage;
}

bool yields_by_age(const Progress& own, const Progress& peer,
                   std::span<const LineageReport> others) {
  if (peer.lineage == 0 || peer.lineage == own.lineage || !std::isfinite(peer.clock)) return false;
  if (own.lineage == 0) return true;
  LineageReport ours{own.lineage, own.clock}, theirs{peer.lineage, peer.clock};
  for (const LineageReport& report : others) {
    for (LineageReport* each : {&ours, &theirs})
      if (report.lineage == each->lineage) each->clock = std::max(each->clock, report.clock);
  }
  return is_elder(theirs, ours);
}

bool TakeoverLimit::allows(const std::string& peer, TimePoint now) const {
  const auto known = peers_.find(peer);
  return known == peers_.end() || now >= known->second.again;
}

bool TakeoverLimit::may_cross(const Progress& own, const Progress& peer, TimePoint given,
                              TimePoint now) {
  constexpr Duration lately = std::chrono::minutes(1);
  return now - given > lately || own.lineage > peer.lineage;
}

void TakeoverLimit::took(const std::string& peer, TimePoint now) {
  constexpr Backoff pauses{std::chrono::minutes(1), std::chrono::hours(1)};
  Record& record = peers_[peer];
  record.again = now + pauses.nominal(++record.count);
}

void LineageWatch::hear(const std::string& name, const LineageReport& report, bool listed) {
  if (const auto known = reports_.find(name); known != reports_.end()) {
    known->second = report;
  } else if (!full() || listed) {
    reports_[name] = report;
  }
}

bool LineageWatch::yields_to(const std::string& name, const Progress& peer, const Progress& own,
                             const Surroundings& others, Duration start_wait, TimePoint now) {
  if (!asked_) asked_ = now;
  const bool by_file = std::ranges::any_of(others.members, &Member::listed);
  std::vector<LineageReport> reports;
  bool counts = false;
  for (const Member& member : others.members) {
    const bool out = member.claim.name.empty() || member.status() != MemberStatus::alive;
    if (out || (by_file && !member.listed)) continue;
    counts = counts || member.claim.name == name;
    const auto known = reports_.find(member.claim.name);
    reports.push_back(known == reports_.end() ? LineageReport{} : known->second);
  }
  if (!counts || !takeovers_.allows(name, now)) return false;
  const bool heard_enough = now - *asked_ >= start_wait;
  const bool yields_now =
      listing_ == Listing::by_seeds
          ? yields_by_age(own, peer, reports)
          : yields(own, peer, reports, listing_ == Listing::listed, heard_enough);
  if (!yields_now) return false;
  const auto given = others.given.find(name);
  return given == others.given.end() || given->second.lineage != own.lineage ||
         TakeoverLimit::may_cross(own, peer, given->second.at, now);
}

void LineageWatch::took_over(const std::string& name, TimePoint now) {
  takeovers_.took(name, now);
  asked_.reset();
}

}  // namespace dpwa
