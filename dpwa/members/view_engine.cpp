#include "dpwa/members/view_engine.h"

#include <algorithm>

#include "dpwa/base/invariant.h"

namespace dpwa::members {
namespace {

constexpr std::size_t kept_states = 64;

std::size_t enough_of(const ViewOptions& options) {
  return options.minimum == 0 ? options.names.size() : options.minimum;
}

}  // namespace

ViewEngine::ViewEngine(ViewOptions options, std::optional<Kept> former)
    : options_(std::move(options)),
      self_(options_.self),
      neighbours_(options_.patience),
      proposer_(options_.patience, options_.seed),
      kept_(begin_with(self_, std::move(former))) {
  digest_ = view().digest();
  // The number that it was started with may be lower: former ones had theirs raised.
  if (const Member* const same = view().member(self_.name)) renumber(same->id);
  for (std::size_t i = 1; i < kept_.votes.size(); ++i) renumber(kept_.votes[i].owner);
}

ViewEngine::Standing ViewEngine::standing() const {
  if (left_) return Standing::left;
  if (refused_) return Standing::refused;
  const Member* const self = view().member(self_);
  if (self == nullptr) return Standing::applies;
  return self->joining ? Standing::joining : Standing::member;
}

std::optional<ProcessId> ViewEngine::giver() const {
  if (standing() != Standing::joining) return std::nullopt;
  return view().members.front().id;
}

bool ViewEngine::complete(std::uint64_t number, std::uint64_t operation) {
  if (frozen_ || number != view().number) return false;
  const bool added = progress_.add(operation);
  DPWA_INVARIANT(added, "an operation is completed once", operation, progress_.through);
  if (asked_) tell_progress();
  return true;
}

bool ViewEngine::begin_at(std::uint64_t number, std::uint64_t through) {
  if (number != view().number) return false;
  forget_state();
  progress_.through = through;
  return true;
}

void ViewEngine::forget_state() {
  progress_ = {};
  states_.clear();
}

void ViewEngine::note_state(std::uint64_t through, std::uint64_t digest) {
  states_.insert_or_assign(through, digest);
  if (states_.size() > kept_states) states_.erase(states_.begin());
}

void ViewEngine::send(const std::string& to, ViewMessage message) {
  outgoing_.push_back({to, std::move(message)});
}

// To itself at once: what goes to others waits for the disk, and so does what is decided here.
void ViewEngine::answer(const ProcessId& to, ViewMessage message, TimePoint now) {
  if (to == self_) return receive(to, message, now);
  send(to.name, std::move(message));
}

void ViewEngine::send_to(const std::set<std::string>& names, const ViewMessage& message) {
  for (const std::string& name : names) {
    if (name != self_.name) send(name, message);
  }
}

std::set<std::string> ViewEngine::names_of_voters() const {
  std::set<std::string> names;
  if (view().open()) names.insert(options_.names.begin(), options_.names.end());
  for (const ProcessId& voter : view().voters()) names.insert(voter.name);
  return names;
}

ViewEngine::Wishes ViewEngine::take() {
  Wishes wishes;
  if (std::exchange(changed_, false)) wishes.keep = kept_;
  wishes.send = std::exchange(outgoing_, {});
  wishes.installed = std::exchange(installed_, {});
  return wishes;
}

void ViewEngine::heard(const ProcessId& from, const Base& base, TimePoint now) {
  neighbours_.note(from, now);
  compare(from, base);
}

// One of the two may have missed a view.
void ViewEngine::compare(const ProcessId& with, const Base& its) {
  if (with == self_) return;
  if (its.number < view().number) send(with.name, Installed{view()});
  if (its.number > view().number) send(with.name, AskView{base()});
}

void ViewEngine::receive(const ProcessId& from, const ViewMessage& message, TimePoint now) {
  // One that applies may have the name of a living member.
  if (from != self_ && !std::holds_alternative<Apply>(message)) neighbours_.note(from, now);
  std::visit([&](const auto& content) { handle(from, content, now); }, message);
}

bool ViewEngine::at_base(const ProcessId& from, const Base& base) {
  compare(from, base);
  return base == this->base();
}

// Voters; and those that want to close a run of which no process is left.
bool ViewEngine::may_propose(const ProcessId& from) const {
  if (view().open() || view().votes(from)) return true;
  return view().member(from.name) != nullptr && !view().votes(self_);
}

// The votes that this process gives: under an open view that of its name, else its own and those of
// former processes.
std::vector<Vote*> ViewEngine::own_votes() {
  std::vector<Vote*> votes;
  if (view().open()) {
    Vote& own = kept_.votes.front();
    if (std::ranges::find(options_.names, own.owner.name) != options_.names.end())
      votes.push_back(&own);
    return votes;
  }
  for (Vote& vote : kept_.votes) {
    if (view().votes(vote.owner)) votes.push_back(&vote);
  }
  return votes;
}

void ViewEngine::handle(const ProcessId& from, const Prepare& message, TimePoint now) {
  if (!at_base(from, message.base) || !may_propose(from)) return;
  if (message.ballot.round >= most_rounds || left_ || refused_) return;
  std::vector<Promise> promises;
  for (Vote* vote : own_votes()) promises.push_back(vote->prepare(message));
  // One that is joining has no vote. It tells how far it is, and again as it gets on.
  asked_.reset();
  if (standing() == Standing::joining) {
    asked_ = {from.name, message};
    tell_progress();
  }
  for (Promise& promise : promises) {
    changed_ |= promise.granted;
    promise.lives = promise.voter == self_;
    if (promise.lives) {
      promise.done = progress_;
      promise.hears = neighbours_.applicants(now);
    }
    if (promise.lives && promise.granted && view().votes(self_) && !std::exchange(frozen_, true))
      frozen_since_ = now;
    answer(from, std::move(promise), now);
  }
}

void ViewEngine::tell_progress() {
  const auto& [proposer, question] = *asked_;
  send(proposer, Promise{.base = question.base,
                         .ballot = question.ballot,
                         .voter = self_,
                         .granted = true,
                         .highest = {},
                         .accepted = {},
                         .value = {},
                         .lives = true,
                         .done = progress_,
                         .hears = {}});
}

void ViewEngine::handle(const ProcessId& from, const Promise& message, TimePoint now) {
  if (!at_base(from, message.base)) return;
  proposer_.note(message);
  choose(now);
}

void ViewEngine::handle(const ProcessId& from, const Accept& message, TimePoint now) {
  if (!at_base(from, message.base) || !may_propose(from)) return;
  if (message.ballot.round >= most_rounds || left_ || refused_) return;
  if (!message.value.follows(base())) return;
  std::vector<Accepted> given;
  for (Vote* vote : own_votes()) {
    if (auto accepted = vote->accept(message)) given.push_back(*accepted);
  }
  changed_ |= !given.empty();
  for (const Accepted& accepted : given) answer(from, accepted, now);
}

void ViewEngine::handle(const ProcessId& from, const Accepted& message, TimePoint now) {
  if (!at_base(from, message.base)) return;
  const auto decided = proposer_.note(message, view(), facts(now));
  if (!decided) return;
  std::set<std::string> names = names_of_voters();
  for (const Member& member : view().members) names.insert(member.id.name);
  for (const Member& member : decided->members) names.insert(member.id.name);
  names.merge(neighbours_.names());
  send_to(names, Installed{*decided});
  install(*decided);
}

void ViewEngine::handle(const ProcessId&, const Installed& message, TimePoint) {
  if (message.view.sound()) install(message.view);
}

void ViewEngine::handle(const ProcessId& from, const AskView& message, TimePoint) {
  compare(from, message.base);
}

void ViewEngine::handle(const ProcessId& from, const Apply& message, TimePoint now) {
  compare(from, message.base);
  if (view().open() || message.settings == view().settings) {
    neighbours_.note_applicant(from, message, view(), now);
  } else if (standing() == Standing::member) {
    send(from.name, Refuse{base()});
  }
}

void ViewEngine::handle(const ProcessId& from, const Ready& message, TimePoint) {
  if (!at_base(from, message.base)) return;
  const auto own = states_.find(message.through);
  const Member* const member = view().member(from);
  if (own == states_.end() || member == nullptr || !member->joining) return;
  if (own->second == message.state) {
    neighbours_.note_ready(from);
  } else {
    neighbours_.note_leaving(from);  // out of the view it begins again
  }
}

void ViewEngine::handle(const ProcessId& from, const Leave& message, TimePoint) {
  if (at_base(from, message.base) && view().member(from) != nullptr) neighbours_.note_leaving(from);
}

void ViewEngine::handle(const ProcessId&, const Refuse& message, TimePoint) {
  if (message.base.number >= view().number && standing() == Standing::applies) refused_ = true;
}

Apply ViewEngine::application() const {
  return {base(), options_.settings, options_.serves};
}

Facts ViewEngine::facts(TimePoint now) const {
  Facts facts = neighbours_.facts(view(), now);
  facts.names = options_.names;
  facts.enough = enough_of(options_);
  facts.of_new_run = options_.quorum;
  if (leaving_) facts.leaving.insert(self_);
  if (standing() == Standing::applies) facts.apply.insert_or_assign(self_, application());
  // Of a run that begins, all have the settings of the proposer. One may have applied before that.
  const std::uint64_t settings = view().open() ? options_.settings : view().settings;
  std::erase_if(facts.apply, [&](const auto& each) { return each.second.settings != settings; });
  facts.closes = !view().open() && std::ranges::all_of(view().voters(), [&](const ProcessId& each) {
    return each.name == self_.name ? self_.replaces(each) : neighbours_.hears_later(each, now);
  });
  return facts;
}

// Who proposes: the first in order of seniority; the others later, if need be.
std::size_t ViewEngine::place(TimePoint now) const {
  std::size_t before = 0;
  if (view().open() || !view().votes(self_)) {
    const std::set<std::string> names = names_of_voters();
    for (const std::string& name : names) {
      if (name == self_.name) break;
      if (neighbours_.hears(name, now)) ++before;
    }
    return before;
  }
  for (const ProcessId& voter : view().voters()) {
    if (voter == self_) break;
    if (!neighbours_.suspects(voter)) ++before;
  }
  return before;
}

void ViewEngine::consider(TimePoint now) {
  const Facts known = facts(now);
  const bool frozen_long = frozen_ && now - frozen_since_ >= 2 * options_.patience;
  const bool closes = known.closes && view().member(self_.name) != nullptr;
  const bool may = view().open() || view().votes(self_) || closes;
  const bool in_names = std::ranges::find(options_.names, self_.name) != options_.names.end();
  if (!may || (view().open() && !in_names) || left_ || refused_ ||
      (!wants_change(view(), known) && !frozen_long && !renews_)) {
    wanted_since_.reset();
    return;
  }
  if (!wanted_since_) wanted_since_ = now;
  if (now - *wanted_since_ < static_cast<std::int64_t>(place(now)) * options_.patience) return;
  begin_ballot(now);
}

void ViewEngine::begin_ballot(TimePoint now) {
  std::uint64_t promised = 0;
  for (const Vote& vote : kept_.votes) promised = std::max(promised, vote.promised.round);
  const Prepare question = proposer_.begin(base(), self_, promised, now);
  std::set<std::string> names = names_of_voters();
  for (const Member& member : view().members) names.insert(member.id.name);
  send_to(names, question);
  handle(self_, question, now);
}

void ViewEngine::choose(TimePoint now) {
  const auto proposal =
      proposer_.choose(view(), base(), facts(now), now,
                       [&](const ProcessId& denied) { neighbours_.deny(denied, now); });
  if (!proposal) return;
  send_to(names_of_voters(), *proposal);
  handle(self_, *proposal, now);
}

void ViewEngine::install(const View& view) {
  if (view.number <= this->view().number) return;
  const bool was_in = this->view().member(self_) != nullptr;
  const auto giver_before = giver();
  kept_.installed = view;
  digest_ = view.digest();
  for (Vote& vote : kept_.votes) vote = {.owner = vote.owner, .value = {}};
  const auto own = kept_.votes.begin() + 1;
  kept_.votes.erase(
      std::remove_if(own, kept_.votes.end(),
                     [&](const Vote& vote) { return view.member(vote.owner) == nullptr; }),
      kept_.votes.end());
  changed_ = true;
  installed_.push_back(view);
  frozen_ = false;
  asked_.reset();
  left_ = left_ || (was_in && leaving_ && view.member(self_) == nullptr);
  // The state of one that is left out is no longer that of the group, even if it hears only that it
  // joins again. One that is joining has what its giver had, perhaps alone.
  const bool begins_anew = giver() && giver() != giver_before;
  if (standing() == Standing::applies || begins_anew) forget_state();
  neighbours_.install(view);
  renews_ = false;
  proposer_.end();
  wanted_since_.reset();
  told_ = {};
  // Whether its former process has ended is for the members to find out.
  const Member* const same = view.member(self_.name);
  if (same != nullptr) renumber(same->id);
}

// Becomes a later process than this other one of its name.
void ViewEngine::renumber(const ProcessId& above) {
  if (above == self_ || self_.replaces(above)) return;
  self_.counter = above.counter + 1;
  kept_.votes.front().owner = self_;
}

// Says again what others have to know of this process, for as long as it is so.
void ViewEngine::make_itself_heard(TimePoint now) {
  if (now - told_ < options_.patience && told_ != TimePoint{}) return;
  told_ = now;
  std::set<std::string> names;
  for (const Member& member : view().members) names.insert(member.id.name);
  switch (standing()) {
    case Standing::applies:
      names.insert(options_.names.begin(), options_.names.end());
      send_to(names, application());
      break;
    case Standing::joining:
      if (!states_.empty())
        send_to(names, Ready{base(), states_.rbegin()->first, states_.rbegin()->second});
      break;
    case Standing::member:
      if (leaving_) send_to(names, Leave{base()});
      break;
    case Standing::left:
    case Standing::refused:
      break;
  }
}

void ViewEngine::tick(TimePoint now) {
  make_itself_heard(now);
  choose(now);
  if (!proposer_.active()) return consider(now);
  if (proposer_.is_over(now)) begin_ballot(now);
}

std::vector<std::string> ViewEngine::missing(TimePoint now, Duration after) const {
  return proposer_.missing(names_of_voters(), now, after);
}

}  // namespace dpwa::members
