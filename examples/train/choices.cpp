#include "examples/train/choices.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "dpwa/base/numbers.h"

namespace dpwa::train {
namespace {

template <typename Kind, std::size_t n>
using Words = std::array<std::pair<Kind, std::string_view>, n>;

constexpr Words<DataKind, 3> data_words{{{DataKind::mnist, "mnist"},
                                         {DataKind::cifar10, "cifar10"},
                                         {DataKind::synthetic, "synthetic"}}};
constexpr Words<ModelKind, 3> model_words{
    {{ModelKind::mlp, "mlp"}, {ModelKind::cnn, "cnn"}, {ModelKind::resnet18, "resnet18"}}};
constexpr Words<OptimizerKind, 3> optimizer_words{{{OptimizerKind::sgd, "sgd"},
                                                   {OptimizerKind::momentum, "momentum"},
                                                   {OptimizerKind::adam, "adam"}}};

constexpr Words<Schedule, 3> schedule_words{
    {{Schedule::constant, "constant"}, {Schedule::linear, "linear"}, {Schedule::taper, "taper"}}};

template <typename Kind, std::size_t n>
std::string_view word_of(const Words<Kind, n>& words, Kind kind) {
  for (const auto& [candidate, word] : words)
    if (candidate == kind) return word;
  return "unknown";
}

template <typename Kind, std::size_t n>
std::optional<Kind> kind_of(const Words<Kind, n>& words, std::string_view text) {
  for (const auto& [kind, word] : words)
    if (word == text) return kind;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(DataKind kind) {
  return word_of(data_words, kind);
}
std::string_view to_string(ModelKind kind) {
  return word_of(model_words, kind);
}
std::string_view to_string(OptimizerKind kind) {
  return word_of(optimizer_words, kind);
}

std::string_view to_string(Schedule schedule) {
  return word_of(schedule_words, schedule);
}

std::string to_string(const Split& split) {
  if (split.kind == SplitKind::iid) return "iid";
  if (split.kind == SplitKind::shared) return "shared";
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), split.alpha).ptr;
  return "dirichlet:" + std::string(digits.data(), end);
}

std::optional<DataKind> parse_data(std::string_view text) {
  return kind_of(data_words, text);
}
std::optional<ModelKind> parse_model(std::string_view text) {
  return kind_of(model_words, text);
}
std::optional<OptimizerKind> parse_optimizer(std::string_view text) {
  return kind_of(optimizer_words, text);
}

std::optional<Schedule> parse_schedule(std::string_view text) {
  return kind_of(schedule_words, text);
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = number_in<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<unsigned long long> parse_whole(std::string_view text) {
  return number_in<unsigned long long>(text);
}

std::optional<Split> parse_split(std::string_view text) {
  if (text == "iid") return Split{SplitKind::iid, 0};
  if (text == "shared") return Split{SplitKind::shared, 0};
  constexpr std::string_view prefix = "dirichlet:";
  if (!text.starts_with(prefix)) return std::nullopt;
  const auto alpha = parse_number(text.substr(prefix.size()));
  if (!alpha || *alpha <= 0) return std::nullopt;
  return Split{SplitKind::dirichlet, *alpha};
}

std::optional<DeviceChoice> parse_device(std::string_view text) {
  using Kind = DeviceChoice::Kind;
  if (text == "cpu") return DeviceChoice{Kind::cpu, -1};
  if (text == "cuda") return DeviceChoice{Kind::cuda, -1};
  if (text == "auto") return DeviceChoice{Kind::automatic, -1};
  constexpr std::string_view prefix = "cuda:";
  if (!text.starts_with(prefix)) return std::nullopt;
  const auto index = parse_whole(text.substr(prefix.size()));
  if (!index || *index > 127) return std::nullopt;
  return DeviceChoice{Kind::cuda, static_cast<int>(*index)};
}

std::optional<DevicesChoice> parse_devices(std::string_view text) {
  DevicesChoice devices;
  constexpr std::string_view cpus = "cpu:";
  if (text.starts_with(cpus)) {
    const auto count = parse_whole(text.substr(cpus.size()));
    if (!count || *count < 1 || *count > 1024) return std::nullopt;
    devices.cpus = static_cast<int>(*count);
    return devices;
  }
  while (true) {
    const auto comma = text.find(',');
    const auto device = parse_device(text.substr(0, comma));
    if (!device || device->index < 0 ||
        std::ranges::find(devices.gpus, device->index) != devices.gpus.end())
      return std::nullopt;
    devices.gpus.push_back(device->index);
    if (comma == std::string_view::npos) return devices;
    text.remove_prefix(comma + 1);
  }
}

std::optional<ShardChoice> parse_shard(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto number = parse_whole(text.substr(0, slash));
  const auto of = parse_whole(text.substr(slash + 1));
  if (!number || !of || *number < 1 || *number > *of || *of > 65536) return std::nullopt;
  return ShardChoice{*number - 1, *of};
}

}  // namespace dpwa::train
