#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace dpwa::svi {

enum class DataKind { engel, diabetes, synthetic };
enum class PosteriorKind { mean_field, full };
enum class ExchangeKind { natural, parameters };  // under gossip: what the nodes average

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

const char* to_string(DataKind kind);
const char* to_string(PosteriorKind kind);
const char* to_string(ExchangeKind kind);

// Options to run with, or text to print and an exit code.
struct ParsedOptions {
  bool run = false;
  SviOptions options;
  std::string text;
  int exit_code = 0;
};

ParsedOptions parse_options(int argc, const char* const* argv);

}  // namespace dpwa::svi
