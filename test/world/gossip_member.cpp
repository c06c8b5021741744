#include "test/world/gossip_member.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "interpolation/registry.h"

namespace dpwa::world::testing {

using namespace std::chrono_literals;

namespace {

constexpr double factor = .5;

std::uint64_t microseconds(TimePoint time) {
  return static_cast<std::uint64_t>(time.time_since_epoch() / 1us);
}

}  // namespace

GossipMember::GossipMember(Environment& environment, const GossipOptions& options,
                           GossipChecks& checks)
    : environment_(environment),
      options_(options),
      checks_(checks),
      random_(environment.random().next()),
      incarnation_(microseconds(environment.now()) + 1),
      position_(static_cast<std::size_t>(std::ranges::find(options.names, environment.name()) -
                                         options.names.begin())),
      engine_(make_engine()),
      members_(claim_of(environment.name()), others(), options.membership),
      members_random_(random_.next()),
      trainer_(make_trainer()) {
  model_.origin = checks_.next_number();
  for (double& value : model_.values) value = random_.normal(0, 1);
  const std::any kept = environment_.read("checkpoint");
  if (kept.has_value()) restore(std::any_cast<const Kept&>(kept));
  environment_.after(500ms, [this] { tick(); });
  begin();
}

PullEngine GossipMember::make_engine() {
  PullEngineOptions options;
  options.seed = random_.next();
  options.ledger_factor = factor;
  std::vector<std::string> peers;
  for (const MemberClaim& other : others()) peers.push_back(other.name);
  return {options, peers};
}

TrainerState GossipMember::make_trainer() {
  TrainerOptions options;
  options.of_file = !joins();
  options.start_wait = options_.start_wait;
  options.timeout = options_.timeout;
  auto policy = interpolation_registry().make("constant", {{"value", factor}});
  return {options, GuardedInterpolation(std::move(policy), 0), random_};
}

MemberClaim GossipMember::claim_of(const std::string& name) const {
  MemberClaim claim;
  claim.name = name;
  const auto place = std::ranges::find(options_.names, name) - options_.names.begin();
  claim.addresses = {"10.0.0." + std::to_string(1 + place)};
  claim.port = 1;
  if (name == environment_.name()) claim.incarnation = incarnation_;
  return claim;
}

std::vector<MemberClaim> GossipMember::others() const {
  std::vector<MemberClaim> claims;
  for (const std::string& name : options_.names)
    if (name != environment_.name()) claims.push_back(claim_of(name));
  return claims;
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
  members_ = Membership(claim_of(environment_.name()), others(), options_.membership);
  members_random_ = Random(random_.next());
  model_ = kept.model;
  trainer_.restore(kept.clock, kept.lineage);
  resumed_ = true;
  kept_.clock = kept.clock;
  kept_.lineage = kept.lineage;
}

void GossipMember::publish(const Progress& progress) {
  const std::uint64_t version = published_.progress.version + 1;
  published_ = {progress, model_};
  published_.progress.version = version;
  checks_.published(environment_.name(), progress.lineage, model_, trains());
}

// --- the network

void GossipMember::call(const std::string& to, Query query, Duration timeout, Answered answered) {
  query.from = environment_.name();
  query.incarnation = incarnation_;
  query.id = ++last_query_;
  queries_.emplace(query.id, std::move(answered));
  const auto end = [this, id = query.id](const Reply& reply) {
    auto found = queries_.extract(id);
    if (!found.empty()) found.mapped()(reply);
  };
  Reply nothing;
  nothing.failure = PeerFailure::unreachable;
  Reply late = nothing;
  late.late = true;
  environment_.after(timeout, [end, late] { end(late); });
  environment_.send(
      to, [query](Program& there) { static_cast<GossipMember&>(there).serve(query); },
      [end, nothing] { end(nothing); });
}

void GossipMember::serve(const Query& query) {
  members_.heard(query.from, query.incarnation, now());
  engine_.called(query.from, query.incarnation);
  std::uint64_t& known = callers_[query.from];
  const bool is_new = std::exchange(known, query.incarnation) != query.incarnation;
  Reply reply = reply_to(query);
  reply.incarnation = incarnation_;
  reply.state = state_;
  if (!query.pull) reply.snapshot.progress = published_.progress;
  environment_.send(query.from, [reply, query](Program& there) {
    auto& caller = static_cast<GossipMember&>(there);
    if (caller.incarnation_ != query.incarnation) return;
    auto found = caller.queries_.extract(query.id);
    if (!found.empty()) found.mapped()(reply);
  });
  if (is_new && waiting_) begin_again();
}

GossipMember::Reply GossipMember::reply_to(const Query& query) {
  if (query.pull) return snapshot_for(*query.pull, query.from);
  Reply reply;
  if (!query.members) return reply;
  Membership& membership = members_;
  membership.merge(query.from, query.incarnation, *query.members, now());
  reply.members = membership.answer(query.from, *query.members, now());
  return reply;
}

// As examine_pull() and note_served() of the real node.
GossipMember::Reply GossipMember::snapshot_for(const Pull& pull, const std::string& from) {
  const Progress& progress = published_.progress;
  Reply reply;
  if (pull.taken) stated_[from] = *pull.taken;
  const bool begins_with_them = pull.full && progress.lineage != 0;
  if (progress.version == 0 || (state_ == State::joining && !begins_with_them)) {
    reply.failure = PeerFailure::not_ready;
  } else if (pull.known_version != 0 && pull.known_version == progress.version) {
    reply.failure = PeerFailure::unchanged;
    if (pull.for_final && progress.final) served_.insert(from);
  } else if (pull.taken && now() > fresh_until_) {
    reply.failure = PeerFailure::not_fresh;
  } else {
    reply.snapshot = published_;
    if (pull.for_final && progress.final) served_.insert(from);
    if (!pull.for_final && pull.full && state_ != State::joining)
      given_[from] = {now(), progress.lineage};
  }
  return reply;
}

void GossipMember::tick() {
  members_.tick(now());
  for (const MemberClaim& member : members_.to_ask(now(), members_random_)) {
    if (probed_.insert(member.name).second) probe(member.name);
  }
  environment_.after(500ms, [this] { tick(); });
}

void GossipMember::probe(const std::string& name) {
  Query query;
  query.members = members_.request(name, now());
  call(name, query, 5 * options_.timeout, [this, name](const Reply& reply) {
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
  Query query;
  query.members = members_.request(with, now());
  call(with, query, options_.timeout, [this, with](const Reply& reply) {
    if (!reply.failure) members_.merge_answer(with, reply.incarnation, reply.members, now());
  });
}

void GossipMember::greet(Greeted greeted) {
  hear_others();
  const auto& table = members_.members();
  const std::vector<Member> members(table.begin(), table.end());
  const std::vector<PeerId> peers = engine_.to_greet(members);
  struct Work {
    std::vector<PeerAnswer> answers;
    std::size_t missing = 0;
    Greeted greeted;
  };
  const auto work = std::make_shared<Work>(
      Work{std::vector<PeerAnswer>(members.size()), peers.size(), std::move(greeted)});
  for (const PeerId peer : peers) {
    const std::string name = members[peer].claim.name;
    call(name, {}, options_.timeout, [this, work, peer, name](const Reply& reply) {
      PeerAnswer& answer = work->answers[peer];
      answer.asked = true;
      answer.failure = reply.failure;
      if (reply.failure && reply.late) answer.failure = PeerFailure::timed_out;
      answer.joining = reply.state == State::joining;
      answer.finished = reply.state == State::finished;
      answer.lineage = reply.snapshot.progress.lineage;
      answer.clock = reply.snapshot.progress.clock;
      if (!reply.failure) members_.reached(name, reply.incarnation, now());
      if (--work->missing > 0) return;
      for (std::size_t i = 0; i < work->answers.size(); ++i) {
        const Member& member = members_.members()[static_cast<PeerId>(i)];
        work->answers[i].name = member.claim.name;
        work->answers[i].seed = member.seed;
        work->answers[i].vouched_for = member.vouched_for();
        work->answers[i].status = member.status();
      }
      work->greeted(work->answers);
    });
  }
}

// Those of the file, by which it joins.
void GossipMember::visit(Greeted greeted) {
  struct Work {
    std::vector<PeerAnswer> answers;
    Greeted greeted;
  };
  const auto work = std::make_shared<Work>(Work{{}, std::move(greeted)});
  for (const std::string& name : options_.names) {
    Query query;
    query.members = members_.request(name, now());
    call(name, query, options_.timeout, [this, work, name](const Reply& reply) {
      PeerAnswer& answer = work->answers.emplace_back();
      answer.asked = true;
      answer.failure = reply.failure;
      answer.name = name;
      Membership& membership = members_;
      if (!reply.failure) {
        membership.reached(name, reply.incarnation, now());
        membership.merge_answer(name, reply.incarnation, reply.members, now());
      }
      if (work->answers.size() == options_.names.size()) work->greeted(work->answers);
    });
  }
}

void GossipMember::hear_others() {
  const Membership& membership = members_;
  for (const PeerId peer : membership.changed_since(members_version_))
    engine_.take_up(peer, membership.members()[peer]);
  members_version_ = membership.version();
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
  auto action = engine_.next(published_.progress.clock, now());
  if (const auto* wait = std::get_if<PullEngine::Wait>(&action)) {
    environment_.after(wait->time, [this] { advance(); });
  } else if (const auto* ask = std::get_if<PullEngine::Ask>(&action)) {
    attempt(*ask);
  } else {
    const RoundOver over = std::exchange(round_over_, {});
    over(std::get<Arrival>(action));
  }
}

void GossipMember::attempt(const PullEngine::Ask& ask) {
  const std::string peer = engine_.table().name(ask.peer);
  Query query;
  query.pull = {exchange_.whole_model, exchange_.for_final_average, ask.known_version, {}};
  if (exchange_.blends()) query.pull->taken = ask.taken;
  exchange_members(peer);
  call(peer, query, ask.left, [this, peer, ask](const Reply& reply) {
    Reply known = reply;
    const bool other_process = ask.known_incarnation != reply.incarnation;
    if (reply.failure == PeerFailure::unchanged && other_process)
      known.failure = PeerFailure::not_ready;  // a version of another process
    attempted(peer, known);
  });
}

void GossipMember::attempted(const std::string& peer, const Reply& reply) {
  Answer answer;
  answer.failure = reply.failure;
  answer.incarnation = reply.incarnation;
  answer.keeps_ledger = true;
  if (!answer.failure) {
    answer.progress = reply.snapshot.progress;
    answer.failure = engine_.head(answer.progress, published_.progress.lineage);
  }
  if (!answer.failure) {
    landed_ = {reply.snapshot.model, published_.model};
    kernels::PassStats stats;
    for (std::size_t i = 0; i < landed_.own.values.size(); ++i)
      stats.squared_distance += std::pow(landed_.peer.values[i] - landed_.own.values[i], 2);
    engine_.landed(answer, stats, published_.progress);
  }
  const auto settled = engine_.settle(answer, reply.late, /*may_overflow=*/false, now());
  engine_.take_log();
  Membership& membership = members_;
  if (settled.silent) {
    membership.failed(peer, now());
  } else if (reply.incarnation != 0) {
    membership.reached(peer, reply.incarnation, now());
  }
  advance();
}

}  // namespace dpwa::world::testing
