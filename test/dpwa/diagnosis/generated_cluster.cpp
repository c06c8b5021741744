#include "test/dpwa/diagnosis/generated_cluster.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "dpwa/base/random.h"

namespace dpwa::test {
namespace {

using diagnosis::Cause;
using diagnosis::Observation;
using diagnosis::Process;

enum class Style { gossip, together };  // nodes that step together wait for the slowest

struct Node {
  std::string name;
  std::size_t host = 0;
  double work_s = 0;     // of each thread in a step
  double blocked_s = 0;  // of a step
  double threads = 1;
  double loss_factor = 1;
  double to_mean = 1;
  double clips = 0;  // of its pulls
  Cause absence{};
  bool is_absent = false;
  std::size_t evaluates_at = 100;  // the second in which it makes no steps
  bool hears_nothing_of_first = false;
  Process state;
};

struct Machine {
  std::string id;
  double processors = 1;
  double others = 0;  // threads of other programs
  double quota = 0;   // share of a processor for each node; 0: none
  double stolen = 0;  // share
  double disk = 0;    // share of the time in which a disk is waited for
  diagnosis::Host state;
};

struct Wire {
  std::size_t from = 0;
  std::size_t to = 0;
  std::uint16_t own_port = 0;
  std::uint16_t port = 0;
  double rtt_ms = 0;
  double lost = 0;
  double segments_per_s = 0;
  diagnosis::Connection state{};
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  GeneratedCase make(unsigned faults) {
    make_machines();
    make_nodes();
    make_wires();
    for (unsigned tries = 0; made_.faults.size() < faults && tries < 50; ++tries) add_fault();
    for (std::size_t second = 0; second <= 4; ++second) {
      if (second > 0) advance(second);
      observe(static_cast<double>(second));
    }
    for (const auto& fault : made_.faults)
      made_.description += std::string(to_string(fault.cause)) + " at " + fault.where + "; ";
    made_.description += std::to_string(nodes_.size()) + " nodes on " +
                         std::to_string(machines_.size()) + " hosts, step " +
                         std::to_string(nodes_[0].work_s);
    return std::move(made_);
  }

 private:
  double between(double low, double high) { return random_.uniform(low, high); }
  double log_between(double low, double high) {
    return std::exp(between(std::log(low), std::log(high)));
  }
  bool chance(double share) { return between(0, 1) < share; }
  std::size_t pick(std::size_t count) { return random_.next() % count; }
  double noisy(double value, double share) { return value * between(1 - share, 1 + share); }

  void make_machines() {
    style_ = chance(0.5) ? Style::gossip : Style::together;
    const std::size_t hosts = chance(0.4) ? 1 : 2 + pick(5);
    for (std::size_t i = 0; i < hosts; ++i) {
      Machine machine;
      machine.id = "boot" + std::to_string(i);
      machine.processors = static_cast<double>(2U << pick(5));
      machine.others = between(0, 0.1);
      machine.disk = chance(0.2) ? between(0, 0.08) : 0;
      machines_.push_back(machine);
    }
  }

  void make_nodes() {
    const std::size_t count = std::max<std::size_t>(machines_.size(), 2 + pick(7));
    const double work_s = log_between(2e-3, 0.4);
    loss_ = log_between(0.05, 3);
    loss_noise_ = between(0.02, 0.12);
    for (std::size_t i = 0; i < count; ++i) {
      Node node;
      node.name = "w" + std::to_string(i + 1);
      node.host = i % machines_.size();
      node.work_s = noisy(work_s, 0.08);
      node.blocked_s = work_s * between(0, 0.1);
      if (chance(0.2)) node.evaluates_at = 1 + pick(4);
      node.state.answers = node.state.connects = node.state.trains = true;
      node.state.incarnation = 7;
      node.state.host = machines_[node.host].id;
      node.state.steps = 300 + pick(1000);
      node.state.compute_s = static_cast<double>(node.state.steps) * work_s;
      node.state.pulls_ok = node.state.steps;
      nodes_.push_back(node);
    }
    for (Machine& machine : machines_) {
      const double tenants = static_cast<double>(tenants_of(machine));
      machine.processors = std::max(machine.processors, 2 * std::ceil(tenants / 2));
    }
    // Nodes that step together evaluate together.
    if (style_ == Style::together)
      for (Node& node : nodes_) node.evaluates_at = nodes_[0].evaluates_at;
  }

  std::size_t tenants_of(const Machine& machine) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        nodes_, [&](const Node& node) { return machines_[node.host].id == machine.id; }));
  }

  void make_wires() {
    const double rtt_ms = chance(0.2) ? between(8, 40) : log_between(0.08, 1.5);
    std::uint16_t port = 40000;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (std::size_t j = 0; j < nodes_.size(); ++j) {
        if (nodes_[i].host == nodes_[j].host) continue;
        Wire wire{i, j, static_cast<std::uint16_t>(24000 + i), port++};
        wire.rtt_ms = noisy(rtt_ms, 0.4);
        wire.segments_per_s = log_between(60, 5000);
        wire.lost = chance(0.1) ? 1e-4 : 0;
        wires_.push_back(wire);
      }
    }
  }

  // One more thing that is wrong, at a node, host or link that is sound.
  void add_fault() {
    const std::size_t at = pick(nodes_.size());
    Node& node = nodes_[at];
    Machine& machine = machines_[node.host];
    const double tenants = static_cast<double>(tenants_of(machine));
    const auto cause = static_cast<Cause>(pick(17));
    // The host of a fault counts as taken: two causes of one processor cannot be told apart.
    if (taken_.contains(machine.id) || taken_.contains(node.name) || is_blocked()) return;
    switch (cause) {
      case Cause::gone:
      case Cause::cut_off:
      case Cause::frozen:
        if (style_ == Style::together && !made_.faults.empty()) return;
        node.is_absent = true;
        node.absence = cause;
        break;
      case Cause::stalled:
        if (style_ == Style::together) return;
        node.blocked_s = 60;
        break;
      case Cause::stolen_cpu:
        machine.stolen = between(0.1, 0.6);
        break;
      case Cause::crowded_host:
        for (Node& other : nodes_)
          if (other.host == node.host)
            other.threads = std::ceil(machine.processors / tenants) * between(1.5, 3);
        break;
      case Cause::other_programs:
        machine.others =
            std::max(machine.processors * between(0.6, 3), 1.3 * machine.processors - tenants);
        break;
      case Cause::limited_cpu:
        machine.quota = between(0.2, 0.7);
        break;
      case Cause::slow_cpu:
        node.work_s *= between(1.7, 4);
        break;
      case Cause::slow_program:
        node.blocked_s = node.work_s * between(1.5, 6);
        break;
      case Cause::disk:
        machine.disk = between(0.3, 1);
        for (Node& other : nodes_)
          if (other.host == node.host) other.blocked_s = other.work_s * between(0.5, 2);
        break;
      case Cause::lossy_link:
      case Cause::slow_link:
        return spoil_link(cause, at);
      case Cause::one_way_link:
        if (style_ != Style::gossip || at == 0 || !taken_.insert(nodes_[0].name).second) return;
        node.hears_nothing_of_first = true;
        break;
      case Cause::clipped_peers:
        if (style_ != Style::gossip || clipping_) return;
        clipping_ = true;
        for (Node& other : nodes_) other.clips = between(0.3, 0.8);
        break;
      case Cause::skewed_data:
      case Cause::other_steps:
        if (nodes_.size() < 3 || loss_ < 0.3) return;
        if (cause == Cause::other_steps && style_ != Style::gossip) return;
        node.loss_factor = chance(0.5) ? between(2, 5) : 1 / between(2, 5);
        if (cause == Cause::other_steps) node.to_mean = between(2.5, 20);
        break;
    }
    taken_.insert(machine.id);
    taken_.insert(node.name);
    made_.faults.push_back({cause, cause == Cause::clipped_peers ? "w" : node.name});
  }

  void spoil_link(Cause cause, std::size_t at) {
    std::vector<Wire*> mine;
    for (Wire& wire : wires_)
      if (wire.from == at || wire.to == at) mine.push_back(&wire);
    if (mine.empty() || wires_.size() < 6 || has_absent()) return;
    const std::size_t other = mine[0]->from == at ? mine[0]->to : mine[0]->from;
    if (taken_.contains(nodes_[other].name)) return;
    for (Wire* wire : mine) {
      const bool between_these = wire->from == other || wire->to == other;
      if (!between_these) continue;
      if (cause == Cause::lossy_link) wire->lost = between(0.02, 0.15);
      if (cause == Cause::slow_link) wire->rtt_ms = std::max(10.0, wire->rtt_ms * between(8, 50));
      wire->segments_per_s = std::max(wire->segments_per_s, 200.0);
    }
    taken_.insert(nodes_[at].name);
    taken_.insert(nodes_[other].name);
    made_.faults.push_back({cause, nodes_[at].name});
  }

  bool has_absent() const {
    return std::ranges::any_of(nodes_, [](const Node& node) { return node.is_absent; });
  }

  // How much of a processor each ready thread gets.
  double share_of(const Machine& machine) const {
    double wanted = machine.others;
    for (const Node& node : nodes_)
      if (machines_[node.host].id == machine.id && !node.is_absent) wanted += node.threads;
    const double fair = std::min(1.0, machine.processors / wanted);
    return machine.quota > 0 ? std::min(fair, machine.quota) : fair;
  }

  double own_s(const Node& node) const {
    const Machine& machine = machines_[node.host];
    return node.work_s / share_of(machine) / (1 - machine.stolen) + node.blocked_s;
  }

  // The share of the time that each of its threads wants to run.
  double wants(const Node& node) const {
    if (node.is_absent || is_blocked()) return 0;
    const double own = own_s(node);
    const double computes = (own - node.blocked_s) / own;
    return style_ == Style::together ? computes * own / slowest_s() : computes;
  }

  double slowest_s() const {
    double slowest = 0;
    for (const Node& node : nodes_) slowest = std::max(slowest, own_s(node));
    return slowest;
  }

  // Those that step together wait for one that is absent.
  bool is_blocked() const { return style_ == Style::together && has_absent(); }

  void advance(std::size_t second) {
    for (Machine& machine : machines_) advance(machine);
    for (Node& node : nodes_) {
      if (!node.is_absent) advance(node, second);
    }
    for (Wire& wire : wires_) advance(wire);
  }

  void advance(Machine& machine) {
    const double share = share_of(machine);
    double used = machine.others < 1 ? machine.others : machine.others * share;
    for (const Node& node : nodes_) {
      if (machines_[node.host].id == machine.id)
        used += node.threads * wants(node) * share * (1 - machine.stolen);
    }
    used = std::min(used, machine.processors);
    machine.state.processors = static_cast<unsigned>(machine.processors);
    machine.state.busy_s += used;
    machine.state.stolen_s += machine.stolen * machine.processors;
    machine.state.disk_wait_s += machine.disk;
    machine.state.idle_s += machine.processors - used;
  }

  void advance(Node& node, std::size_t second) {
    Process& state = node.state;
    state.waits = is_blocked();
    if (is_blocked()) return;
    state.loss = noisy(loss_ * node.loss_factor, loss_noise_);
    const Machine& machine = machines_[node.host];
    const double share = share_of(machine);
    const double runs = wants(node) * share * (1 - machine.stolen);
    const double is_ready = wants(node) * (1 - share);
    state.main_cpu_s += runs;
    state.main_cpu_wait_s += is_ready + between(0, 0.03);
    const double kernel_s = machine.disk > 0.1 ? between(0, 0.25) : 0;  // which writes to the disk
    state.main_cpu_wait_s += kernel_s;
    state.compute_s += kernel_s;
    state.cpu_s += runs * node.threads + 0.03;
    state.cpu_wait_s += is_ready * node.threads + 0.02;
    const double own = own_s(node);
    if (second == node.evaluates_at && node.blocked_s < 1) return evaluate(state, own);
    const double step_s = style_ == Style::together ? slowest_s() : own;
    made_steps_[node.name] += noisy(1, 0.03) / step_s;
    const auto steps = static_cast<std::uint64_t>(made_steps_[node.name]);
    made_steps_[node.name] -= static_cast<double>(steps);
    const auto count = static_cast<double>(steps);
    state.steps += steps;
    state.compute_s += count * own * 0.9;
    state.publish_s += count * own * 0.06;
    state.blend_s += count * own * 0.04;
    state.wait_s += count * (step_s - own);
    if (style_ == Style::gossip) pull(node, steps);
  }

  // All but a few steps of the second are lost to it.
  static void evaluate(Process& state, double own) {
    state.steps += 1;
    state.compute_s += own + 0.8;
  }

  void pull(Node& node, std::uint64_t steps) {
    node.state.pulls_ok += steps;
    node.state.clipped +=
        static_cast<std::uint64_t>(node.clips * static_cast<double>(steps) + between(0, 0.9));
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].name == node.name) continue;
      diagnosis::Peer& peer = node.state.peers[nodes_[i].name];
      const std::uint64_t asked = 1 + steps / nodes_.size();
      const bool fails = nodes_[i].is_absent || (i == 0 && node.hears_nothing_of_first);
      (fails ? peer.failed : peer.ok) += asked;
      if (!fails && chance(0.05)) peer.failed += 1;
      peer.failures = fails ? peer.failures + asked : 0;
      peer.is_unreachable = fails;
    }
  }

  void advance(Wire& wire) {
    if (is_blocked()) return;
    const double segments = noisy(wire.segments_per_s, 0.2);
    wire.state.rtt_ms = noisy(wire.rtt_ms, 0.3);
    wire.state.segments += static_cast<std::uint64_t>(segments);
    wire.state.segments_again +=
        static_cast<std::uint64_t>(segments * wire.lost + between(0, 0.999));
    wire.state.bytes_sent += static_cast<std::uint64_t>(segments * 1400);
  }

  void observe(double at_s) {
    Observation observation;
    observation.at_s = at_s;
    for (const Machine& machine : machines_) observation.hosts[machine.id] = machine.state;
    for (Node& node : nodes_) {
      Process process = node.state;
      process.disk_bytes = machines_[node.host].disk > 0 ? 1e6 * at_s : 0;
      if (at_s == 0) process.loss = noisy(loss_ * node.loss_factor, loss_noise_);
      process.to_mean = style_ == Style::gossip ? noisy(node.to_mean, 0.1)
                                                : std::numeric_limits<double>::quiet_NaN();
      if (node.is_absent) {
        process = {};
        process.connects = node.absence == Cause::frozen;
        process.nobody_listens = node.absence == Cause::gone;
      }
      observation.processes[node.name] = process;
    }
    for (const Wire& wire : wires_) {
      diagnosis::Connection sends = wire.state;
      if (at_s == 0) sends.rtt_ms = noisy(wire.rtt_ms, 0.3);
      sends.own_port = wire.own_port;
      sends.port = wire.port;
      diagnosis::Connection takes{wire.port, wire.own_port, 0.2, 12, 0, 4000, sends.bytes_sent};
      if (nodes_[wire.from].is_absent || nodes_[wire.to].is_absent) continue;
      observation.processes[nodes_[wire.from].name].connections.push_back(sends);
      observation.processes[nodes_[wire.to].name].connections.push_back(takes);
    }
    made_.observations.push_back(std::move(observation));
  }

  Random random_;
  Style style_ = Style::gossip;
  double loss_ = 1;
  double loss_noise_ = 0;
  bool clipping_ = false;
  std::vector<Machine> machines_;
  std::vector<Node> nodes_;
  std::vector<Wire> wires_;
  std::set<std::string> taken_;
  std::map<std::string, double> made_steps_;
  GeneratedCase made_;
};

}  // namespace

GeneratedCase generate_case(std::uint64_t seed, unsigned faults) {
  return Generator(seed).make(faults);
}

}  // namespace dpwa::test
