#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/optim/adam.h>
#include <torch/types.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "adapters/adapter.h"
#include "adapters/inference/elbo.h"
#include "adapters/inference/natural_exchange.h"
#include "adapters/inference/split_data.h"
#include "adapters/launch/meeting.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/config/backends.h"
#include "dpwa/config/config.h"
#include "dpwa/config/names.h"
#include "dpwa/config/open_log.h"
#include "dpwa/launch/launched_config.h"
#include "dpwa/log/log.h"
#include "dpwa/parallel/seed_streams.h"
#include "examples/svi/network.h"
#include "examples/svi/options.h"
#include "examples/svi/table.h"
#include "examples/train/files.h"
#include "examples/train/main.h"

namespace dpwa::svi {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t test_draws = 500;
constexpr int curve_points = 160;

// A table as tensors: the inputs, and the column to predict.
struct Rows {
  at::Tensor x, y;
};

Rows rows_of(const Table& table) {
  const auto columns = static_cast<std::int64_t>(table.columns.size());
  const auto all = torch::tensor(table.values, torch::kDouble)
                       .reshape({static_cast<std::int64_t>(table.rows()), columns})
                       .to(torch::kFloat);
  return {all.narrow(1, 0, columns - 1).contiguous(), all.select(1, columns - 1).contiguous()};
}

std::vector<double> numbers(const at::Tensor& tensor, double scale = 1, double offset = 0) {
  const auto flat = (tensor.to(torch::kDouble) * scale + offset).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

void make_run_dir(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0)
    error = std::error_code(errno, std::generic_category());
  if (!error) return;
  throw ConfigError("--run-dir " + folder.string() + ": cannot be written (" + error.message() +
                    "); accepted: a folder to write to");
}

class Program {
 public:
  explicit Program(const SviOptions& options);
  int run();

 private:
  void agree() const;
  std::uint64_t made() const;  // steps of the run
  void follow(double clock);
  StepReport step();
  void take_rows();
  Rows next_batch() const;
  at::Tensor test_weights() const;
  ordered_json quality() const;
  ordered_json curve() const;
  void write_metrics(std::uint64_t step, double loss) const;

  const SviOptions options_;
  const LaunchedConfig cluster_;
  const Config& config_;
  Parts table_;
  Scale scale_;  // of the rows to train
  Rows train_, test_;
  std::shared_ptr<Network> network_;
  std::unique_ptr<Adapter> adapter_;
  std::optional<NaturalExchange> exchange_;  // none: the adapter's own calls
  std::unique_ptr<torch::optim::Adam> optimizer_;
  // Steps of the run, which the learning rate follows: shared, so that nodes that have trained
  // apart go on from one number.
  const at::Tensor steps_made_ = torch::zeros({1}, torch::kLong);
  std::uint64_t next_report_ = 0;  // at this step
  Place split_for_;
  std::vector<at::Tensor> shard_;  // of this node: x and y
};

Program::Program(const SviOptions& options)
    : options_(options),
      cluster_(options.config, options.name, {}, launch::meet),
      config_(cluster_.config()) {
  require_backend(config_);
  open_log(config_).use();
  at::set_num_threads(static_cast<int>(options_.threads));
  make_run_dir(options_.run_dir);
  const Table table = load_table(options_);
  table_ = split_rows(table, options_.seed);
  scale_ = scale_of(table_.train);
  train_ = rows_of(standardised(table_.train, scale_));
  test_ = rows_of(standardised(table_.test, scale_));
  const SeedStreams seeds(options_.seed);
  network_ = std::make_shared<Network>(train_.x.size(1), static_cast<std::int64_t>(options_.hidden),
                                       options_.posterior, seeds.common(SeedRole::weights));
  torch::manual_seed(seeds.of_rank(SeedRole::noise, place_in_file(config_).rank));
  optimizer_ = std::make_unique<torch::optim::Adam>(network_->parameters(),
                                                    torch::optim::AdamOptions(options_.lr));
  adapter_ = make_adapter(config_, *network_);
  agree();
  if (options_.exchange == ExchangeKind::natural) exchange_.emplace(config_, *adapter_, *network_);
  take_rows();  // an error in them ends this node before it has joined
}

// With whom this node may train.
void Program::agree() const {
  adapter_->share(steps_made_);
  adapter_->require_same("--data", config::name_in(data_names, options_.data));
  adapter_->require_same("--posterior", config::name_in(posterior_names, options_.posterior));
  adapter_->require_same("--steps", std::to_string(options_.steps));
  adapter_->require_same("--seed", std::to_string(options_.seed));
  // The rows to train as they were read, which depend on file and seed.
  const auto rows = torch::tensor(table_.train.values, torch::kDouble)
                        .reshape({train_.x.size(0), train_.x.size(1) + 1});
  adapter_->mark_model("the data to train",
                       words_of_data({rows}) + ", seed " + std::to_string(options_.seed));
  if (config_.backend == Backend::gossip && options_.exchange == ExchangeKind::parameters)
    adapter_->mark_model(NaturalExchange::mark, "(m, log s)");
}

void Program::take_rows() {
  split_for_ = adapter_->place();
  const std::size_t rows = table_.train.rows();
  if (rows < split_for_.size) {
    throw ConfigError(
        std::to_string(rows) + " of the " + std::to_string(rows + table_.test.rows()) +
        " rows of " + config::name_in(data_names, options_.data) +
        " are left to train, as a fifth is for testing: too few for " +
        std::to_string(split_for_.size) + " nodes; accepted: at least one row for each");
  }
  shard_ = split_data({train_.x, train_.y}, split_for_);
  log(LogLevel::info, "svi",
      "trains on " + std::to_string(shard_[0].size(0)) + " of " + std::to_string(train_.x.size(0)) +
          " rows: shard " + std::to_string(split_for_.rank + 1) + " of " +
          std::to_string(split_for_.size));
  if (options_.batch_size > static_cast<std::uint64_t>(shard_[0].size(0))) {
    log(LogLevel::warn, "svi",
        "--batch-size " + std::to_string(options_.batch_size) + " is more than the " +
            std::to_string(shard_[0].size(0)) + " rows of this node: each step takes all of them");
  }
}

Rows Program::next_batch() const {
  const auto batch = static_cast<std::int64_t>(options_.batch_size);
  if (batch == 0 || batch >= shard_[0].size(0)) return {shard_[0], shard_[1]};
  const auto rows = torch::randperm(shard_[0].size(0)).narrow(0, 0, batch);
  return {shard_[0].index_select(0, rows), shard_[1].index_select(0, rows)};
}

std::uint64_t Program::made() const {
  return static_cast<std::uint64_t>(*steps_made_.const_data_ptr<std::int64_t>());
}

// share() acts under collective alone.
void Program::follow(double clock) {
  if (config_.backend == Backend::kvstore)
    *steps_made_.mutable_data_ptr<std::int64_t>() = std::llround(clock);
}

StepReport Program::step() {
  const std::uint64_t index = made();
  const Place now = adapter_->place();
  if (now.rank != split_for_.rank || now.size != split_for_.size) take_rows();
  const double done = static_cast<double>(index) / static_cast<double>(options_.steps);
  static_cast<torch::optim::AdamOptions&>(optimizer_->param_groups()[0].options())
      .lr(options_.lr * std::pow(0.1, done));
  const Elbo elbo = Elbo::averaged(now, shard_[0].size(0));
  const Rows batch = next_batch();
  optimizer_->zero_grad();
  const auto terms = network_->terms(batch.x, batch.y, static_cast<std::int64_t>(options_.draws));
  const auto loss = elbo.loss(terms, batch.x.size(0)) / static_cast<double>(train_.x.size(0));
  loss.backward();
  *steps_made_.mutable_data_ptr<std::int64_t>() += 1;  // before the step, as share() asks
  const StepReport report =
      exchange_ ? exchange_->step(*optimizer_, loss) : adapter_->step(*optimizer_, loss);
  follow(report.clock);
  const double value = loss.item<double>();
  if (!std::isfinite(value))
    throw std::runtime_error("the loss is not finite after step " + std::to_string(index + 1) +
                             ": training has diverged; try a smaller --lr");
  if (index % 50 == 0) write_metrics(index + 1, value);
  if (index >= next_report_) {
    next_report_ = index + std::max<std::uint64_t>(1, options_.steps / 10);
    char text[64];
    std::snprintf(text, sizeof text, ", loss %.4g", value);
    log(LogLevel::info, "svi",
        "step " + std::to_string(index + 1) + " of " + std::to_string(options_.steps) + text);
  }
  return report;
}

void Program::write_metrics(std::uint64_t step, double loss) const {
  if (options_.run_dir.empty()) return;
  const auto file = options_.run_dir / (config_.self + ".metrics.jsonl");
  std::ofstream out(file, step == 1 ? std::ios::trunc : std::ios::app);
  out << nlohmann::json{{"step", step}, {"loss", loss}}.dump() << std::endl;
  if (!out) throw std::runtime_error("cannot write " + file.string());
}

at::Tensor Program::test_weights() const {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(
      SeedStreams(options_.seed).common(SeedRole::statistics));
  return network_->posterior().draw(test_draws, generator);  // the same on every node
}

// How well the posterior predicts the rows that were kept for testing, in the units of the data:
// the mean log density, the error of the predictive mean, and the fraction of the rows within the
// central intervals of 50, 80 and 95 %.
ordered_json Program::quality() const {
  const torch::NoGradGuard no_gradients;
  const Predictive predicted(*network_, test_weights(), test_.x);
  const double unit = scale_.sd.back();
  const auto rank = predicted.rank_of(test_.y);
  const auto within = [&rank](double width) {
    return ((rank - 0.5).abs() <= width / 2).to(torch::kDouble).mean().item<double>();
  };
  const auto error = (predicted.mean - test_.y).square().mean().sqrt();
  return {{"log_likelihood", predicted.log_density(test_.y).mean().item<double>() - std::log(unit)},
          {"rmse", unit * error.item<double>()},
          {"within_50", within(0.5)},
          {"within_80", within(0.8)},
          {"within_95", within(0.95)}};
}

// The prediction along the input, when there is only one, with the rows of the data; else null.
ordered_json Program::curve() const {
  if (train_.x.size(1) != 1) return nullptr;
  const torch::NoGradGuard no_gradients;
  const double low = train_.x.min().item<double>(), high = train_.x.max().item<double>();
  const double margin = 0.1 * (high - low);
  const auto x = torch::linspace(low - margin, high + margin, curve_points).unsqueeze(1);
  const Predictive predicted(*network_, test_weights(), x);
  const double x_unit = scale_.sd[0], x_mean = scale_.mean[0];
  const double y_unit = scale_.sd[1], y_mean = scale_.mean[1];
  return {{"columns", table_.train.columns},
          {"x", numbers(x, x_unit, x_mean)},
          {"mean", numbers(predicted.mean, y_unit, y_mean)},
          {"sd", numbers(predicted.sd, y_unit)},
          {"model_sd", numbers(predicted.model_sd, y_unit)},
          {"train_x", numbers(train_.x, x_unit, x_mean)},
          {"train_y", numbers(train_.y, y_unit, y_mean)},
          {"test_x", numbers(test_.x, x_unit, x_mean)},
          {"test_y", numbers(test_.y, y_unit, y_mean)}};
}

int Program::run() {
  using Clock = std::chrono::steady_clock;
  exchange_ ? exchange_->start() : adapter_->start();
  follow(adapter_->resume_state().clock);
  stop_signal::defer(true);
  const auto begun = Clock::now();
  while (made() < options_.steps) {
    const StepReport report = step();
    if (!report.made || adapter_->should_stop(stop_signal::received() != 0)) {
      adapter_->leave();
      return stop_signal::received() != 0 ? stop_signal::exit_code() : 1;
    }
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  const ordered_json own = quality();
  stop_signal::defer(false);
  const auto finished = exchange_ ? exchange_->finish() : adapter_->finish();
  const std::uint64_t participants = finished.participants;
  if (stop_signal::received() != 0) return stop_signal::exit_code();
  const std::uint64_t refused = exchange_ ? exchange_->refused() : 0;
  if (config_.backend == Backend::gossip && participants < split_for_.size) {
    log(LogLevel::warn, "svi",
        "the final average is over " + std::to_string(participants) + " of " +
            std::to_string(split_for_.size) +
            " nodes: it lacks the rows of the others, and is not the posterior of all data");
  }
  if (refused > 0) {
    log(LogLevel::warn, "svi",
        std::to_string(refused) + " averages left no Gaussian, and were not taken");
  }
  const ordered_json result = {{"schema", 1},
                               {"node", config_.self},
                               {"backend", config::name_of(config_.backend)},
                               {"dataset", config::name_in(data_names, options_.data)},
                               {"posterior", config::name_in(posterior_names, options_.posterior)},
                               {"exchange", config::name_in(exchange_names, options_.exchange)},
                               {"hidden", options_.hidden},
                               {"seed", options_.seed},
                               {"steps", options_.steps},
                               {"workers", split_for_.size},  // that shared the rows
                               {"rows", shard_[0].size(0)},   // of this node, to train
                               {"train_rows", table_.train.rows()},
                               {"test_rows", table_.test.rows()},
                               {"participants", participants},  // of the final average
                               {"lost_final_model", finished.lost_final_model},
                               {"refused", refused},
                               {"train_seconds", seconds},
                               {"own", own},  // before the final average
                               {"final", quality()},
                               {"curve", curve()}};
  const std::string text = result.dump(2) + "\n";
  if (options_.run_dir.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    train::write_file_atomically(options_.run_dir / (config_.self + ".result.json"), {text});
  }
  return finished.enough && !finished.lost_final_model ? 0 : 1;
}

// Runs one node; the exit code. Throws ConfigError before anything is started.
int run_program(const SviOptions& options) {
  stop_signal::install("dpwa-svi");
  Program program(options);
  return program.run();
}

}  // namespace
}  // namespace dpwa::svi

int main(int argc, char** argv) {
  return dpwa::train::run_main(
      "dpwa-svi", [&] { return dpwa::svi::parse_options(argc, argv); }, dpwa::svi::run_program);
}
