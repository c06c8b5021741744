#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/svi/options.h"

namespace dpwa::svi {

// How well a posterior predicts the rows that were kept for testing, in the units of the data.
struct Quality {
  double log_likelihood = 0;  // mean over the rows
  double rmse = 0;            // of the predictive mean
  // Fraction of the rows within the central intervals of 50, 80 and 95 %.
  double within_50 = 0, within_80 = 0, within_95 = 0;
};

// The prediction along the input, when there is only one, with the rows of the data.
struct Curve {
  std::vector<std::string> columns;  // the names of x and y
  std::vector<double> x, mean, sd, model_sd;
  std::vector<double> train_x, train_y, test_x, test_y;
};

// NODE.result.json, which goes to stdout without --run-dir.
struct SviResult {
  std::string node;
  std::string backend;
  SviOptions options;
  std::uint64_t workers = 1;     // that shared the rows
  std::uint64_t rows = 0;        // of this node, to train
  std::uint64_t train_rows = 0;  // of all
  std::uint64_t test_rows = 0;
  std::uint64_t participants = 1;  // of the final average
  std::uint64_t refused = 0;       // blends that left no Gaussian
  double seconds = 0;              // of training
  Quality own;                     // before the final average
  Quality final;                   // after it
  Curve curve;
};

std::string to_json(const SviResult& result);

}  // namespace dpwa::svi
