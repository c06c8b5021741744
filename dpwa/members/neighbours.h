#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/members/next_view.h"

namespace dpwa::members {

// What a process knows of the others from what they say: who lives, applies, is ready, leaves. One
// process for each name, the latest. Pure; time is an argument.
class Neighbours {
 public:
  // `patience`: as in ViewOptions.
  explicit Neighbours(Duration patience) : patience_(patience) {}

  // A message of `from` has come.
  void note(const ProcessId& from, TimePoint now);
  // It wants to join. Nothing changes while the former process of its name speaks, which `members`
  // may have: a living name is not taken over.
  void note_applicant(const ProcessId& from, const Apply& apply, const View& members,
                      TimePoint now);
  void note_ready(const ProcessId& id) { facts_.ready.insert(id); }
  void note_leaving(const ProcessId& id) { facts_.leaving.insert(id); }
  void suspect(const ProcessId& id) { facts_.gone.insert(id); }
  // It was not admitted, because not all members hear it. It waits before it is tried again.
  void deny(const ProcessId& id, TimePoint now);
  // A new view: what was said about the one before no longer counts.
  void install(const View& view);

  bool suspects(const ProcessId& id) const { return facts_.gone.contains(id); }
  bool is_ready(const ProcessId& id) const { return facts_.ready.contains(id); }
  bool hears(const std::string& name, TimePoint now) const;
  // A later process of its name speaks.
  bool hears_later(const ProcessId& former, TimePoint now) const;
  std::set<std::string> names() const;
  // Those that apply and are heard at this moment.
  std::set<ProcessId> applicants(TimePoint now) const;
  // Without `names`, `enough` and `closes`.
  Facts facts(const View& view, TimePoint now) const;

 private:
  struct Heard {
    ProcessId id;
    TimePoint at{};
    std::optional<Apply> apply;
  };

  const Duration patience_;
  std::map<std::string, Heard> heard_;
  std::map<ProcessId, TimePoint> denied_;  // until when
  Facts facts_;                            // ready, leaving, gone
};

}  // namespace dpwa::members
