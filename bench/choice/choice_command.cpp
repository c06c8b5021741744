#include <malloc.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/engine/membership_engine.h"
#include "dpwa/engine/pull_engine.h"

namespace dpwa::bench {
namespace {

constexpr int windows = 5;
constexpr double window_seconds = 0.2;
// Memory that is needed at least, whatever the allocator makes of it.
constexpr std::uint64_t least_bytes_per_pull = 1024;
constexpr TimePoint start{std::chrono::hours(1)};

struct ChoiceOptions {
  std::vector<std::uint64_t> nodes{100, 1000, 10000};
  std::uint64_t pulls = 64;
  bool json = false;
};

// Bytes that the program holds of the allocator; 0 where that is not known.
std::uint64_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::shared_ptr<const Seeds> make_seeds(std::size_t nodes) {
  std::vector<MemberClaim> claims;
  for (std::size_t i = 0; i < nodes; ++i) {
    const auto address = "10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) +
                         "." + std::to_string(i & 255);
    claims.push_back({"worker-" + std::to_string(i), {address}, 7000, /*incarnation=*/1 + i});
  }
  return std::make_shared<const Seeds>(std::move(claims), start);
}

// The engines of real nodes on a virtual clock, which share one table of the cluster file.
class VirtualNodes {
 public:
  // `tables`: each node has a member table too, and exchanges membership with the peers that it
  // pulls from.
  VirtualNodes(std::size_t count, std::uint64_t pulls, bool tables) : seeds_(make_seeds(count)) {
    nodes_.reserve(count);
    for (std::size_t rank = 0; rank < count; ++rank) nodes_.push_back(make_node(rank, tables));
    for (std::uint64_t done = 0; done < pulls; ++done) {
      now_ += std::chrono::milliseconds(20);
      for (std::size_t rank = 0; rank < count; ++rank) pull(rank, static_cast<double>(1 + done));
    }
  }

  // Nanoseconds that one takes, the nodes in turn.
  double time_of_choice() {
    using Clock = std::chrono::steady_clock;
    const auto began = Clock::now();
    std::chrono::duration<double> took{};
    std::uint64_t choices = 0;
    while (took.count() < window_seconds) {
      for (int i = 0; i < 100; ++i, next_ = (next_ + 1) % nodes_.size()) {
        Node& node = nodes_[next_];
        node.pulls.table().choose({}, now_, node.random);
      }
      choices += 100;
      took = Clock::now() - began;
    }
    return 1e9 * took.count() / static_cast<double>(choices);
  }

  double records_per_node() const {
    double sum = 0;
    for (const Node& node : nodes_) sum += static_cast<double>(node.pulls.table().known());
    return sum / static_cast<double>(nodes_.size());
  }

 private:
  struct Node {
    PullEngine pulls;
    std::optional<MembershipEngine> members;
    Random random;
  };

  Node make_node(std::size_t rank, bool tables) const {
    PullEngineOptions options;
    options.seed = derive_seed(2, {rank});
    Node node{PullEngine(options, PeerTable(PeerNames(seeds_->names(), rank), {}, {})),
              {},
              Random(derive_seed(1, {rank}))};
    const MemberClaim& self = seeds_->at(rank).claim;
    if (tables) node.members.emplace(self, seeds_, rank, MembershipOptions{}, rank);
    return node;
  }

  // Of ten pulls eight are blended, one meets a busy peer and one a peer that is down.
  void pull(std::size_t rank, double clock) {
    Node& node = nodes_[rank];
    const RoundSpec spec;
    node.pulls.begin(spec);
    const auto action = node.pulls.next(clock, now_);
    if (const auto* ask = std::get_if<PullEngine::Ask>(&action)) {
      const std::size_t peer = ask->peer < rank ? ask->peer : std::size_t{ask->peer} + 1;
      Answer answer;
      const auto lot = node.random.below(10);
      if (lot == 0) {
        answer.failure = PeerFailure::unreachable;
      } else {
        answer.incarnation = seeds_->at(peer).claim.incarnation;
        if (lot == 1) answer.failure = PeerFailure::busy;
      }
      if (node.members) exchange(rank, peer, lot != 0);
      Progress own;
      own.version = static_cast<std::uint64_t>(clock);
      own.clock = clock;
      answer.progress = own;
      if (!answer.failure) answer.failure = node.pulls.head(own, own.lineage, now_);
      if (!answer.failure) node.pulls.landed(answer, {.squared_distance = 1, .finite = true}, own);
      node.pulls.settle(answer, false, false, now_);
      node.pulls.next(clock, now_ + spec.timeout);  // no other peer: the round is over
    }
    node.pulls.take_log();
  }

  void exchange(std::size_t rank, std::size_t peer, bool answers) {
    Membership& own = nodes_[rank].members->membership();
    Membership& other = nodes_[peer].members->membership();
    const MemberClaim& self = seeds_->at(rank).claim;
    const MemberClaim& theirs = seeds_->at(peer).claim;
    if (!answers) {
      own.failed(theirs.name, now_);
      return;
    }
    own.reached(theirs.name, theirs.incarnation, now_);
    other.heard(self.name, self.incarnation, now_);
    if (!own.exchange_is_due(theirs.name, now_)) return;
    const MemberExchange request = nodes_[rank].members->request(theirs.name, now_);
    other.merge(self.name, self.incarnation, request, now_);
    own.merge_answer(theirs.name, theirs.incarnation, other.answer(self.name, request, now_), now_);
  }

  std::shared_ptr<const Seeds> seeds_;
  std::vector<Node> nodes_;
  TimePoint now_ = start;
  std::size_t next_ = 0;
};

// Of one node, its share of the common table of the file included.
double bytes_of_node(std::uint64_t held_before, std::size_t count) {
  return static_cast<double>(allocated_bytes() - held_before) / static_cast<double>(count);
}

Json measure_choice(std::uint64_t count, std::uint64_t pulls, double& worst_spread) {
  const std::uint64_t before = allocated_bytes();
  double with_tables = 0;
  {
    const VirtualNodes nodes(count, pulls, true);
    with_tables = bytes_of_node(before, count);
  }
  // The same pulls: the member tables have no part in them.
  const std::uint64_t between = allocated_bytes();
  VirtualNodes nodes(count, pulls, false);
  const double bytes = bytes_of_node(between, count);
  std::vector<double> times;
  nodes.time_of_choice();  // not counted
  for (int window = 0; window < windows; ++window) times.push_back(nodes.time_of_choice());
  const Range range = range_of(times);
  worst_spread = std::max(worst_spread, spread_of(range));
  return {{"nodes", count},
          {"records_per_node", nodes.records_per_node()},
          {"bytes_per_node", bytes},
          {"table_bytes_per_node", std::max(0.0, with_tables - bytes)},
          {"choose_ns", range.median},
          {"windows", {{"count", windows}, {"choose_ns", json_of(range)}}}};
}

void print_table(const Json& results, std::ostream& out) {
  cli::TextTable table({"nodes", "peers known", "memory of a node", "member table", "of all",
                        "time of a choice", "lowest", "highest"});
  for (const Json& one : results) {
    const auto bytes = one.at("bytes_per_node").get<double>();
    const auto tables = one.at("table_bytes_per_node").get<double>();
    const auto nodes = one.at("nodes").get<double>();
    const Json& range = one.at("windows").at("choose_ns");
    const auto time = [](const Json& ns) { return time_text(ns.get<double>() / 1000); };
    table.add({one.at("nodes").dump(), number_text(one.at("records_per_node"), 1),
               size_text(static_cast<std::uint64_t>(bytes)),
               size_text(static_cast<std::uint64_t>(tables)),
               size_text(static_cast<std::uint64_t>((bytes + tables) * nodes)),
               time(one.at("choose_ns")), time(range.at("min")), time(range.at("max"))});
  }
  table.print(out);
}

void run_choice(const ChoiceOptions& options, CommandContext& context) {
  Json results = Json::array();
  double spread = 0;
  const NoiseWatch watch;
  for (const std::uint64_t count : options.nodes) {
    require_memory(count * std::min(count, options.pulls) * least_bytes_per_pull);
    context.err << "choice among " << count << " nodes" << std::endl;
    results.push_back(measure_choice(count, options.pulls, spread));
  }
  const Noise noise = watch.judge(spread);
  warn_when_noisy(noise, context.err);
  if (!options.json) {
    print_table(results, context.out);
    return;
  }
  const Json document = {{"kind", "choice"},
                         {"pulls_per_node", options.pulls},
                         {"results", results},
                         {"noise", json_of(noise)},
                         {"settings", machine_settings()}};
  context.out << document.dump(2) << '\n';
}

}  // namespace

void add_choice_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<ChoiceOptions>();
  CLI::App* command = parent.add_subcommand(
      "choice", "Memory that nodes keep of their peers, and the time of choosing one");
  command->add_option("--nodes", options->nodes, "Sizes of clusters, all nodes in this process")
      ->delimiter(',')
      ->check(CLI::Range(2U, 1'000'000U));
  command->add_option("--pulls", options->pulls, "Pulls of each node before the measurement")
      ->check(CLI::Range(1U, 100'000U));
  command->add_flag("--json", options->json, "Print one JSON document instead of a table");
  command->callback([options, &context] { run_choice(*options, context); });
}

}  // namespace dpwa::bench
