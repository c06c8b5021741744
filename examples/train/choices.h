#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dpwa::train {

// What the options of dpwa-train choose among, and the words for it.
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
  int index = -1;  // with cuda; -1 = the current one
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

// The whole of `text` as a finite number or a whole number; none otherwise.
std::optional<double> parse_number(std::string_view text);
std::optional<unsigned long long> parse_whole(std::string_view text);

}  // namespace dpwa::train
