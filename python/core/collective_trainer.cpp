#include "python/core/collective_trainer.h"

#include <cmath>
#include <utility>

#include "dpwa/collective/bytes_group.h"
#include "dpwa/collective/collective_node.h"
#include "dpwa/config/names.h"
#include "dpwa/gossip/host_parameters.h"

namespace dpwa::python {
namespace {

using collective::BytesGroup;
using collective::CollectiveNode;

// Of all nodes of a group: those of LibTorch have other buckets.
constexpr auto engine = "dpwa (Python)";

// What the package has of the back end.
const Config& checked(const Config& config) {
  const auto refuse = [&](const std::string& key, const std::string& what,
                          const std::string& accepted) {
    fail_at_key(config, key, what + " is not in the Python package; accepted there: " + accepted);
  };
  const CollectiveConfig& chosen = config.collective;
  if (!config.join.empty() || config.self_added)
    fail_at_key(config, "backend",
                "'" + config.self +
                    "' joins, which collective does not offer; accepted: a "
                    "node of the file, whose place in it is its rank");
  if (config.gossip.daemon)
    fail_at_key(config, "gossip.daemon", "not offered under backend collective; accepted: false");
  if (chosen.engine != CollectiveEngine::automatic && chosen.engine != CollectiveEngine::dpwa)
    refuse("collective.engine", config::name_of(chosen.engine), "auto, dpwa");
  if (chosen.compression != GradientCompression::none)
    refuse("collective.compression", config::name_in(config::compression_words, chosen.compression),
           "none");
  return config;
}

CollectiveNode::Loss reading(double loss) {
  return [loss] { return [loss] { return loss; }; };
}

// The gradients are those of what set_source() has given.
class Source final : public collective::GradientSource {
 public:
  void check() override { source->check(); }
  void give(const std::vector<std::size_t>& parameters, double weight) override {
    source->give(parameters, weight);
  }
  void take(const std::vector<std::size_t>& parameters, double divisor) override {
    source->take(parameters, divisor);
  }
  void clear() override { source->clear(); }

  std::unique_ptr<collective::GradientSource> source;
};

}  // namespace

struct CollectiveTrainer::Own {
  Own(const Config& config, const Manifest& manifest, std::span<std::byte> memory,
      const std::vector<bool>& trained, unsigned threads)
      : replica(config.collective, manifest, memory, trained, source) {
    if (collective::may_train_apart(config.collective))
      parameters.emplace(manifest, memory, threads);
    node.emplace(config, engine, replica, parameters ? &*parameters : nullptr);
  }

  Source source;
  std::function<void()> settle;
  std::optional<HostParameters> parameters;  // of a node that may train apart
  collective::HostReplica replica;
  std::optional<CollectiveNode> node;
};

CollectiveTrainer::CollectiveTrainer(const Config& config, std::vector<TensorSpec> tensors,
                                     const std::vector<bool>& trained, unsigned threads)
    : Trainer(checked(config), std::move(tensors)) {
  memory_ = AlignedBuffer(manifest_.total_bytes());
  own_ = std::make_unique<Own>(config_, manifest_, memory(), trained, threads);
}

CollectiveTrainer::~CollectiveTrainer() {
  if (is_forked()) static_cast<void>(own_.release());
}

CollectiveTrainer::Own& CollectiveTrainer::own() const {
  require_own_process();
  return *own_;
}

void CollectiveTrainer::set_source(std::unique_ptr<collective::GradientSource> source,
                                   std::function<void()> settle) {
  own().source.source = std::move(source);
  own().settle = std::move(settle);
}

void CollectiveTrainer::settle() {
  own().settle();
}

collective::GradientSource& CollectiveTrainer::source() {
  return *own().source.source;
}

collective::HostReplica& CollectiveTrainer::replica() {
  return own().replica;
}

void CollectiveTrainer::mark(const std::string& what, const std::string& value) {
  own().node->require_same(what, value);
}

void CollectiveTrainer::require_same(const std::string& what, const std::string& value) {
  own().node->require_same(what, value);
}

void CollectiveTrainer::restore(const ResumeState& state) {
  own().node->restore(state);
}

void CollectiveTrainer::start() {
  own().node->start(BytesGroup::connector(engine), reading(std::nan("")));
}

Place CollectiveTrainer::place() const {
  return own().node->place();
}

void CollectiveTrainer::update_send(double loss) {
  own().node->send(reading(loss), /*publishes=*/true);
}

StepReport CollectiveTrainer::update_wait(std::optional<double> loss) {
  return own().node->update_wait(reading(loss.value_or(std::nan(""))));
}

ResumeState CollectiveTrainer::resume_state() const {
  return own().node->resume_state();
}

void CollectiveTrainer::show(const std::string& name, double value) {
  own().node->show(name, value);
}

void CollectiveTrainer::reload(const Config& fresh) {
  own().node->reload(fresh);
}

FinishReport CollectiveTrainer::finish() {
  return own().node->finish();
}

void CollectiveTrainer::leave() {
  own().node->leave();
}

void CollectiveTrainer::break_off() {
  own().node->break_off();
  own().replica.break_off();
}

void CollectiveTrainer::share(const std::string& form, std::span<std::byte> program) {
  own().node->share(form, program);
}

void CollectiveTrainer::average_gradients() {
  own().node->average_gradients();
}

StepReport CollectiveTrainer::make_step(collective::OptimizerState& optimizer,
                                        const std::function<void()>& update, double loss,
                                        bool skips) {
  return own().node->make_step(optimizer, update, reading(loss), skips);
}

bool CollectiveTrainer::should_stop(bool wanted) {
  return own().node->should_stop(wanted);
}

}  // namespace dpwa::python
