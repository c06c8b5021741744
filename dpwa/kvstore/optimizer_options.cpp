// Names, checks and the byte form of OptimizerOptions.

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "dpwa/base/plain_text.h"
#include "dpwa/kvstore/optimizer.h"

namespace dpwa::kvstore {
namespace {

constexpr std::pair<OptimizerKind, std::string_view> optimizer_names[] = {
    {OptimizerKind::sgd, "sgd"},           {OptimizerKind::momentum, "momentum"},
    {OptimizerKind::nesterov, "nesterov"}, {OptimizerKind::adam, "adam"},
    {OptimizerKind::adamw, "adamw"},       {OptimizerKind::adagrad, "adagrad"},
    {OptimizerKind::rmsprop, "rmsprop"},
};

// The accepted range of a number.
enum class Range { any, positive_or_zero, below_one };

struct OptionField {
  std::string_view name;
  double OptimizerOptions::*value;
  Range range;
};

// In the order of the byte form.
constexpr OptionField option_fields[] = {
    {"learning_rate", &OptimizerOptions::learning_rate, Range::positive_or_zero},
    {"rescale", &OptimizerOptions::rescale, Range::any},
    {"weight_decay", &OptimizerOptions::weight_decay, Range::positive_or_zero},
    {"momentum", &OptimizerOptions::momentum, Range::positive_or_zero},
    {"dampening", &OptimizerOptions::dampening, Range::any},
    {"beta1", &OptimizerOptions::beta1, Range::below_one},
    {"beta2", &OptimizerOptions::beta2, Range::below_one},
    {"alpha", &OptimizerOptions::alpha, Range::positive_or_zero},
    {"epsilon", &OptimizerOptions::epsilon, Range::positive_or_zero},
    {"rate_decay", &OptimizerOptions::rate_decay, Range::positive_or_zero},
    {"accumulator", &OptimizerOptions::accumulator, Range::positive_or_zero},
};

constexpr std::size_t first_number = 8;
static_assert(first_number + std::size(option_fields) * sizeof(double) == options_bytes);
constexpr unsigned flag_amsgrad = 1;
constexpr unsigned flag_centered = 2;

bool within(double value, Range range) {
  if (!std::isfinite(value)) return false;
  if (range == Range::any) return true;
  return value >= 0 && (range == Range::positive_or_zero || value < 1);
}

std::string_view words_for(Range range) {
  if (range == Range::any) return "a finite number";
  return range == Range::below_one ? "at least 0 and below 1" : "at least 0";
}

}  // namespace

std::string_view name_of(OptimizerKind kind) {
  const auto* const found =
      std::ranges::find(optimizer_names, kind, [](const auto& pair) { return pair.first; });
  return found == std::end(optimizer_names) ? "unknown" : found->second;
}

OptimizerKind optimizer_kind(std::string_view name) {
  std::string known;
  for (const auto& [kind, known_name] : optimizer_names) {
    if (name == known_name) return kind;
    known.append(known.empty() ? "" : ", ").append(known_name);
  }
  throw std::invalid_argument("unknown optimizer '" + to_plain_text(name, 100) +
                              "'; known: " + known);
}

OptimizerOptions default_options(OptimizerKind kind) {
  OptimizerOptions options;
  options.kind = kind;
  switch (kind) {
    case OptimizerKind::sgd:
    case OptimizerKind::rmsprop:
      break;
    case OptimizerKind::momentum:
    case OptimizerKind::nesterov:
      options.momentum = 0.9;
      break;
    case OptimizerKind::adamw:
      options.weight_decay = 0.01;
      [[fallthrough]];
    case OptimizerKind::adam:
      options.learning_rate = 0.001;
      break;
    case OptimizerKind::adagrad:
      options.epsilon = 1e-10;
      break;
  }
  return options;
}

std::optional<std::string> options_problem(const OptimizerOptions& options) {
  if (name_of(options.kind) == "unknown") return "an unknown kind of optimizer";
  for (const OptionField& field : option_fields) {
    const double value = options.*field.value;
    if (within(value, field.range)) continue;
    return std::string(name_of(options.kind)) + ": " + std::string(field.name) + " is " +
           std::to_string(value) + "; accepted: " + std::string(words_for(field.range));
  }
  return std::nullopt;
}

OptionsBytes encode(const OptimizerOptions& options) {
  OptionsBytes bytes{};
  bytes[0] = std::byte(options.kind);
  bytes[1] =
      std::byte((options.amsgrad ? flag_amsgrad : 0) | (options.centered ? flag_centered : 0));
  auto* at = reinterpret_cast<unsigned char*>(bytes.data()) + first_number;
  for (const OptionField& field : option_fields) {
    boost::endian::endian_store<double, sizeof(double), boost::endian::order::little>(
        at, options.*field.value);
    at += sizeof(double);
  }
  return bytes;
}

std::optional<OptimizerOptions> decode_options(std::span<const std::byte> bytes) {
  if (bytes.size() != options_bytes) return std::nullopt;
  const auto flags = std::to_integer<unsigned>(bytes[1]);
  if (flags > (flag_amsgrad | flag_centered)) return std::nullopt;
  if (std::ranges::any_of(bytes.subspan(2, first_number - 2),
                          [](std::byte byte) { return byte != std::byte{}; }))
    return std::nullopt;
  OptimizerOptions options;
  options.kind = static_cast<OptimizerKind>(bytes[0]);
  options.amsgrad = (flags & flag_amsgrad) != 0;
  options.centered = (flags & flag_centered) != 0;
  const auto* at = reinterpret_cast<const unsigned char*>(bytes.data()) + first_number;
  for (const OptionField& field : option_fields) {
    options.*field.value =
        boost::endian::endian_load<double, sizeof(double), boost::endian::order::little>(at);
    at += sizeof(double);
  }
  if (options_problem(options)) return std::nullopt;
  return options;
}

}  // namespace dpwa::kvstore
