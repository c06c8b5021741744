#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/engine/start_up.h"

namespace dpwa::test {

constexpr Duration never = std::chrono::hours(24);
constexpr Duration tick = std::chrono::milliseconds(10);
constexpr Duration look = std::chrono::milliseconds(70);   // how long a greeting of all takes
constexpr Duration poll = std::chrono::milliseconds(100);  // from one look to the next
constexpr Duration pull = std::chrono::milliseconds(50);   // how long a full pull takes

// What a node does with StartUp, or in its place.
enum class Conduct {
  honest,
  joins_for_ever,  // says that it has no weights yet
  gives_nothing,   // says that it has weights, and every pull from it hangs
  refuses_name,    // says that the name of whoever greets it is another's
  trains,          // from the first moment, with `resumed_clock`, `lineage` and `weights`
};

struct StartingNode {
  Duration arrives{};
  Duration dies = never;
  std::optional<double> resumed_clock{};
  std::uint64_t lineage = 0;  // given: of the checkpoint; later: of the weights that it has
  Conduct conduct = Conduct::honest;
  double weights = 0;  // a model of one parameter

  double clock = 0;
  bool ready = false;
  Duration began = never;
  double began_at_clock = -1;
  double began_with = 0;
  std::string failure{};
  bool called = false;  // the others, once

  std::optional<StartUp> start{};
  std::optional<StartUp::Action> action{};  // under way
  Duration action_ends{};
};

// A whole cluster that starts: each node drives the very StartUp that a real one does, on a virtual
// clock. A pull fails if its source dies meanwhile.
class StartingCluster {
 public:
  // Weights are compared with those of others only where `options` say so.
  StartingCluster(std::vector<StartingNode> nodes, std::uint64_t seed,
                  const StartUpOptions& options = without_comparison());
  static StartUpOptions without_comparison() {
    StartUpOptions options;
    options.firewall.distance = DistancePolicy::off;
    return options;
  }

  void run(Duration end);  // from where it stopped

  // Of honest nodes; 0: one that still waits.
  std::set<std::uint64_t> lineages() const;
  const std::vector<StartingNode>& nodes() const { return nodes_; }
  std::size_t sources() const { return sources_; }  // nodes that brought their weights
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  bool runs(const StartingNode& node) const { return node.arrives <= now_ && now_ < node.dies; }
  TimePoint time() const { return TimePoint(std::chrono::hours(1)) + now_; }
  void begin(std::size_t index);
  void advance(std::size_t index);
  std::vector<PeerAnswer> answers(std::size_t self) const;
  void end_action(std::size_t index);
  void end_waits();
  void end_pull(std::size_t index, const StartUp::Pull& request);

  std::vector<StartingNode> nodes_;
  const StartUpOptions options_;
  Random random_;
  Duration now_{};
  std::size_t sources_ = 0;
  std::vector<std::string> lines_;
};

}  // namespace dpwa::test
