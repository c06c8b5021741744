#include "dpwa/gossip/model_passes.h"

#include <chrono>
#include <limits>
#include <thread>
#include <utility>

namespace dpwa {

ModelPasses::ModelPasses(Parameters& parameters, SnapshotStore& store)
    : parameters_(parameters), store_(store), loss_(std::numeric_limits<double>::quiet_NaN()) {}

void ModelPasses::open() {
  if (copying_ || open_) return;
  open_ = store_.begin();
  filled_ = false;
}

void ModelPasses::blend(const Landing& landing, double factor) {
  if (open_ && !filled_) {
    parameters_.blend_and_copy_out(landing, factor, open_->bytes());
    filled_ = true;
  } else {
    parameters_.blend(landing, factor);
  }
}

void ModelPasses::begin(const std::function<double()>& loss, const Progress& progress) {
  if (!open_) return;
  if (!filled_) parameters_.copy_out(open_->bytes());
  copying_ = std::exchange(open_, std::nullopt);
  copying_loss_ = loss;
  copying_progress_ = progress;
}

bool ModelPasses::complete() {
  if (!copying_ || !parameters_.settled()) return false;
  loss_ = copying_loss_();
  swap_in(*std::exchange(copying_, std::nullopt), copying_progress_);
  return true;
}

bool ModelPasses::publish_now(const Progress& progress, TimePoint give_up) {
  while (std::chrono::steady_clock::now() < give_up) {
    if (copying_ && parameters_.settled()) copying_.reset();
    open();
    if (open_) {
      parameters_.copy_out(open_->bytes());
      while (!parameters_.settled()) std::this_thread::yield();
      swap_in(*std::exchange(open_, std::nullopt), progress);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void ModelPasses::swap_in(SnapshotStore::Writer writer, Progress progress) {
  progress.version = ++version_;
  progress.loss = loss_;
  store_.publish(std::move(writer), progress);
}

}  // namespace dpwa
