#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "dpwa/config/names.h"
#include "examples/train/options.h"

namespace dpwa::svi {

enum class DataKind { engel, diabetes, synthetic };
enum class PosteriorKind { mean_field, full };
enum class ExchangeKind { natural, parameters };  // under gossip: what the nodes average

inline constexpr config::Word<DataKind> data_names[] = {{"engel", DataKind::engel},
                                                        {"diabetes", DataKind::diabetes},
                                                        {"synthetic", DataKind::synthetic}};
inline constexpr config::Word<PosteriorKind> posterior_names[] = {
    {"mean-field", PosteriorKind::mean_field}, {"full", PosteriorKind::full}};
inline constexpr config::Word<ExchangeKind> exchange_names[] = {
    {"natural", ExchangeKind::natural}, {"parameters", ExchangeKind::parameters}};

// The command line of dpwa-svi as plain values, checked.
struct SviOptions {
  std::filesystem::path config;
  std::string name;  // empty: from DPWA_NAME, or a launcher

  DataKind data = DataKind::engel;
  std::filesystem::path data_dir;  // of NAME.csv; not used by synthetic
  std::uint64_t hidden = 16;       // units of the network; 0 = a linear model
  PosteriorKind posterior = PosteriorKind::mean_field;
  ExchangeKind exchange = ExchangeKind::parameters;

  double lr = 0.02;  // of Adam; falls to a tenth over the run
  std::uint64_t steps = 2000;
  std::uint64_t batch_size = 0;  // rows of a step; 0 = the whole shard
  std::uint64_t draws = 4;       // of the weights, in each step
  std::uint64_t seed = 1;
  std::uint64_t threads = 1;

  std::filesystem::path run_dir;  // empty = no files; the result then goes to stdout
};

using ParsedOptions = train::Parsed<SviOptions>;
ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace dpwa::svi
