#include "adapters/collective/next_group.h"

#include <algorithm>

namespace dpwa::collective {
namespace {

using Reach = MemberView::Reach;
using Step = NextGroup::Step;

enum class Presence {
  here,     // answers, and comes into the next group
  ended,    // left in order, or was started again: it is in no other group either
  unknown,  // given up or not running, but it may be alive, or others may have gone on with it
  awaited,  // silent, and not given up yet
};

class Decider {
 public:
  Decider(const std::vector<MemberView>& views, std::size_t self, bool admits, std::uint64_t failed)
      : views_(views), self_(self), admits_(admits), failed_(failed), last_(last_group()) {}

  NextGroup decide() const {
    if (is_forming()) return {Step::follow, own().vote, self_};
    if (!own().seeks) return admit();
    if (left_behind()) return follow_anyone();
    if (last_.epoch == 0) return begin();
    return go_on();
  }

  bool left_behind() const {
    return std::ranges::any_of(views_,
                               [this](const MemberView& view) { return runs_without(view); });
  }

  std::vector<GroupMembers::Member> newcomers() const {
    std::vector<GroupMembers::Member> found;
    for (std::size_t place = 0; place < views_.size(); ++place) {
      const MemberView& view = views_[place];
      const bool comes = place != self_ && answers(view) && !over(view) && view.notes.seeks &&
                         view.differs.empty();
      if (!comes || view.notes.formed.epoch > last_.epoch) continue;
      const bool ours = last_.includes(place, view.incarnation);
      // A member that has missed one of our groups treats itself as a new node.
      if (!ours) found.push_back({place, view.incarnation});
    }
    return found;
  }

 private:
  static bool answers(const MemberView& view) { return view.reach == Reach::answers; }
  static bool over(const MemberView& view) { return view.finished || view.notes.left; }
  const GroupNotes& own() const { return views_[self_].notes; }
  bool is_self(std::size_t place, std::uint64_t incarnation) const {
    return place == self_ && incarnation == views_[self_].incarnation;
  }
  bool includes_self(const GroupMembers& group) const {
    return group.includes(self_, views_[self_].incarnation);
  }

  // Whether the group that this node voted for has formed for another member, and is about to here.
  bool is_forming() const {
    const GroupMembers& vote = own().vote;
    if (vote.epoch <= failed_ || vote.epoch <= own().formed.epoch) return false;
    const bool formed = std::ranges::any_of(views_, [&](const MemberView& view) {
      return answers(view) && !over(view) && !view.notes.seeks && view.notes.formed == vote;
    });
    return formed && std::ranges::all_of(vote.members, [this](const GroupMembers::Member& member) {
             return presence(member) == Presence::here;
           });
  }

  // The latest group that this node is or was in, as itself or another member knows.
  GroupMembers last_group() const {
    GroupMembers last = own().formed;
    for (const MemberView& view : views_) {
      if (!answers(view) || over(view)) continue;
      const GroupMembers& formed = view.notes.formed;
      if (formed.epoch > last.epoch && includes_self(formed)) last = formed;
    }
    return last;
  }

  bool runs_without(const MemberView& view) const {
    if (!answers(view) || over(view)) return false;
    return view.notes.formed.epoch > last_.epoch && !includes_self(view.notes.formed);
  }

  // Given up by this node or another one that is here. If two nodes have given up each other, for
  // instance because the link between them is cut, the one with the lower place decides. A node
  // that looks for a group again, for instance after it was frozen, does not count as given up.
  bool is_given_up(std::size_t place) const {
    if (answers(views_[place]) && views_[place].notes.seeks) return false;
    const auto says = [this](std::size_t speaker, std::size_t of) {
      const MemberView& view = views_[speaker];
      const auto& notes = view.notes;
      return answers(view) && notes.seeks && notes.formed.epoch == last_.epoch &&
             last_.includes(speaker, view.incarnation) &&
             std::ranges::find(notes.lost, of) != notes.lost.end();
    };
    for (const auto& member : last_.members) {
      if (member.place == place || !says(member.place, place)) continue;
      if (!says(place, member.place) || member.place < place) return true;
    }
    return false;
  }

  Presence presence(const GroupMembers::Member& member) const {
    if (member.place >= views_.size()) return Presence::ended;
    const MemberView& view = views_[member.place];
    if (is_self(member.place, member.incarnation)) return Presence::here;
    if (view.incarnation == member.incarnation && over(view)) return Presence::ended;
    if (view.reach == Reach::refused) return Presence::unknown;
    if (answers(view)) {
      if (view.incarnation != member.incarnation) return Presence::ended;
      return is_given_up(member.place) ? Presence::unknown : Presence::here;
    }
    return view.given_up || is_given_up(member.place) ? Presence::unknown : Presence::awaited;
  }

  const char* words_for(const GroupMembers::Member& member, Presence presence) const {
    if (presence == Presence::ended) return "has ended";
    return views_[member.place].reach == Reach::refused ? "not running" : "not reachable";
  }

  static bool in(const std::vector<GroupMembers::Member>& members, std::size_t place) {
    return std::ranges::find(members, place, &GroupMembers::Member::place) != members.end();
  }

  // Whether `present` are the majority of a group, as the comment of next_group says.
  bool has_majority(const GroupMembers& group,
                    const std::vector<GroupMembers::Member>& present) const {
    std::size_t here = 0;
    std::size_t unknown = 0;
    bool lowest = false;  // of those that have not ended
    for (const auto& member : group.members) {
      const bool counts =
          in(present, member.place) && views_[member.place].incarnation == member.incarnation;
      if (!counts && (presence(member) == Presence::ended || is_without(member, group))) continue;
      if (here + unknown == 0) lowest = counts;
      (counts ? here : unknown) += 1;
    }
    return here > unknown || (here == unknown && lowest);
  }

  // A member that states that the group has not formed for it and that has stopped trying, such as
  // a new node whose host has ended.
  bool is_without(const GroupMembers::Member& member, const GroupMembers& group) const {
    const MemberView& view = views_[member.place];
    return presence(member) == Presence::here && view.notes.formed.epoch < group.epoch &&
           view.notes.seeks && view.notes.formed.epoch == 0;
  }

  bool may_be(const std::vector<GroupMembers::Member>& members) const {
    if (!has_majority(last_, members)) return false;
    return std::ranges::all_of(members, [&](const GroupMembers::Member& member) {
      const GroupMembers& vote = views_[member.place].notes.vote;
      return vote.epoch <= last_.epoch || has_majority(vote, members);
    });
  }

  std::uint64_t newest_epoch() const {
    std::uint64_t newest = std::max(last_.epoch, failed_);
    for (const MemberView& view : views_) {
      if (answers(view))
        newest = std::max({newest, view.notes.formed.epoch, view.notes.vote.epoch});
    }
    return newest;
  }

  // Hosts a group of these members; the same one as before while it is valid.
  NextGroup host(std::vector<GroupMembers::Member> members) const {
    std::ranges::sort(members, {}, &GroupMembers::Member::place);
    const GroupMembers& vote = own().vote;
    const bool stands = vote.epoch > last_.epoch && vote.epoch > failed_ && vote.members == members;
    NextGroup next{Step::host, {newest_epoch() + 1, std::move(members)}, self_};
    if (stands) next.group = vote;
    return next;
  }

  // Follows to the store that the node at `host` has opened, if this node belongs to its group.
  NextGroup follow(std::size_t host) const {
    const MemberView& view = views_[host];
    const GroupMembers& vote = view.notes.vote;
    const bool open = answers(view) && !over(view) && view.notes.store_port != 0;
    const bool wanted = vote.epoch > last_.epoch && vote.epoch > failed_ && includes_self(vote) &&
                        vote.epoch >= own().vote.epoch;
    if (!open || !wanted) return {};
    return {Step::follow, vote, host, view.notes.store_port};
  }

  NextGroup follow_anyone() const {
    NextGroup best;
    for (std::size_t place = 0; place < views_.size(); ++place) {
      if (place == self_) continue;
      const NextGroup next = follow(place);
      if (next.step == Step::follow && next.group.epoch > best.group.epoch) best = next;
    }
    return best;
  }

  NextGroup begin() const {
    std::vector<GroupMembers::Member> all;
    for (std::size_t place = 0; place < views_.size(); ++place) {
      const MemberView& view = views_[place];
      // One of an earlier group that looks for its next admits this one.
      if (answers(view) && !over(view) && view.notes.formed.epoch > 0) return follow_anyone();
      if (!answers(view) || over(view) || !view.notes.seeks) return {};
      all.push_back({place, view.incarnation});
    }
    return self_ == 0 ? host(std::move(all)) : follow(0);
  }

  NextGroup go_on() const {
    std::vector<GroupMembers::Member> here;
    std::string missing;
    for (const auto& member : last_.members) {
      const Presence now = presence(member);
      if (now == Presence::awaited) return {};
      if (now == Presence::here) {
        here.push_back(member);
      } else {
        missing += (missing.empty() ? "'" : ", '") + views_[member.place].name + "' (";
        missing += words_for(member, now) + std::string(")");
      }
    }
    if (is_given_up(self_)) return {};  // the others continue without it; it comes back as new
    if (!may_be(here)) {
      return {Step::minority,
              {},
              0,
              0,
              std::to_string(here.size()) + " of " + std::to_string(last_.members.size()) +
                  " nodes of the last group are not a majority of it; missing: " + missing};
    }
    const std::size_t first = here.front().place;
    if (first != self_) return follow(first);
    if (admits_) {
      for (const auto& newcomer : newcomers()) here.push_back(newcomer);
    }
    return host(std::move(here));
  }

  // Between two steps of a complete group.
  NextGroup admit() const {
    if (own().formed.members.empty()) return {};
    std::vector<GroupMembers::Member> all = own().formed.members;
    const std::size_t first = all.front().place;
    if (first != self_) {
      const NextGroup next = follow(first);
      const bool whole = std::ranges::all_of(all, [&](const GroupMembers::Member& member) {
        return next.group.includes(member.place, member.incarnation);
      });
      return whole ? next : NextGroup{};
    }
    const auto more = newcomers();
    if (more.empty()) return {};
    all.insert(all.end(), more.begin(), more.end());
    return host(std::move(all));
  }

  const std::vector<MemberView>& views_;
  const std::size_t self_;
  const bool admits_;
  const std::uint64_t failed_;
  const GroupMembers last_;
};

}  // namespace

NextGroup next_group(const std::vector<MemberView>& views, std::size_t self, bool admits,
                     std::uint64_t failed) {
  return Decider(views, self, admits, failed).decide();
}

bool is_left_behind(const std::vector<MemberView>& views, std::size_t self) {
  return Decider(views, self, false, 0).left_behind();
}

bool has_newcomers(const std::vector<MemberView>& views, std::size_t self) {
  return !Decider(views, self, true, 0).newcomers().empty();
}

}  // namespace dpwa::collective
