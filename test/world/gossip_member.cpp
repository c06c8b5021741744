#include "test/world/gossip_member.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "dpwa/base/random.h"
#include "interpolation/registry.h"

namespace dpwa::world::testing {

using namespace std::chrono_literals;

namespace {

constexpr Duration between_ticks = 500ms;

std::uint64_t microseconds(TimePoint time) {
  return static_cast<std::uint64_t>(time.time_since_epoch() / 1us);
}

}  // namespace

Model Conduct::initial(Random& random) {
  Model model{.values = std::vector<double>(4)};
  for (double& value : model.values) value = random.normal(0, 1);
  return model;
}

Duration Conduct::next_step(Random& random) {
  return std::chrono::duration_cast<Duration>(step_time * random.uniform(.9, 1.1));
}

void Conduct::train(Model& model, Random& random) {
  for (double& value : model.values) value += .05 * (1 - value) + .01 * random.normal(0, 1);
}

GossipMember::GossipMember(Environment& environment, const GossipOptions& options,
                           GossipChecks& checks, Conduct& conduct)
    : environment_(environment),
      options_(options),
      checks_(checks),
      conduct_(conduct),
      random_(environment.random().next()),
      incarnation_(microseconds(environment.now()) + 1),
      position_(static_cast<std::size_t>(std::ranges::find(options.names, environment.name()) -
                                         options.names.begin())),
      engine_(make_engine()),
      members_(make_members()),
      members_random_(random_.next()),
      trainer_(make_trainer()) {
  model_ = conduct.initial(random_);
  if (model_.origin == 0) model_.origin = checks_.next_number();
  const std::any kept = environment_.read("checkpoint");
  if (kept.has_value()) {
    restore(std::any_cast<const Kept&>(kept));
  } else if (conduct.kept) {
    restore(*conduct.kept);
  }
  environment_.after(between_ticks, [this] { tick(); });
  if (conduct.begins_at_once) {
    if (!resumed_) trainer_.replace(0, 1);
    const auto first = conduct.step_time * random_.uniform(0, 1);
    environment_.after(std::chrono::duration_cast<Duration>(first), [this] { begin_training(); });
  } else if (conduct.starts) {
    begin();
  }
}

PullEngine GossipMember::make_engine() {
  PullEngineOptions options = options_.pulls;
  options.seed = random_.next();
  options.block_shares = options_.trainer.block_shares;
  if (options_.ledger) options.ledger_factor = options_.factor;
  std::vector<std::string> peers = options_.names;
  std::erase(peers, environment_.name());
  return {options, peers};
}

TrainerState GossipMember::make_trainer() {
  TrainerOptions options = options_.trainer;
  options.listing = place().listing;
  options.start_wait = options_.start_wait;
  options.timeout = options_.timeout;
  auto policy = interpolation_registry().make("constant", {{"value", options_.factor}});
  return {options, GuardedInterpolation(std::move(policy), 0), random_};
}

// Each node at an address of its own.
MemberClaim GossipMember::claim_of(const std::string& name) const {
  MemberClaim claim;
  claim.name = name;
  const std::uint64_t place = hash_of(name);
  claim.addresses = {"10.0." + std::to_string(place >> 16 & 255) + '.' +
                     std::to_string(place >> 24 & 255)};
  claim.port = static_cast<std::uint16_t>(1 + place % 65535);
  if (name == environment_.name()) claim.incarnation = incarnation_;
  return claim;
}

Membership GossipMember::make_members() const {
  std::vector<MemberClaim> others;
  for (const std::string& name : options_.names)
    if (name != environment_.name() && !options_.by_seeds) others.push_back(claim_of(name));
  return {claim_of(environment_.name()), std::move(others), options_.membership};
}

std::set<std::string> GossipMember::running() const {
  std::set<std::string> names;
  for (const Member& member : members_.members())
    if (runs(member.status())) names.insert(member.claim.name);
  return names;
}

// Its incarnation is raised before anybody has heard of it.
void GossipMember::restore(const Kept& kept) {
  incarnation_ = std::max(incarnation_, kept.incarnation + 1);
  members_ = make_members();
  members_random_ = Random(random_.next());
  model_ = kept.model;
  trainer_.restore(kept.clock, kept.lineage);
  resumed_ = true;
  kept_.clock = kept.clock;
  kept_.lineage = kept.lineage;
}

void GossipMember::publish(const Progress& progress) {
  const std::uint64_t version = published_->progress.version + 1;
  const auto fresh = std::make_shared<Snapshot>(Snapshot{progress, model_});
  fresh->progress.version = version;
  published_ = fresh;
  checks_.published(environment_.name(), progress.lineage, model_, trains());
}

// --- the network

void GossipMember::call(const std::string& to, GossipQuery query, Duration timeout,
                        Answered answered) {
  const std::uint64_t id = ++last_query_;
  query.from = environment_.name();
  query.incarnation = incarnation_;
  query.id = id;
  queries_.emplace(id, std::move(answered));
  environment_.after(timeout, [this, id] {
    if (queries_.contains(id)) end_call(id, {.failure = PeerFailure::unreachable, .late = true});
  });
  environment_.send(
      to,
      [query = std::move(query)](Program& there) {
        static_cast<GossipMember&>(there).serve(query);
      },
      [this, id] { end_call(id, {.failure = PeerFailure::unreachable}); });
}

// Unless it has ended.
void GossipMember::end_call(std::uint64_t id, const GossipReply& reply) {
  const auto found = queries_.extract(id);
  if (!found.empty()) found.mapped()(reply);
}

void GossipMember::serve(const GossipQuery& query) {
  GossipReply reply;
  reply.failure = conduct_.turns_away(query.from);
  if (!reply.failure) {
    members_.heard(query.from, query.incarnation, now());
    engine_.called(query.from, query.incarnation);
    std::uint64_t& known = callers_[query.from];
    new_caller_ |= std::exchange(known, query.incarnation) != query.incarnation;
    reply = reply_to(query);
    reply.incarnation = incarnation_;
    reply.state = state_;
    reply.progress = published_->progress;
  }
  const std::optional<Duration> held_back = conduct_.answers(query, reply);
  if (held_back == Duration::zero()) {
    answer(query.from, query.incarnation, query.id, std::move(reply));
  } else if (held_back) {
    environment_.after(*held_back,
                       [this, to = query.from, process = query.incarnation, id = query.id,
                        reply = std::move(reply)] { answer(to, process, id, reply); });
  }
  if (new_caller_ && waiting_) end_wait();
}

void GossipMember::answer(const std::string& to, std::uint64_t process, std::uint64_t id,
                          GossipReply reply) {
  environment_.send(to, [process, id, reply = std::move(reply)](Program& there) {
    auto& caller = static_cast<GossipMember&>(there);
    if (caller.incarnation_ == process) caller.end_call(id, reply);
  });
}

GossipReply GossipMember::reply_to(const GossipQuery& query) {
  if (query.pull) return snapshot_for(*query.pull, query.from);
  GossipReply reply;
  if (!query.members) return reply;
  members_.merge(query.from, query.incarnation, *query.members, now());
  reply.members = members_.answer(query.from, *query.members, now());
  return reply;
}

// As examine_pull() and note_served() of the real node.
GossipReply GossipMember::snapshot_for(const GossipQuery::Pull& pull, const std::string& from) {
  const Progress& progress = published_->progress;
  GossipReply reply;
  if (pull.taken) stated_[from] = *pull.taken;
  const bool begins_with_them = pull.full && progress.lineage != 0;
  if (progress.version == 0 || (state_ == GossipState::joining && !begins_with_them)) {
    reply.failure = PeerFailure::not_ready;
  } else if (pull.known_version != 0 && pull.known_version == progress.version) {
    reply.failure = PeerFailure::unchanged;
    if (pull.for_final && progress.final) served_.insert(from);
  } else if (pull.taken && now() > fresh_until_) {
    reply.failure = PeerFailure::not_fresh;
  } else {
    reply.snapshot = published_;
    if (pull.for_final && progress.final) served_.insert(from);
    if (!pull.for_final && pull.full && state_ != GossipState::joining)
      given_[from] = {now(), progress.lineage};
  }
  return reply;
}

void GossipMember::tick() {
  members_.tick(now());
  for (const MemberClaim& member : members_.to_ask(now(), members_random_)) {
    if (conduct_.calls && probed_.insert(member.name).second) probe(member.name);
  }
  constexpr unsigned ticks_to_seeds = 10;  // Visits does so at growing distances
  if (options_.by_seeds && conduct_.calls && ++ticks_ % ticks_to_seeds == 0)
    visit([](const std::vector<PeerAnswer>&) {});
  environment_.after(between_ticks, [this] { tick(); });
}

void GossipMember::probe(const std::string& name) {
  GossipQuery query;
  query.members = members_.request(name, now());
  call(name, std::move(query), 5 * options_.timeout, [this, name](const GossipReply& reply) {
    probed_.erase(name);
    Membership& membership = members_;
    if (reply.failure) return membership.failed(name, now());
    membership.reached(name, reply.incarnation, now());
    membership.merge_answer(name, reply.incarnation, reply.members, now());
    engine_.reached(name, reply.incarnation, now());
  });
}

void GossipMember::exchange_members(const std::string& with) {
  Membership& membership = members_;
  if (!membership.exchange_is_due(with, now())) return;
  GossipQuery query;
  query.members = members_.request(with, now());
  call(with, std::move(query), options_.timeout, [this, with](const GossipReply& reply) {
    if (!reply.failure) members_.merge_answer(with, reply.incarnation, reply.members, now());
  });
}

void GossipMember::greet(Greeted greeted) {
  hear_others();
  const auto& table = members_.members();
  const std::vector<Member> members(table.begin(), table.end());
  const std::vector<PeerId> peers = engine_.to_greet(members);
  if (peers.empty()) return greeted(std::vector<PeerAnswer>(members.size()));
  struct Work {
    std::vector<PeerAnswer> answers;
    std::size_t missing = 0;
    Greeted greeted;
  };
  const auto work = std::make_shared<Work>(
      Work{std::vector<PeerAnswer>(members.size()), peers.size(), std::move(greeted)});
  for (const PeerId peer : peers) {
    const std::string name = members[peer].claim.name;
    call(name, {}, options_.timeout, [this, work, peer, name](const GossipReply& reply) {
      PeerAnswer& answer = work->answers[peer];
      answer.asked = true;
      answer.failure = reply.failure;
      answer.detail = reply.detail;
      answer.refuses_name = reply.refuses_name;
      if (reply.failure && reply.late) answer.failure = PeerFailure::timed_out;
      answer.joining = reply.state == GossipState::joining;
      answer.finished = reply.state == GossipState::finished;
      answer.lineage = reply.progress.lineage;
      answer.clock = reply.progress.clock;
      if (!reply.failure) members_.reached(name, reply.incarnation, now());
      if (--work->missing > 0) return;
      for (std::size_t i = 0; i < work->answers.size(); ++i) {
        const Member& member = members_.members()[static_cast<PeerId>(i)];
        work->answers[i].name = member.claim.name;
        work->answers[i].listed = member.listed;
        work->answers[i].vouched_for = member.vouched_for();
        work->answers[i].status = member.status();
      }
      work->greeted(work->answers);
    });
  }
}

// Whether nobody is known to be there.
bool GossipMember::is_unmet(const std::string& seed) const {
  const Member* member = members_.member(seed);
  const bool there =
      member != nullptr && member->answers && member->status() == MemberStatus::alive;
  return seed != environment_.name() && !there;
}

// Those of the file, by which it joins, or the seeds where nobody is known to be.
void GossipMember::visit(Greeted greeted) {
  struct Work {
    std::vector<PeerAnswer> answers;
    Greeted greeted;
  };
  std::vector<std::string> names;
  for (const std::string& name : options_.names)
    if (!options_.by_seeds || is_unmet(name)) names.push_back(name);
  if (names.empty()) return greeted({});
  const auto work = std::make_shared<Work>(Work{{}, std::move(greeted)});
  for (const std::string& name : names) {
    GossipQuery query;
    query.members = members_.request(name, now());
    call(name, std::move(query), options_.timeout,
         [this, work, name, most = names.size()](const GossipReply& reply) {
           PeerAnswer& answer = work->answers.emplace_back();
           answer.asked = true;
           answer.failure = reply.failure;
           answer.name = name;
           Membership& membership = members_;
           if (!reply.failure) {
             membership.reached(name, reply.incarnation, now());
             membership.merge_answer(name, reply.incarnation, reply.members, now());
           }
           if (work->answers.size() == most) work->greeted(work->answers);
         });
  }
}

void GossipMember::hear_others() {
  if (members_version_ != members_.version()) {
    for (const PeerId peer : members_.changed_since(members_version_))
      engine_.take_up(peer, members_.members()[peer]);
    members_version_ = members_.version();
  }
  for (const auto& [peer, taken] : std::exchange(stated_, {}))
    engine_.stated(peer, callers_[peer], taken);
}

void GossipMember::begin_round(const RoundSpec& round, RoundOver over) {
  round_over_ = std::move(over);
  exchange_ = round.exchange;
  engine_.begin(round);
  advance();
}

void GossipMember::advance() {
  hear_others();
  auto action = engine_.next(published_->progress.clock, now());
  if (const auto* wait = std::get_if<PullEngine::Wait>(&action)) {
    environment_.after(wait->time, [this] { advance(); });
  } else if (const auto* ask = std::get_if<PullEngine::Ask>(&action)) {
    attempt(*ask);
  } else {
    const auto& arrival = std::get<Arrival>(action);
    conduct_.ended_round(arrival);
    std::exchange(round_over_, {})(arrival);
  }
}

void GossipMember::attempt(const PullEngine::Ask& ask) {
  const std::string peer = engine_.table().name(ask.peer);
  GossipQuery query;
  query.pull = {exchange_.whole_model, exchange_.for_final_average, ask.known_version, {}};
  if (exchange_.blends()) query.pull->taken = ask.taken;
  exchange_members(peer);
  call(peer, std::move(query), ask.left,
       [this, peer, known = ask.known_incarnation](const GossipReply& reply) {
         if (reply.failure != PeerFailure::unchanged || known == reply.incarnation)
           return attempted(peer, reply);
         GossipReply of_another = reply;  // a version of another process
         of_another.failure = PeerFailure::not_ready;
         attempted(peer, of_another);
       });
}

void GossipMember::attempted(const std::string& peer, const GossipReply& reply) {
  Answer answer;
  answer.failure = reply.failure;
  answer.detail = reply.detail;
  answer.refuses_name = reply.refuses_name;
  answer.incarnation = reply.incarnation;
  answer.keeps_ledger = options_.ledger;
  if (!answer.failure) {
    answer.progress = reply.snapshot->progress;
    answer.failure = engine_.head(answer.progress, published_->progress.lineage);
  }
  if (!answer.failure) {
    landed_ = {reply.snapshot, published_};
    const std::vector<double>& theirs = landed_.peer->model.values;
    const std::vector<double>& own = landed_.own->model.values;
    kernels::PassStats stats;
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      stats.finite = stats.finite && std::isfinite(theirs[i]);
      stats.squared_distance += std::pow(theirs[i] - (own.empty() ? 0 : own[i]), 2);
    }
    engine_.landed(answer, stats, published_->progress);
  }
  const auto settled = engine_.settle(answer, reply.late, /*may_overflow=*/false, now());
  conduct_.settled(peer, settled.failure);
  conduct_.logged(engine_.take_log());
  if (settled.silent) {
    members_.failed(peer, now());
  } else if (reply.incarnation != 0) {
    members_.reached(peer, reply.incarnation, now());
  }
  advance();
}

}  // namespace dpwa::world::testing
