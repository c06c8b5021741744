#include "dpwa/rules/final_models.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace dpwa;

namespace {

FinalModel at(double value, bool of_file = true) {
  FinalModel model;
  model.sketch.sums.fill(value / 16);  // so that its norm is the value
  model.of_file = of_file;
  return model;
}

// The indices of the models that are left out, by the judgement of the first one.
std::string left_out(const std::vector<FinalModel>& models) {
  std::string text;
  const FinalChoice choice = choose_final_models(models, 0);
  for (std::size_t i = 0; i < models.size(); ++i) {
    if (choice.left_out[i]) text += std::to_string(i);
  }
  CHECK(choice.all() == text.empty());
  return text;
}

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a model is left out beyond 30 usual distances, and not within a twentieth of the norm") {
  CHECK(left_out({at(100), at(101), at(102), at(130)}).empty());
  CHECK(left_out({at(100), at(101), at(102), at(132)}) == "3");
  CHECK(left_out({at(100), at(100), at(100), at(104)}).empty());
  CHECK(left_out({at(100), at(100), at(100), at(106)}) == "3");
}

TEST_CASE("two models average unless one is several times as large as the other") {
  CHECK(left_out({at(10), at(39)}).empty());
  CHECK(left_out({at(10), at(41)}) == "1");
  CHECK(left_out({at(41), at(10)}) == "1");  // each node keeps its own
  CHECK(left_out({at(0), at(5)}).empty());
}

TEST_CASE("one model alone is that of its node") {
  CHECK(left_out({at(10)}).empty());
  CHECK(left_out({at(not_a_number)}).empty());
}

TEST_CASE("a model that is not finite is left out, also the own one") {
  CHECK(left_out({at(10), at(not_a_number), at(10.1)}) == "1");
  CHECK(left_out({at(not_a_number), at(10), at(10.1)}) == "0");
  CHECK(left_out({at(not_a_number), at(10)}) == "0");
}

TEST_CASE("processes that joined under many names do not outvote the nodes of the file") {
  CHECK(left_out({at(10), at(10.1), at(20, false), at(20, false), at(20, false)}) == "234");
  CHECK(left_out({at(20, false), at(20, false), at(20, false), at(10), at(10.1)}) == "012");
  // Where the file names none, most decide.
  CHECK(left_out({at(10, false), at(10.1, false), at(20, false)}) == "2");
}

TEST_CASE("a model that is made to look near is left out") {
  auto models = std::vector{at(10), at(10.1), at(10.2)};
  models[1].own_distance = 0.1;
  models[2].own_distance = 0.5;  // within the bound of 3
  CHECK(left_out(models).empty());
  models[2].own_distance = 50;
  CHECK(left_out(models) == "2");
}
