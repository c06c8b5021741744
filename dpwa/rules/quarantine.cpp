#include "dpwa/rules/quarantine.h"

#include <algorithm>

namespace dpwa {

Quarantine::Quarantine(const FirewallOptions& options)
    : first_(options.quarantine), longest_(std::max(options.quarantine, options.quarantine_max)) {}

const Quarantine::Record& Quarantine::at(PeerId peer) const {
  static const Record blameless;
  const Record* record = records_.find(peer);
  return record != nullptr ? *record : blameless;
}

std::optional<TimePoint> Quarantine::offence(PeerId peer, bool deliberate, TimePoint now,
                                             Duration shortest) {
  Record& record = records_[peer];
  ++record.offences;
  if (now < record.until) return std::nullopt;
  DPWA_INVARIANT(record.in_a_row < after, "as many offences in a row are a quarantine",
                 record.in_a_row, peer);
  if (++record.in_a_row < after) return std::nullopt;
  forgive(record, now, shortest);
  record.until = now + length(deliberate ? record.level++ : 0, shortest);
  record.in_a_row = after - 1;
  ++record.quarantines;
  return record.until;
}

void Quarantine::sound(PeerId peer) {
  if (Record* record = records_.find(peer)) record->in_a_row = 0;
}

// Stops at the longest, so neither a high level nor a huge maximum can overflow.
Duration Quarantine::length(std::uint32_t level, Duration shortest) const {
  Duration length = std::max(first_, shortest);
  const Duration longest = std::max(longest_, shortest);
  for (std::uint32_t doubled = 0; doubled < level && length < longest; ++doubled) {
    length = length > longest / 2 ? longest : length * 2;
  }
  return length;
}

void Quarantine::forgive(Record& record, TimePoint now, Duration shortest) const {
  if (record.level == 0) return;
  DPWA_INVARIANT(record.level <= record.quarantines && now >= record.until,
                 "a level is that of quarantines that are over", record.level, record.quarantines);
  Duration behaved = now - record.until;
  while (record.level > 0 && behaved >= 2 * length(record.level - 1, shortest)) {
    behaved -= 2 * length(record.level - 1, shortest);
    --record.level;
  }
}

}  // namespace dpwa
