// A node that trains a vector, for tests of whole clusters without torch:
//   dpwa_vector_trainer CLUSTER_FILE NAME OUTPUT [--steps N] [--until FILE] [--step-ms T]
//                       [--elements D] [--spread PERCENT] [--join HOST:PORT]... [--units-from N]
// Minimises the mean of a_e (x_e - b_e)^2 / 2, with curvatures a_e from 0.5 to 1, by SGD with
// noisy gradients, averaging by gossip. Ends after N steps or once FILE exists. Writes to OUTPUT
// one JSON object a line: the start, every step, the end. Exit codes: 0 done; 1 failed; 2 wrong
// usage or configuration; 143 ended by SIGTERM.
//
// SIGUSR1 moves its wall clock a day ahead, SIGUSR2 a day back; DPWA_TEST_CLOCK_DAYS=N: it is N
// days ahead from the start.
//
// The optimum b_e is sin e, for each node moved by a normal deviate of PERCENT / 100: nodes that
// are kept apart then drift apart, as with unequal shards.
//
// With --units-from it does not train: it adds a unit to one element after the other, from its step
// N on, every tenth step. What the cluster makes of them shows the averaging alone (pace_table.py).
//
// The second half of the vector repeats the first: same optimum, curvature and noise. Every blend
// keeps twins equal, so a vector that is torn anywhere but in its very middle shows as `twin_gap`.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "dpwa/attach/attached_gossip.h"
#include "dpwa/base/checksum.h"
#include "dpwa/base/random.h"
#include "dpwa/config/open_log.h"
#include "dpwa/config/reload.h"
#include "test/process/wall_clock.h"
#include "test/support/temporary_directory.h"
#include "test/support/vector_cluster.h"

namespace {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

struct Options {
  std::string cluster_file;
  std::string name;
  std::string output;
  std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
  std::string until;  // empty = never
  std::uint64_t step_ms = 1;
  std::uint64_t elements = 1000;
  std::uint64_t spread_percent = 0;
  std::vector<std::string> join;
  std::uint64_t units_from = 0;  // 0: it trains
};

std::uint64_t number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size())
    throw std::invalid_argument("'" + text + "' is not a number");
  return value;
}

Options parse(const std::vector<std::string>& words) {
  if (words.size() < 3 || words.size() % 2 == 0)
    throw std::invalid_argument(
        "needs a cluster file, a name, an output file, and pairs of options");
  Options options;
  options.cluster_file = words[0];
  options.name = words[1];
  options.output = words[2];
  for (std::size_t i = 3; i + 1 < words.size(); i += 2) {
    const std::string& value = words[i + 1];
    if (words[i] == "--steps") {
      options.steps = number(value);
    } else if (words[i] == "--until") {
      options.until = value;
    } else if (words[i] == "--step-ms") {
      options.step_ms = number(value);
    } else if (words[i] == "--elements") {
      options.elements = number(value);
    } else if (words[i] == "--spread") {
      options.spread_percent = number(value);
    } else if (words[i] == "--units-from") {
      options.units_from = number(value);
    } else if (words[i] == "--join") {
      options.join.push_back(value);
    } else {
      throw std::invalid_argument("unknown option '" + words[i] + "'");
    }
  }
  return options;
}

std::atomic<bool> terminated{false};
std::atomic<bool> reload_wanted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// The element of the first half that `e` is or repeats; the last one of an odd number has no twin.
std::size_t first_twin(std::size_t e, std::size_t elements) {
  const std::size_t half = elements / 2;
  return e >= half && e < 2 * half ? e - half : e;
}

// Where the loss of a node is least, element by element.
std::vector<double> optimum(const Options& options, std::size_t rank) {
  const double spread = static_cast<double>(options.spread_percent) / 100;
  dpwa::Random random(dpwa::derive_seed(11, {rank}));
  std::vector<double> best(options.elements);
  for (std::size_t e = 0; e < best.size(); ++e) {
    const std::size_t twin = first_twin(e, best.size());
    best[e] = twin < e ? best[twin] : std::sin(static_cast<double>(e));
    if (spread > 0 && twin == e) best[e] += random.normal(0, spread);
  }
  return best;
}

double root_mean_square_error(std::span<const float> x, const std::vector<double>& best) {
  double sum = 0;
  for (std::size_t e = 0; e < x.size(); ++e) sum += std::pow(x[e] - best[e], 2);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Takes the gradients at x and returns the loss there.
double gradients(std::span<const float> x, const std::vector<double>& best,
                 std::vector<float>& gradient, dpwa::Random& random) {
  std::vector<double> noise(x.size());
  double loss = 0;
  for (std::size_t e = 0; e < x.size(); ++e) {
    const std::size_t twin = first_twin(e, x.size());
    noise[e] = twin < e ? noise[twin] : random.normal(0, 0.1);
    const double curvature = 0.5 + 0.5 * static_cast<double>(twin % 8) / 7;
    const double distance = x[e] - best[e];
    loss += curvature * distance * distance / 2;
    gradient[e] = static_cast<float>(curvature * distance + noise[e]);
  }
  return loss / static_cast<double>(x.size());
}

// The unit of this step, to one element of the first half and its twin.
void add_unit(std::span<float> x, std::uint64_t step, const Options& options) {
  constexpr std::uint64_t between = 10;
  if (step < options.units_from || (step - options.units_from) % between != 0) return;
  const std::uint64_t element = (step - options.units_from) / between;
  const std::size_t half = x.size() / 2;
  if (element >= half) return;
  x[element] += 1;
  x[half + element] += 1;
}

// What a watcher of the whole cluster needs of the parameters.
struct Probe {
  bool finite = true;
  double twin_gap = 0;        // the largest difference of twins, relative to 1 + their size
  std::vector<float> values;  // at most 16, spread over the first half
};

Probe probe(std::span<const float> x) {
  Probe seen;
  for (const float value : x) seen.finite = seen.finite && std::isfinite(value);
  const std::size_t half = x.size() / 2;
  for (std::size_t e = 0; e < half; ++e) {
    const double gap = std::abs(double{x[e]} - x[e + half]) / (1 + std::abs(double{x[e]}));
    seen.twin_gap = std::max(seen.twin_gap, gap);
  }
  const std::size_t stride = std::max<std::size_t>(1, half / 16);
  for (std::size_t e = 0; e < half && seen.values.size() < 16; e += stride)
    seen.values.push_back(x[e]);
  return seen;
}

double milliseconds(SteadyClock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// `gossip_ms`: the time that the step gave to gossip, waiting included; `at_ms`: when it ended, on
// the monotonic clock of the host.
json describe(const dpwa::StepReport& report, std::uint64_t step, double loss, double gossip_ms,
              const Probe& seen) {
  return {{"step", step},           {"loss", loss},
          {"clock", report.clock},  {"outcome", to_string(report.outcome)},
          {"peer", report.peer},    {"factor", report.factor},
          {"bytes", report.bytes},  {"waited_ms", milliseconds(report.waited)},
          {"ok", report.pulls_ok},  {"failed", report.pulls_failed},
          {"gossip_ms", gossip_ms}, {"at_ms", milliseconds(SteadyClock::now().time_since_epoch())},
          {"finite", seen.finite},  {"twin_gap", seen.twin_gap},
          {"probe", seen.values}};
}

// The vector and its session, with gossip.daemon as memory of this process and its node process.
struct Model {
  Model(const dpwa::Config& config, std::size_t elements, float value) {
    if (!config.gossip.daemon) {
      embedded = std::make_unique<dpwa::test::VectorNode>(config, elements, value);
      values = embedded->values();
      gossip = &embedded->gossip();
      return;
    }
    const dpwa::Manifest manifest = dpwa::test::vector_manifest(elements);
    const auto shared = dpwa::attach::allocate_parameters(manifest.total_bytes());
    values = {reinterpret_cast<float*>(shared->data()), elements};
    std::ranges::fill(values, value);
    attached = std::make_unique<dpwa::attach::AttachedGossip>(config, manifest, shared, 1);
    gossip = attached.get();
  }
  std::unique_ptr<dpwa::test::VectorNode> embedded;
  std::unique_ptr<dpwa::attach::AttachedGossip> attached;
  std::span<float> values;
  dpwa::GossipSession* gossip = nullptr;
};

void reload(const Options& options, Model& node) {
  dpwa::reload_or_keep([&] {
    node.gossip->reload(dpwa::reload_config(options.cluster_file, options.name, options.join));
  });
}

int train(const Options& options) {
  constexpr float learning_rate = 0.05F;
  const dpwa::Config config = dpwa::load_config(options.cluster_file, options.name, options.join);
  dpwa::open_log(config).use();
  const std::size_t rank = config.self_index();
  Model node(config, options.elements, 3.0F + static_cast<float>(rank));
  std::ofstream output = dpwa::test::append_lines(options.output);
  const auto write = [&output](const json& line) { output << line.dump() << std::endl; };

  node.gossip->start();
  write({{"started", true},
         {"clock", node.gossip->resume_state().clock},
         {"x", node.values.empty() ? 0.0F : node.values[0]},
         {"at_ms", milliseconds(SteadyClock::now().time_since_epoch())}});
  dpwa::Random random(dpwa::derive_seed(7, {rank}));
  const std::vector<double> best = optimum(options, rank);
  std::vector<float> gradient(options.elements);
  for (std::uint64_t step = 1; step <= options.steps; ++step) {
    const auto begun = SteadyClock::now();
    const double loss = gradients(node.values, best, gradient, random);
    const auto sending = SteadyClock::now();
    node.gossip->update_send([loss] { return loss; });
    auto in_gossip = SteadyClock::now() - sending;
    if (options.units_from > 0) {
      add_unit(node.values, step, options);
    } else {
      for (std::size_t e = 0; e < gradient.size(); ++e)
        node.values[e] -= learning_rate * gradient[e];
    }
    const auto waiting = SteadyClock::now();
    const dpwa::StepReport report = node.gossip->update_wait();
    in_gossip += SteadyClock::now() - waiting;
    write(describe(report, step, loss, milliseconds(in_gossip), probe(node.values)));
    if (reload_wanted.exchange(false)) reload(options, node);
    if (terminated) {
      node.gossip->leave();
      return 128 + SIGTERM;
    }
    if (!options.until.empty() && ::access(options.until.c_str(), F_OK) == 0) break;
    std::this_thread::sleep_until(begun + std::chrono::milliseconds(options.step_ms));
  }
  const auto finished = node.gossip->finish();
  write({{"finished", true},
         {"participants", finished.participants},
         {"distance", finished.distance_to_average},
         {"error", root_mean_square_error(node.values, best)},
         {"checksum", dpwa::crc32c(std::as_bytes(node.values))}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves no trainer behind
  struct sigaction action {};
  action.sa_handler = [](int) { terminated = true; };
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = [](int) { reload_wanted = true; };
  ::sigaction(SIGHUP, &action, nullptr);
  action.sa_handler = [](int) { dpwa::test::move_wall_clock(std::chrono::days(1)); };
  ::sigaction(SIGUSR1, &action, nullptr);
  action.sa_handler = [](int) { dpwa::test::move_wall_clock(-std::chrono::days(1)); };
  ::sigaction(SIGUSR2, &action, nullptr);
  action.sa_handler = SIG_IGN;  // keep running when the reader of the log goes away
  ::sigaction(SIGPIPE, &action, nullptr);
  if (const char* days = std::getenv("DPWA_TEST_CLOCK_DAYS"); days != nullptr)
    dpwa::test::move_wall_clock(std::chrono::days(std::atoi(days)));
  try {
    return train(parse({argv + 1, argv + argc}));
  } catch (const dpwa::ConfigError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  } catch (const std::invalid_argument& error) {
    std::cerr << "dpwa_vector_trainer: " << error.what() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "dpwa_vector_trainer: " << error.what() << "\n";
    return 1;
  }
}
