#include <malloc.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "bench/commands.h"
#include "bench/measure/machine.h"
#include "bench/quantity.h"
#include "bench/worker/measurement.h"
#include "dpwa/cli/text_table.h"
#include "dpwa/rules/firewall.h"
#include "dpwa/rules/peer_table.h"

namespace dpwa::bench {
namespace {

constexpr int windows = 5;
constexpr double window_seconds = 0.2;
// Memory that is needed at least, whatever the allocator makes of it.
constexpr std::uint64_t least_bytes_per_pull = 512;

struct ChoiceOptions {
  std::vector<std::uint64_t> nodes{100, 1000, 10000};
  std::uint64_t pulls = 64;
  bool json = false;
};

// What a node keeps of its peers.
struct Node {
  PeerTable table;
  Firewall firewall;
  Random random;
};

// Bytes that the program holds of the allocator; 0 where that is not known.
std::uint64_t allocated_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

std::shared_ptr<const ClusterNames> make_names(std::size_t nodes) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes; ++i)
    names.push_back(std::string("worker-").append(std::to_string(i)));
  return std::make_shared<const ClusterNames>(std::move(names));
}

// Of ten pulls eight are blended, one meets a busy peer and one a peer that is down.
void pull(Node& node, TimePoint now) {
  const auto peer = node.table.choose({}, now, node.random);
  if (!peer) return;
  const auto lot = node.random.below(10);
  if (lot > 1) {
    node.firewall.succeeded(*peer, node.firewall.judge(*peer, 0, 1, 0), now);
    node.table.succeeded(*peer, {});
    node.table.answered(*peer, {std::chrono::milliseconds(2), std::chrono::milliseconds(500), true},
                        now);
  } else {
    const auto failure = lot == 0 ? PeerFailure::busy : PeerFailure::unreachable;
    node.table.failed(*peer, failure, now, node.random);
  }
}

class VirtualNodes {
 public:
  VirtualNodes(std::size_t count, std::uint64_t pulls) : names_(make_names(count)) {
    nodes_.reserve(count);
    for (std::size_t rank = 0; rank < count; ++rank) {
      nodes_.push_back({PeerTable(PeerNames(names_, rank), {}, {}), Firewall({}, count - 1),
                        Random(derive_seed(1, {rank}))});
    }
    for (std::uint64_t done = 0; done < pulls; ++done) {
      now_ += std::chrono::milliseconds(20);
      for (Node& node : nodes_) pull(node, now_);
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
        node.table.choose({}, now_, node.random);
      }
      choices += 100;
      took = Clock::now() - began;
    }
    return 1e9 * took.count() / static_cast<double>(choices);
  }

  double records_per_node() const {
    double sum = 0;
    for (const Node& node : nodes_) sum += static_cast<double>(node.table.known());
    return sum / static_cast<double>(nodes_.size());
  }

 private:
  std::shared_ptr<const ClusterNames> names_;
  std::vector<Node> nodes_;
  TimePoint now_{std::chrono::hours(1)};
  std::size_t next_ = 0;
};

Json measure_choice(std::uint64_t count, std::uint64_t pulls, double& worst_spread) {
  const std::uint64_t before = allocated_bytes();
  VirtualNodes nodes(count, pulls);
  const std::uint64_t after = allocated_bytes();
  std::vector<double> times;
  nodes.time_of_choice();  // not counted
  for (int window = 0; window < windows; ++window) times.push_back(nodes.time_of_choice());
  const Range range = range_of(times);
  worst_spread = std::max(worst_spread, spread_of(range));
  return {{"nodes", count},
          {"records_per_node", nodes.records_per_node()},
          {"bytes_per_node", static_cast<double>(after - before) / static_cast<double>(count)},
          {"choose_ns", range.median},
          {"windows", {{"count", windows}, {"choose_ns", json_of(range)}}}};
}

void print_table(const Json& results, std::ostream& out) {
  cli::TextTable table({"nodes", "peers known", "memory of a node", "of all", "time of a choice",
                        "lowest", "highest"});
  for (const Json& one : results) {
    const auto bytes = one.at("bytes_per_node").get<double>();
    const auto nodes = one.at("nodes").get<double>();
    const Json& range = one.at("windows").at("choose_ns");
    const auto time = [](const Json& ns) { return time_text(ns.get<double>() / 1000); };
    table.add({one.at("nodes").dump(), number_text(one.at("records_per_node"), 1),
               size_text(static_cast<std::uint64_t>(bytes)),
               size_text(static_cast<std::uint64_t>(bytes * nodes)), time(one.at("choose_ns")),
               time(range.at("min")), time(range.at("max"))});
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
