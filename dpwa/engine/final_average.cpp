#include "dpwa/engine/final_average.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

#include "dpwa/base/invariant.h"

namespace dpwa {
namespace {

constexpr auto pause = std::chrono::milliseconds(25);
// From one greeting of every node to the next, after a wait of this length. A greeting is a
// connection to each node: at a fixed short distance, nodes that wait for one that still trains
// would cost each other hundreds of connections a second.
Duration between_greetings(Duration waited) {
  return std::clamp<Duration>(waited / 4, pause, std::chrono::milliseconds(250));
}

// Joined nodes that state that they have finished, and then give nothing in time: after this many,
// no other joined node is asked. A node that may join can do so under many names.
constexpr int most_silent_joiners = 3;
constexpr auto between_waiting_lines = std::chrono::seconds(10);
// A peer that has refused connections for this long has left.
constexpr auto gone_after = std::chrono::milliseconds(1500);
const char* const no_buffer = ": every snapshot buffer is held by a reader";

// One that others only tell of may be invented.
bool is_node(const auto& other) {
  return !other.name.empty() && (other.of_file || other.answered);
}

}  // namespace

FinalAverage::FinalAverage(FinalAverageOptions options, TimePoint begun,
                           std::optional<TimePoint> alone_since)
    : options_(std::move(options)), begun_(begun), alone_since_(alone_since) {}

FinalAverage::Action FinalAverage::next(TimePoint now, const std::set<std::string>& served) {
  if (const auto time = std::exchange(pause_, std::nullopt)) return Wait{*time};
  while (true) {
    if (const auto action = act(now, served)) return *action;
  }
}

std::vector<TrainerLine> FinalAverage::take_lines() {
  return std::exchange(lines_, {});
}

// None: another phase has begun.
std::optional<FinalAverage::Action> FinalAverage::act(TimePoint now,
                                                      const std::set<std::string>& served) {
  switch (phase_) {
    case Phase::draining:
      phase_ = Phase::publishing;
      until_ = begun_ + std::max(options_.finish_wait, 4 * options_.timeout);
      return Drain{until_};
    case Phase::publishing:
      if (const auto since = std::exchange(alone_since_, std::nullopt)) {
        const auto alone = std::chrono::round<std::chrono::seconds>(now - *since);
        lines_.push_back({true, alone.count() == 0 ? "ends alone: no peer answers"
                                                   : "ends alone: no peer has answered for " +
                                                         std::to_string(alone.count()) + " s"});
      }
      return Publish{};
    case Phase::waiting:
      return Greet{};
    case Phase::buffer:
    case Phase::scratch:
      return TakeBuffer{};
    case Phase::folding:
      return fold_next(now);
    case Phase::pulling:
      return pull_;
    case Phase::sketching:
      return Sketch{order_[at_].own};
    case Phase::confirming:
      return confirm_next();
    case Phase::replacing:
      return Replace{measures_};
    case Phase::serving: {
      const auto wants = [&](const Other& other) {
        return other.final && now - other.seen < gone_after && !served.contains(other.name);
      };
      const bool late = now >= begun_ + 3 * options_.finish_wait;
      if (late || std::ranges::none_of(others_, wants)) {
        phase_ = Phase::over;
        return std::nullopt;
      }
      if (now - begun_ >= next_waiting_line_) {
        std::string names;
        for (const Other& other : others_)
          if (wants(other)) add_name(names, other.name);
        tell_waiting("serves its final parameters to " + names +
                         ", which did not take them under the address that it has here",
                     3 * options_.finish_wait, now);
      }
      return Greet{};
    }
    case Phase::over:
      return Done{report_};
  }
  return Done{report_};
}

void FinalAverage::published(bool done, TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::publishing,
                 "a node publishes its final parameters where it is asked to", phase_);
  if (!done && now < until_) return;
  phase_ = Phase::over;
  if (!options_.averages) return;
  if (done) {
    phase_ = Phase::waiting;
  } else {
    report_on({}, options_.file_peers + 1, no_buffer);
  }
}

// The nodes whose models are not in the average, by reason. One that is too far away has a line.
std::string FinalAverage::missing() const {
  std::string training, absent, unusable;
  for (const Other& other : others_) {
    if (!is_node(other)) continue;
    if (!other.final) {
      add_name(other.awaited ? training : absent, other.name);
      continue;
    }
    const auto entry = std::ranges::find_if(
        order_, [&](const Entry& each) { return !each.own && each.node.name == other.name; });
    const bool has_line = entry->out && entry->sketch;
    if (!entry->folded && !has_line) add_name(unusable, other.name);
  }
  if (!training.empty())
    training = "; still training after " + seconds(options_.finish_wait) +
               " (gossip.finish_wait_ms): " + training;
  if (!absent.empty()) absent = "; absent: " + absent;
  if (!unusable.empty()) unusable = "; without a usable model: " + unusable;
  return training + absent + unusable;
}

// Reports how many nodes the average covers, and whether they are enough.
void FinalAverage::report_on(FinishReport report, std::size_t known, const std::string& why) {
  report.enough = report.participants >= options_.min_nodes;
  std::string text = "final average over " + std::to_string(report.participants) + " of " +
                     std::to_string(known) + " nodes" + (why.empty() ? missing() : why);
  if (!report.enough) text += "; gossip.min_nodes requires " + std::to_string(options_.min_nodes);
  const bool all = report.participants >= known && report.enough;
  lines_.push_back({!all, text});
  report_ = report;
}

void FinalAverage::greeted(const std::vector<PeerAnswer>& answers, TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::waiting || phase_ == Phase::serving,
                 "a node greets where its end asks for it", phase_);
  if (phase_ == Phase::waiting) {
    const bool waiting = take_up(answers, now);
    if (waiting && now - begun_ >= next_waiting_line_) {
      std::string names;
      for (const Other& other : others_)
        if (other.awaited) add_name(names, other.name);
      tell_waiting("waits for the end of " + names, options_.finish_wait, now);
    }
    if (!waiting || now >= begun_ + options_.finish_wait) return all_waited_for(now);
    pause_ = paced(between_greetings(now - begun_), answers.size() + 1);
    return;
  }
  bool alone = true;
  for (std::size_t peer = 0; peer < answers.size(); ++peer) {
    if (!answers[peer].asked) continue;
    alone = alone && answers[peer].failure;
    const bool there = answers[peer].failure != PeerFailure::unreachable;
    if (there && peer < others_.size()) others_[peer].seen = now;
  }
  if (alone) {
    phase_ = Phase::over;
  } else {
    pause_ = paced(between_greetings(now - begun_), answers.size() + 1);
  }
}

// Whether one is still to be waited for.
bool FinalAverage::take_up(const std::vector<PeerAnswer>& answers, TimePoint now) {
  bool waiting = false;
  for (std::size_t peer = 0; peer < answers.size(); ++peer) {
    const PeerAnswer& answer = answers[peer];
    const auto id = static_cast<PeerId>(peer);
    if (peer >= others_.size()) others_.push_back({id, "", false, false, false, now});
    Other& other = others_[peer];
    if (!answer.asked) continue;
    if (other.name != answer.name)
      other = {id, answer.name, peer < options_.file_peers, false, false, now};
    if (answer.failure != PeerFailure::unreachable) other.seen = now;
    other.answered = other.answered || !answer.failure;
    // One of the file may be starting again; one that joined and is gone is out.
    const bool out = answer.name.empty() || answer.status == MemberStatus::left ||
                     (!other.of_file && answer.status == MemberStatus::dead);
    const bool gone = now - other.seen >= gone_after || (out && answer.failure) ||
                      answer.failure == PeerFailure::rejected;
    other.final = !answer.failure && answer.finished;
    other.awaited = !other.final && !gone && answer.vouched_for;
    waiting = waiting || other.awaited;
  }
  return waiting;
}

void FinalAverage::tell_waiting(const std::string& what, Duration most, TimePoint now) {
  next_waiting_line_ = std::max(next_waiting_line_, now - begun_) + between_waiting_lines;
  lines_.push_back({false, what + ", for at most " + seconds(most) + " (gossip.finish_wait_ms)"});
}

void FinalAverage::all_waited_for(TimePoint now) {
  if (others_.empty()) {
    phase_ = Phase::over;
    if (options_.min_nodes > 1) report_on({}, 1, "");
    return;
  }
  known_ = static_cast<std::size_t>(
      1 + std::ranges::count_if(others_, [](const Other& other) { return is_node(other); }));
  until_ = now + std::max(options_.finish_wait, options_.timeout);
  begin_order();
  phase_ = Phase::buffer;
}

// Collects the nodes that have finished, this one among them.
void FinalAverage::begin_order() {
  Entry self;
  self.node.name = options_.name;
  self.node.of_file = options_.listing == Listing::listed;
  self.own = true;
  self.distance = std::numeric_limits<double>::quiet_NaN();
  order_.push_back(self);
  for (const Other& other : others_) {
    if (other.final) order_.push_back({.node = other});
  }
  std::ranges::sort(order_, {}, [](const Entry& entry) { return entry.node.name; });
}

// A buffer may be missing for a while: readers hold buffers until the deadline that they stated.
void FinalAverage::took_buffer(bool done, TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::buffer || phase_ == Phase::scratch,
                 "a buffer is taken where the end asks for it", phase_);
  if (!done && now < until_) {
    pause_ = pause;
  } else if (phase_ == Phase::scratch) {
    measures_ = done;
    phase_ = Phase::replacing;
  } else if (done) {
    phase_ = Phase::folding;
  } else {
    report_on({}, known_, no_buffer);
    phase_ = Phase::serving;
  }
}

// Folds in order. Each pull may take at most half of the remaining time, so that nodes that hang
// leave time for others.
std::optional<FinalAverage::Action> FinalAverage::fold_next(TimePoint now) {
  if (at_ == order_.size()) {
    if (options_.leaves_out && !again_) {
      choose();
    } else if (count_ > 0) {
      phase_ = Phase::scratch;
    } else {
      report_on({}, known_, ": no model could be read again");
      phase_ = Phase::serving;
    }
    return std::nullopt;
  }
  const Entry& entry = order_[at_];
  if (entry.out || (again_ && !entry.sketch)) {
    ++at_;
    return std::nullopt;
  }
  if (entry.own && options_.leaves_out && !entry.sketch) {
    phase_ = Phase::sketching;
    return std::nullopt;
  }
  if (landed_ || entry.own) return fold();
  if (!entry.node.of_file && silent_joiners_ >= most_silent_joiners) {
    ++at_;
    return std::nullopt;
  }
  const Duration left = until_ - now;
  if (left <= Duration::zero()) {
    end_pull(false);
    return std::nullopt;
  }
  pull_ = {entry.node.peer, std::min(left, std::max(options_.timeout, left / 2)),
           again_ || !options_.leaves_out};
  pull_until_ = now + pull_.timeout;
  phase_ = Phase::pulling;
  return std::nullopt;
}

FinalAverage::Action FinalAverage::fold() {
  const bool own = order_[at_].own;
  order_[at_].folded = true;
  landed_ = false;
  ++at_;
  DPWA_INVARIANT(count_ < order_.size(), "each model is folded once", count_, order_.size());
  return Fold{own, ++count_};
}

void FinalAverage::pulled(const std::optional<Progress>& landed, bool busy, double distance,
                          TimePoint now) {
  DPWA_INVARIANT(phase_ == Phase::pulling && at_ < order_.size(),
                 "a model is pulled where the end asks for it", phase_, at_, order_.size());
  if (busy && now < pull_until_) {  // others have as much to ask
    pause_ = pause;
    return;
  }
  order_[at_].read = landed.has_value();
  order_[at_].distance = distance;
  end_pull(landed && landed->final && landed->lineage == options_.lineage);
}

void FinalAverage::end_pull(bool usable) {
  phase_ = Phase::folding;
  landed_ = usable;
  if (usable && options_.leaves_out) phase_ = Phase::sketching;
  if (usable) return;
  if (!order_[at_].node.of_file) ++silent_joiners_;
  ++at_;
}

// One that sends other parameters when it is asked again is left out.
void FinalAverage::sketched(const ModelSketch& sketch) {
  DPWA_INVARIANT(phase_ == Phase::sketching && at_ < order_.size(),
                 "a model is sketched where the end asks for it", phase_, at_, order_.size());
  Entry& entry = order_[at_];
  phase_ = Phase::folding;
  if (!again_) {
    entry.sketch = sketch;
  } else if (entry.sketch != sketch) {
    entry.out = true;
    entry.sketch.reset();  // it has no model to speak of
    landed_ = false;
  }
}

void FinalAverage::choose() {
  std::vector<FinalModel> models;
  std::vector<std::size_t> read;  // their places in the order
  std::size_t own = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const Entry& entry = order_[i];
    if (!entry.sketch) continue;
    if (entry.own) own = models.size();
    models.push_back({*entry.sketch, entry.node.of_file, entry.distance});
    read.push_back(i);
  }
  const FinalChoice choice = choose_final_models(models, own);
  for (std::size_t i = 0; i < read.size(); ++i)
    order_[read[i]].out = choice.left_out[i].has_value();
  again_ = true;
  at_ = 0;
  silent_joiners_ = 0;  // only those that gave a model are asked again
  if (!choice.all()) {
    count_ = 0;
    for (Entry& entry : order_) entry.folded = false;
    tell_left_out(choice, read);
  }
  phase_ = Phase::confirming;
}

void FinalAverage::tell_left_out(const FinalChoice& choice, const std::vector<std::size_t>& read) {
  for (std::size_t i = 0; i < read.size(); ++i) {
    if (!choice.left_out[i]) continue;
    char distances[96];
    std::snprintf(distances, sizeof distances, "its distance is %.3g, where the bound is %.3g",
                  *choice.left_out[i], choice.bound);
    const Entry& entry = order_[read[i]];
    lines_.push_back({true, "the final average leaves out the model of " +
                                (entry.own ? "this node" : "'" + entry.node.name + "'") + ": " +
                                distances});
  }
}

// Tells the nodes whose models are not read again.
std::optional<FinalAverage::Action> FinalAverage::confirm_next() {
  const bool all_in = std::ranges::none_of(order_, &Entry::out);
  while (at_ < order_.size()) {
    const Entry& entry = order_[at_++];
    if (entry.read && (all_in || entry.out || !entry.sketch))
      return Confirm{entry.node.peer, options_.timeout};
  }
  at_ = 0;
  phase_ = all_in ? Phase::scratch : Phase::folding;
  return std::nullopt;
}

void FinalAverage::replaced(double distance_to_average) {
  DPWA_INVARIANT(phase_ == Phase::replacing && count_ > 0,
                 "parameters are replaced by a mean of some models", phase_, count_);
  FinishReport report;
  report.participants = count_;
  report.distance_to_average = distance_to_average;
  const bool own_is_out =
      std::ranges::any_of(order_, [](const Entry& entry) { return entry.own && entry.out; });
  report.averaged = count_ > 1 || own_is_out;
  report_on(report, known_, "");
  phase_ = Phase::serving;
}

}  // namespace dpwa
