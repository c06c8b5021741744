#include "dpwa/kvstore/epoch_engine.h"

#include <algorithm>
#include <functional>

namespace dpwa::kvstore {
namespace {

// The low bits of a ballot: the place of the proposer. The others: its round.
constexpr unsigned proposer_bits = 16;

// A number leaves room for later ones. It may be ahead of this process by far, because numbers
// begin with the time of a start in microseconds, and the clock of this machine may be that of
// 1970.
constexpr std::uint64_t most_ahead = std::uint64_t{1} << 56;
constexpr std::uint64_t most_epochs = std::uint64_t{1} << 62;

// A ballot leaves room for later ones as well. No run comes near: one takes milliseconds.
constexpr std::uint64_t most_ballots = std::uint64_t{1} << 62;

constexpr int most_patience = 4;  // in `retry`: a round trip between sites may take longer

// Servers first. Before the first epoch all servers of the file are members.
std::vector<std::string> names_of_members(const Epoch& epoch) {
  std::vector<std::string> names;
  for (const ServerEntry& server : epoch.servers) {
    if (epoch.number == 0 || server.state != ServerState::down) names.push_back(server.id.name);
  }
  for (const WorkerEntry& worker : epoch.workers) names.push_back(worker.id.name);
  for (const MemberId& worker : epoch.at_end) names.push_back(worker.name);
  return names;
}

}  // namespace

EpochEngine::EpochEngine(MemberId self, const std::vector<std::string>& servers, Duration retry)
    : self_(std::move(self)), patience_{retry, most_patience * retry, 0} {
  for (const std::string& name : servers) {
    installed_.servers.push_back({{name, 0}, ServerState::down});
  }
}

bool EpochEngine::Proposer::has(const std::string& name) const {
  return std::ranges::any_of(yes, [&](const MemberId& other) { return other.name == name; });
}

bool EpochEngine::Proposer::add(const MemberId& member) {
  if (has(member.name)) return false;
  yes.push_back(member);
  return true;
}

void EpochEngine::send(const std::string& to, EpochMessage message) {
  outgoing_.push_back({to, std::move(message)});
}

// To all members but this one. Before the first epoch: to all servers.
void EpochEngine::send_to_members(const Epoch& epoch, const EpochMessage& message) {
  for (const std::string& name : names_of_members(epoch)) {
    if (name != self_.name) send(name, message);
  }
}

void EpochEngine::compare(const std::string& with, std::uint64_t its_epoch) {
  if (its_epoch < installed_.number) send(with, EpochNews{installed_});
  if (its_epoch > installed_.number) send(with, AskEpoch{});
}

bool EpochEngine::at_base(const MemberId& from, std::uint64_t base) {
  compare(from.name, base);
  return base == installed_.number;
}

// Before the first epoch any incarnation of a server counts, because all servers have to agree.
bool EpochEngine::counts(const MemberId& from) const {
  if (installed_.number == 0) return installed_.server(from.name).has_value();
  return installed_.has(from) || installed_.has_successor(from);
}

// Only servers propose.
bool EpochEngine::may_propose(const MemberId& from) const {
  if (!installed_.server(from.name)) return false;
  return installed_.number == 0 || installed_.has(from);
}

void EpochEngine::propose(Epoch next, TimePoint now) {
  if (proposer_ || next.number <= installed_.number || !may_propose(self_)) return;
  proposer_ =
      Proposer{.next = std::move(next), .yes = {}, .accepted = {}, .proposed = now, .lacking = {}};
  begin_ballot(now);
}

void EpochEngine::amend(std::optional<Epoch> next) {
  if (!proposer_ || proposer_->promised || proposer_->highest_accepted > 0) return;
  if (next) {
    DPWA_INVARIANT(next->number > installed_.number, "epochs are proposed in ascending order",
                   next->number, installed_.number);
    proposer_->next = *std::move(next);
  } else {
    proposer_.reset();
  }
}

void EpochEngine::begin_ballot(TimePoint now) {
  round_ = std::max(round_, promised_ >> proposer_bits) + 1;
  const std::uint64_t place = installed_.server(self_.name).value_or(0);
  proposer_->ballot = round_ << proposer_bits | place;
  ++proposer_->ballots;
  proposer_->promised = false;
  proposer_->yes.clear();
  proposer_->highest_accepted = 0;
  proposer_->began = now;
  const Ballot ballot{installed_.number, proposer_->ballot};
  send_to_members(installed_, ballot);
  handle(self_, ballot, now);
}

void EpochEngine::tick(TimePoint now) {
  if (!proposer_ || now - proposer_->began < patience_.nominal(proposer_->ballots)) return;
  proposer_->lacking = names_of_members(installed_);
  std::erase_if(proposer_->lacking, [&](const auto& name) { return proposer_->has(name); });
  begin_ballot(now);
}

std::vector<std::string> EpochEngine::undecided(TimePoint now, Duration after) const {
  if (!proposer_ || now - proposer_->proposed < after) return {};
  return proposer_->lacking;
}

bool EpochEngine::receive(const MemberId& from, const EpochMessage& message, TimePoint now) {
  return std::visit([&](const auto& content) { return handle(from, content, now); }, message);
}

bool EpochEngine::handle(const MemberId& from, const Ballot& message, TimePoint now) {
  if (!at_base(from, message.base) || !may_propose(from)) return false;
  if (message.ballot >= most_ballots) return false;
  DPWA_INVARIANT(accepted_ballot_ <= promised_, "an accepted ballot was promised", accepted_ballot_,
                 promised_);
  const bool granted = message.ballot > promised_;
  if (granted) promised_ = message.ballot;
  const Promise answer{message.base, promised_, granted, accepted_ballot_, accepted_};
  if (from.name == self_.name) return handle(from, answer, now);
  send(from.name, answer);
  return false;
}

bool EpochEngine::handle(const MemberId& from, const Promise& message, TimePoint now) {
  if (!at_base(from, message.base) || !proposer_ || !counts(from)) return false;
  if (message.ballot >= most_ballots) return false;
  if (!message.granted) {
    round_ = std::max(round_, message.ballot >> proposer_bits);
    return false;
  }
  if (message.ballot != proposer_->ballot || proposer_->promised) return false;
  if (!proposer_->add(from)) return false;
  if (message.accepted_ballot > proposer_->highest_accepted && fits(message.accepted)) {
    proposer_->highest_accepted = message.accepted_ballot;
    proposer_->accepted = message.accepted;
  }
  if (!is_majority(installed_, proposer_->yes)) return false;
  if (proposer_->highest_accepted > 0 && !is_over(proposer_->accepted))
    proposer_->next = proposer_->accepted;
  // A server that is gone may have decided epochs alone. Their numbers are below the incarnation of
  // its successor, which is the time of its start: no number is given twice.
  for (const MemberId& voter : proposer_->yes) {
    const bool fresh = installed_.number > 0 && proposer_->highest_accepted == 0;
    if (!fresh || installed_.has(voter)) continue;
    proposer_->next.number = std::max(proposer_->next.number, voter.incarnation);
  }
  return ask_for_votes(now);
}

// Whether a first epoch names a process of which a later one votes. All servers vote on the first
// epoch, and none of them is in that one: if it was decided, its run is over. The next one has a
// higher number.
bool EpochEngine::is_over(const Epoch& accepted) const {
  if (installed_.number != 0 || accepted.number >= proposer_->next.number) return false;
  return std::ranges::any_of(proposer_->yes, [&](const MemberId& voter) {
    const auto place = accepted.server(voter.name);
    return place && accepted.servers[*place].id.incarnation < voter.incarnation;
  });
}

bool EpochEngine::ask_for_votes(TimePoint now) {
  DPWA_INVARIANT(proposer_ && !proposer_->promised, "a majority promises a ballot once",
                 installed_.number);
  proposer_->promised = true;
  proposer_->began = now;
  proposer_->yes.clear();
  const Proposal proposal{installed_.number, proposer_->ballot, proposer_->next};
  send_to_members(installed_, proposal);
  return handle(self_, proposal, now);
}

bool EpochEngine::handle(const MemberId& from, const Proposal& message, TimePoint now) {
  if (!at_base(from, message.base) || !may_propose(from)) return false;
  if (message.ballot < promised_ || message.ballot >= most_ballots || !fits(message.epoch))
    return false;
  DPWA_INVARIANT(accepted_ballot_ <= message.ballot, "ballots are accepted in ascending order",
                 accepted_ballot_, message.ballot);
  promised_ = accepted_ballot_ = message.ballot;
  accepted_ = message.epoch;
  const Vote vote{message.base, message.ballot};
  if (from.name == self_.name) return handle(from, vote, now);
  send(from.name, vote);
  return false;
}

bool EpochEngine::handle(const MemberId& from, const Vote& message, TimePoint) {
  if (!at_base(from, message.base) || !proposer_ || !proposer_->promised || !counts(from) ||
      message.ballot != proposer_->ballot || !proposer_->add(from)) {
    return false;
  }
  if (!is_majority(installed_, proposer_->yes)) return false;
  note_replaced();
  const EpochNews news{proposer_->next};
  send_to_members(installed_, news);
  send_to_members(news.epoch, news);
  return install(news.epoch);
}

void EpochEngine::note_replaced() {
  if (installed_.number == 0) return;
  std::vector<MemberId> voters = proposer_->yes;
  std::vector<std::string> names;
  std::erase_if(voters, [&](const MemberId& voter) {
    const bool is_next = !installed_.has(voter);
    if (is_next) names.push_back(voter.name);
    return is_next;
  });
  if (!is_majority(installed_, voters)) replaced_ = std::move(names);
}

bool EpochEngine::handle(const MemberId&, const EpochNews& message, TimePoint) {
  return install(message.epoch);
}

bool EpochEngine::handle(const MemberId& from, const AskEpoch&, TimePoint) {
  if (installed_.number > 0) send(from.name, EpochNews{installed_});
  // It has dropped what this member asked of it in an epoch that it did not know.
  if (!proposer_ || !counts(from) || proposer_->has(from.name)) return false;
  if (proposer_->promised) {
    send(from.name, Proposal{installed_.number, proposer_->ballot, proposer_->next});
  } else {
    send(from.name, Ballot{installed_.number, proposer_->ballot});
  }
  return false;
}

// All servers of the file in its order, and workers in the order of their names, each once. Places
// of servers are counted with that in mind.
bool EpochEngine::fits(const Epoch& epoch) const {
  const std::uint64_t known = std::max(installed_.number, self_.incarnation);
  if (epoch.number >= most_epochs) return false;
  if (epoch.number > known && epoch.number - known > most_ahead) return false;
  const auto name = [](const auto& entry) -> const std::string& { return entry.id.name; };
  const bool same_servers = std::ranges::equal(epoch.servers, installed_.servers, {}, name, name);
  const bool in_order = std::ranges::adjacent_find(epoch.workers, std::greater_equal<>(), name) ==
                        epoch.workers.end();
  const bool at_end_in_order = std::ranges::adjacent_find(epoch.at_end, std::greater_equal<>(),
                                                          &MemberId::name) == epoch.at_end.end();
  const auto is_server = [&](const std::string& worker) {
    return epoch.server(worker).has_value();
  };
  return same_servers && in_order && at_end_in_order &&
         std::ranges::none_of(epoch.workers, is_server, name) &&
         std::ranges::none_of(epoch.at_end, [&](const MemberId& worker) {
           return is_server(worker.name) || epoch.worker(worker.name) != nullptr;
         });
}

bool EpochEngine::install(const Epoch& epoch) {
  if (epoch.number <= installed_.number || !fits(epoch)) return false;
  installed_ = epoch;
  promised_ = accepted_ballot_ = 0;
  accepted_ = {};
  proposer_.reset();
  return true;
}

}  // namespace dpwa::kvstore
