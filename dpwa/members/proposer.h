#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dpwa/base/backoff.h"
#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/members/next_view.h"

namespace dpwa::members {

// The ballots of one proposer on the view after one view: questions, promises, a value, votes. One
// that gets no answer in time is followed by another. Pure; time is an argument.
class Proposer {
 public:
  Proposer(Duration patience, std::uint64_t seed)
      : patience_{patience, most_patience * patience, .25}, random_(seed) {}

  bool active() const { return attempt_.has_value(); }
  // A new ballot, above all that are known here. The first of a change when none is active.
  Prepare begin(const Base& base, const ProcessId& self, std::uint64_t promised, TimePoint now);
  void end() { attempt_.reset(); }
  bool is_over(TimePoint now) const { return attempt_ && now >= attempt_->until; }

  void note(const Promise& promise);
  // What to ask for, once the promises allow it: of all that `facts` lets expect one, or of a
  // quorum when time is up. `denied` is called for those that apply and are not in it. Promises
  // that lead to no view may do so later: with what is known then, or with more of them.
  std::optional<Accept> choose(const View& view, const Base& base, const Facts& facts,
                               TimePoint now, const std::function<void(const ProcessId&)>& denied);
  // The view that has been decided with this vote.
  std::optional<View> note(const Accepted& vote, const View& view, const Facts& facts);

  // Of these names, those that have not promised; empty until it has asked for `after`.
  std::vector<std::string> missing(const std::set<std::string>& names, TimePoint now,
                                   Duration after) const;

 private:
  static constexpr int most_patience = 4;  // others may propose as well
  static constexpr int longer = 4;         // after a ballot that led to no view here, but may there
  struct Attempt {
    Ballot ballot;
    TimePoint asked{};  // the first ballot of this change
    TimePoint until{};  // then it goes on without those who have not answered, or begins again
    unsigned ballots = 0;
    bool led_to_none = false;  // a quorum has promised, and what is known here leads to no view
    Promises promises;
    std::optional<View> value;  // the promises have led to it: the votes are under way
    std::set<ProcessId> accepted;
  };

  const Backoff patience_;
  Random random_;
  std::uint64_t round_ = 0;
  std::optional<Attempt> attempt_;
};

}  // namespace dpwa::members
