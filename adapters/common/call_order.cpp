#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "adapters/backend.h"
#include "adapters/common/graph_capture.h"
#include "dpwa/net/shown_numbers.h"

namespace dpwa {
namespace {

class CallOrder : public Adapter {
 public:
  CallOrder(std::unique_ptr<Adapter> back_end, std::function<bool()> captures)
      : back_end_(std::move(back_end)), captures_(std::move(captures)) {}

  void start() override {
    if (phase_ == Phase::left) throw std::logic_error("start() after finish() or leave()");
    if (phase_ != Phase::made) throw std::logic_error("start() was called twice on one adapter");
    phase_ = Phase::between_steps;
    back_end_->start();
  }

  void share(const torch::Tensor& state) override {
    before_start("share()");
    back_end_->share(state);
  }
  void require_same(const std::string& what, const std::string& value) override {
    before_start("require_same()");
    back_end_->require_same(what, value);
  }
  void mark_model(const std::string& what, const std::string& value) override {
    before_start("mark_model()");
    back_end_->mark_model(what, value);
  }
  void restore(const ResumeState& state) override {
    before_start("restore()");
    back_end_->restore(state);
  }

  void average_gradients() override {
    after_start("average_gradients()");
    if (phase_ == Phase::averaged)
      throw std::logic_error("average_gradients() was called twice in one step");
    outside_halves("average_gradients()");
    outside_capture("average_gradients()");
    move_to(Phase::averaged);
    back_end_->average_gradients();
  }
  Accumulation accumulate() override {
    after_start("accumulate()");
    return back_end_->accumulate();
  }
  void set_batch_size(std::uint64_t samples) override {
    after_start("set_batch_size()");
    back_end_->set_batch_size(samples);
  }
  void set_optimizer(const torch::optim::Optimizer& optimizer) override {
    after_start("set_optimizer()");
    back_end_->set_optimizer(optimizer);
  }

  void show(const std::string& name, double value) override {
    after_start("show()");
    outside_halves("show()");
    shown_.set(name, value);  // refuses the same with every back end
    if (phase_ != Phase::left) back_end_->show(name, value);
  }

  StepReport step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    begin_step("step()");
    return counted(back_end_->step(optimizer, loss));
  }
  StepReport skip_step(torch::optim::Optimizer& optimizer, const torch::Tensor& loss) override {
    begin_step("skip_step()");
    StepReport report = back_end_->skip_step(optimizer, loss);
    ++skipped_steps_;
    return counted(std::move(report));
  }
  void update_send(const torch::Tensor& loss) override {
    after_start("update_send()");
    if (phase_ == Phase::in_halves)
      throw std::logic_error("update_send() was called twice in one step");
    outside_capture("update_send()");
    move_to(Phase::in_halves);
    back_end_->update_send(loss);
  }
  StepReport update_wait(const torch::Tensor& loss) override {
    after_start("update_wait()");
    if (phase_ != Phase::in_halves && phase_ != Phase::left)
      throw std::logic_error("update_wait() without update_send() before it");
    outside_capture("update_wait()");
    move_to(Phase::between_steps);
    return counted(back_end_->update_wait(loss));
  }

  FinishReport finish() override {
    phase_ = Phase::left;
    return back_end_->finish();
  }
  void leave() override {
    phase_ = Phase::left;
    back_end_->leave();
  }

  // At any time.
  Place place() const override { return back_end_->place(); }
  bool should_stop(bool wanted) override { return back_end_->should_stop(wanted); }
  void reload(const Config& fresh) override { back_end_->reload(fresh); }
  ResumeState resume_state() const override { return back_end_->resume_state(); }
  bool take_optimizer_state(torch::optim::Optimizer& optimizer) override {
    return back_end_->take_optimizer_state(optimizer);
  }

 private:
  enum class Phase { made, between_steps, averaged, in_halves, left };

  void before_start(const std::string& call) const {
    if (phase_ != Phase::made) throw std::logic_error(call + " belongs before start()");
  }
  void after_start(const std::string& call) const {
    if (phase_ == Phase::made) throw std::logic_error(call + " before start()");
  }
  void outside_halves(const std::string& call) const {
    if (phase_ == Phase::in_halves)
      throw std::logic_error(call + " between update_send() and update_wait()");
  }
  void begin_step(const std::string& call) {
    after_start(call);
    outside_halves(call);
    outside_capture(call);
    move_to(Phase::between_steps);
  }
  void outside_capture(const std::string& call) const {
    if (phase_ != Phase::left && captures_ && captures_()) refuse_in_capture(call);
  }
  StepReport counted(StepReport report) const {
    report.skipped_steps = skipped_steps_;
    return report;
  }
  // An adapter that has left stays so.
  void move_to(Phase next) {
    if (phase_ != Phase::left) phase_ = next;
  }

  const std::unique_ptr<Adapter> back_end_;
  const std::function<bool()> captures_;
  ShownNumbers shown_;
  Phase phase_ = Phase::made;
  std::uint64_t skipped_steps_ = 0;
};

}  // namespace

std::unique_ptr<Adapter> with_call_order(std::unique_ptr<Adapter> back_end,
                                         std::function<bool()> captures) {
  return std::make_unique<CallOrder>(std::move(back_end), std::move(captures));
}

}  // namespace dpwa
