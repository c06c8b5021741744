#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "dpwa/base/invariant.h"
#include "dpwa/base/time.h"
#include "dpwa/engine/peer_answer.h"
#include "dpwa/engine/trainer_line.h"
#include "dpwa/rules/final_models.h"
#include "dpwa/rules/model_sketch.h"
#include "dpwa/rules/progress.h"
#include "dpwa/rules/step_report.h"

namespace dpwa {

struct FinalAverageOptions : NodePlace {
  std::size_t min_nodes = 1;
  bool averages = true;    // false: the final parameters are only published
  bool leaves_out = true;  // models that are too far away, by choose_final_models()
  Duration timeout{};
  Duration finish_wait{};
  std::uint64_t lineage = 0;  // of the own weights
};

// The end of a node: publishes its final parameters, waits for the others to finish, and replaces
// its own by the mean over all nodes that did, itself included. Every node folds the same snapshots
// in the order of the names, so nodes with the same participants end bit-identical. The order of
// the cluster file would differ between nodes that have and have not taken up a reload. Nodes that
// are gone, or not finished within finish_wait, are left out.
//
// What is too far away is known when all models have been read, and folded on the way. When none
// is, as nearly always, the others are told that they are no longer needed; otherwise the models
// that make the average are read and folded again. The whole takes at most three times
// finish_wait: one to wait for the others, one to average, one to serve nodes that still want the
// snapshot. The driver asks next() for an action, performs it, and reports the result by the event
// named beside the action. Pure: time is an argument; it neither sleeps nor logs. One owner, one
// thread.
class FinalAverage {
 public:
  struct Drain {  // let a pull that is under way end, at most until then
    TimePoint until{};
  };
  struct Publish {};     // the parameters as they are, as final ones; then published()
  struct Greet {};       // every peer; then greeted()
  struct TakeBuffer {};  // a free snapshot buffer: the first is for the mean; then took_buffer()
  struct Pull {          // everything of this peer; then pulled()
    PeerId peer = 0;
    Duration timeout{};
    bool last = true;  // it is told that this node has finished, and will not ask again
  };
  struct Confirm {  // to this peer, the same without its parameters
    PeerId peer = 0;
    Duration timeout{};
  };
  struct Sketch {  // of the own model, else of what was pulled last; then sketched()
    bool own = false;
  };
  struct Fold {        // a model into the mean, as the `count`th
    bool own = false;  // the own one, else what was pulled last
    std::size_t count = 1;
  };
  // The own parameters by the mean; then replaced(). `measures`: the buffer taken last is for the
  // difference to the mean.
  struct Replace {
    bool measures = false;
  };
  struct Wait {
    Duration time{};
  };
  struct Done {
    FinishReport report;
  };
  using Action = std::variant<Drain, Publish, Greet, TakeBuffer, Pull, Confirm, Sketch, Fold,
                              Replace, Wait, Done>;

  // `alone_since`: since when no peer has answered.
  FinalAverage(FinalAverageOptions options, TimePoint begun,
               std::optional<TimePoint> alone_since = std::nullopt);

  // `served`: the peers that have the own final snapshot.
  Action next(TimePoint now, const std::set<std::string>& served);

  void published(bool done, TimePoint now);
  void greeted(const std::vector<PeerAnswer>& answers, TimePoint now);
  void took_buffer(bool done, TimePoint now);
  // `landed`: what was pulled, when it arrived in full. `busy`: the peer had no capacity.
  // `distance`: from the own model.
  void pulled(const std::optional<Progress>& landed, bool busy, double distance, TimePoint now);
  void sketched(const ModelSketch& sketch);
  void replaced(double distance_to_average);  // NaN = not known

  std::vector<TrainerLine> take_lines();

  // Once this node has what it will get, and only serves others.
  std::optional<FinishReport> report() const {
    const bool serves = phase_ == Phase::serving || phase_ == Phase::over;
    return serves ? std::optional(report_) : std::nullopt;
  }

 private:
  friend struct InvariantTest<FinalAverage>;
  enum class Phase {
    draining,
    publishing,
    waiting,  // for the others to finish
    buffer,
    folding,
    pulling,
    sketching,
    confirming,
    scratch,
    replacing,
    serving,
    over
  };
  struct Other {
    PeerId peer = 0;
    std::string name{};
    bool of_file = true;
    bool final = false;     // has finished, can be pulled from
    bool answered = false;  // as a node, ever
    TimePoint seen{};       // when it answered last
    bool awaited = false;   // it still trains, as far as is known
  };
  // A model of the average, in the order of the names; the own one, or of a node that has finished.
  struct Entry {
    Other node{};
    bool own = false;
    double distance = 0;  // from the own model
    bool read = false;
    std::optional<ModelSketch> sketch{};  // of one that may be averaged, once it is read
    bool out = false;                     // of the average
    bool folded = false;                  // into the average that is under way
  };

  std::optional<Action> act(TimePoint now, const std::set<std::string>& served);
  bool take_up(const std::vector<PeerAnswer>& answers, TimePoint now);
  void tell_waiting(const std::string& what, Duration most, TimePoint now);
  void all_waited_for(TimePoint now);
  void begin_order();
  std::optional<Action> fold_next(TimePoint now);
  Action fold();
  std::optional<Action> confirm_next();
  void end_pull(bool usable);
  void choose();
  void tell_left_out(const FinalChoice& choice, const std::vector<std::size_t>& read);
  std::string missing() const;
  void report_on(FinishReport report, std::size_t known, const std::string& why);

  const FinalAverageOptions options_;
  const TimePoint begun_;
  Phase phase_ = Phase::draining;
  std::optional<Duration> pause_;         // before the next action
  std::optional<TimePoint> alone_since_;  // until it is said
  std::vector<Other> others_;
  FinishReport report_;
  std::vector<TrainerLine> lines_;
  Duration next_waiting_line_ = std::chrono::seconds(2);  // since the beginning

  // --- of the average
  TimePoint until_{};
  std::size_t known_ = 1;
  std::vector<Entry> order_;
  std::size_t at_ = 0;
  bool again_ = false;   // what is too far away is known, and left out
  bool landed_ = false;  // the model to fold next is there
  bool measures_ = false;
  std::size_t count_ = 0;  // folded
  int silent_joiners_ = 0;
  Pull pull_{};
  TimePoint pull_until_{};
};

}  // namespace dpwa
