#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dpwa::train {

// The choices of the options of dpwa-train, and their words.
enum class DataKind { mnist, cifar10, synthetic };
enum class ModelKind { mlp, cnn, resnet18 };
enum class OptimizerKind { sgd, momentum, adam };
// Course of the learning rate over the whole length: constant; linear: falls to 0; taper: falls to
// half of what it was.
enum class Schedule { constant, linear, taper };
enum class SplitKind { iid, dirichlet, shared };

struct Split {
  SplitKind kind = SplitKind::iid;
  double alpha = 0;  // concentration, with dirichlet only; small = few classes per node
};

struct DeviceChoice {
  enum class Kind { cpu, cuda, automatic } kind = Kind::cpu;
  int index = -1;  // with cuda; -1 = that of this process, as own_gpu() says
};

// The devices of one process: `count` of the CPU, or these GPUs. None: the one of --device.
struct DevicesChoice {
  int cpus = 0;
  std::vector<int> gpus;

  std::size_t size() const { return cpus > 0 ? static_cast<std::size_t>(cpus) : gpus.size(); }
};

// Part `index` of the data cut into `of` parts.
struct ShardChoice {
  std::uint64_t index = 0;  // from 0; the command line counts from 1
  std::uint64_t of = 1;
};

std::string_view to_string(DataKind kind);
std::string_view to_string(ModelKind kind);
std::string_view to_string(OptimizerKind kind);
std::string_view to_string(Schedule schedule);
std::string to_string(const Split& split);  // "iid", "dirichlet:0.1", "shared"

std::optional<DataKind> parse_data(std::string_view text);
std::optional<ModelKind> parse_model(std::string_view text);
std::optional<OptimizerKind> parse_optimizer(std::string_view text);
std::optional<Schedule> parse_schedule(std::string_view text);
std::optional<Split> parse_split(std::string_view text);
std::optional<DeviceChoice> parse_device(std::string_view text);
// The GPU of a process that a launcher has started as number `local_rank` of this host, of `count`
// that it sees: one each. Processes beyond the last GPU share, from the first one on.
constexpr int own_gpu(int local_rank, int count) {
  return local_rank % count;
}

std::optional<DevicesChoice> parse_devices(std::string_view text);  // cpu:N, or cuda:I,cuda:J,…
std::optional<ShardChoice> parse_shard(std::string_view text);      // K/N, 1 <= K <= N <= 65536

// The whole of `text` as a finite number or a whole number; none otherwise.
std::optional<double> parse_number(std::string_view text);
std::optional<unsigned long long> parse_whole(std::string_view text);

}  // namespace dpwa::train
