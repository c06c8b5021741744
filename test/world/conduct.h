#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dpwa/base/random.h"
#include "dpwa/base/time.h"
#include "dpwa/engine/exchange.h"
#include "dpwa/engine/pull_engine.h"
#include "dpwa/rules/member.h"
#include "dpwa/rules/progress.h"

namespace dpwa::world::testing {

class GossipMember;

struct Model {
  std::vector<double> values;
  std::uint64_t origin = 0;  // the initial weights that it descends from
  std::uint64_t last = 0;    // it is what a node ended with, by a number of its own
};

struct Snapshot {
  Progress progress;
  Model model;
};

struct GossipQuery {
  struct Pull {
    bool full = false;
    bool for_final = false;
    std::uint64_t known_version = 0;
    std::optional<std::uint16_t> taken;
  };
  std::string from;
  std::uint64_t incarnation = 0;
  std::uint64_t id = 0;
  // At most one of them; neither: a greeting.
  std::optional<Pull> pull;
  std::optional<MemberExchange> members;
};

enum class GossipState : std::uint8_t { joining, training, finished };

struct GossipReply {
  std::optional<PeerFailure> failure;
  std::string detail{};           // one line on the failure
  bool refuses_name = false;      // see PeerAnswer
  std::uint64_t incarnation = 0;  // 0: nobody has answered
  bool late = false;
  GossipState state = GossipState::joining;
  Progress progress{};
  std::shared_ptr<const Snapshot> snapshot{};  // of a pull without a failure
  MemberExchange members{};
};

// What a node has when its process starts.
struct Kept {
  Model model;
  double clock = 0;
  std::uint64_t lineage = 0;
  std::uint64_t incarnation = 0;  // of the process that kept it
};

// How a node behaves, and what a scenario hears of it. It outlives the processes of the node. This
// one is sound, and trains for 1.
class Conduct {
 public:
  virtual ~Conduct() = default;

  Duration step_time = std::chrono::milliseconds(20);
  std::optional<Kept> kept;     // at its start, unless it keeps a checkpoint itself
  bool begins_at_once = false;  // without a start: with what is kept, or else at clock 0, lineage 1
  bool starts = true;           // false: it has no weights for ever
  bool stands_still = false;    // its trainer does
  bool calls = true;            // false: it sends no request but those of its start and its end

  // --- the trainer
  virtual Model initial(Random& random);
  virtual Duration next_step(Random& random);  // its length
  virtual void train(Model& model, Random& random);
  // --- towards others: none: it hears `from`, and answers
  virtual std::optional<PeerFailure> turns_away(const std::string& /*from*/) { return {}; }
  // May change the answer. How long it is held back; none: for ever.
  virtual std::optional<Duration> answers(const GossipQuery& /*query*/, GossipReply& /*reply*/) {
    return Duration::zero();
  }
  // --- what happens to it
  virtual void settled(const std::string& /*peer*/, std::optional<PeerFailure> /*failure*/) {}
  virtual void logged(const std::vector<LogEntry>& /*lines*/) {}
  virtual void ended_round(const Arrival& /*arrival*/) {}
  virtual void blended(const Arrival& /*arrival*/) {}
  virtual void stepped(GossipMember& /*node*/) {}
  virtual void begun(GossipMember& /*node*/) {}
  virtual void said(const std::string& /*line*/) {}  // at its start
  virtual void cannot_begin(const std::string& /*why*/) {}
};

}  // namespace dpwa::world::testing
