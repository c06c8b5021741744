#include <doctest/doctest.h>

#include <sstream>

#include "bench/collective/engine_comparison.h"
#include "bench/collective/step_comparison.h"

using namespace dpwa::bench;

TEST_CASE("what of an all-reduce a step does not show is hidden") {
  CHECK(hidden_share(100, 100, 50) == 1);
  CHECK(hidden_share(125, 100, 50) == doctest::Approx(0.5));
  CHECK(hidden_share(150, 100, 50) == 0);
  CHECK(hidden_share(175, 100, 50) == doctest::Approx(-0.5));
  CHECK(hidden_share(90, 100, 50) == 1);  // noise hides no more than all of it
  CHECK(hidden_share(100, 90, 0) == 0);
}

TEST_CASE("a window has as many steps as fit, and enough for a median") {
  CHECK(steps_of_window(1, 10'000) == 100);
  CHECK(steps_of_window(0.5, 1e6) == 4);
  CHECK(steps_of_window(600, 0) == 100'000);
}

namespace {

StepComparison two_windows() {
  StepComparison measured;
  measured.settings.nodes = 4;
  measured.parameters = 1000;
  measured.windows = {{.step = 90,
                       .local = 60,
                       .allreduce = 40,
                       .step_cpu = 50,
                       .ddp_step = 100,
                       .ddp_local = 60,
                       .ddp_step_cpu = 55},
                      {.step = 110,
                       .local = 60,
                       .allreduce = 40,
                       .step_cpu = 52,
                       .ddp_step = 100,
                       .ddp_local = 60,
                       .ddp_step_cpu = 57}};
  measured.steps_us = {90, 110, 100};
  measured.ddp_steps_us = {100, 100};
  return measured;
}

}  // namespace

TEST_CASE("steps are compared window by window") {
  const Json document = step_comparison_document(two_windows());
  CHECK(document.at("bytes") == 4000);
  CHECK(document.at("ratio_to_ddp").at("min") == doctest::Approx(0.9));
  CHECK(document.at("ratio_to_ddp").at("max") == doctest::Approx(1.1));
  CHECK(document.at("dpwa").at("step_us").at("median") == 100);
  CHECK(document.at("dpwa").at("hidden_share").at("max") == doctest::Approx(0.25));
  CHECK(document.at("ddp").at("hidden_share").at("median") == doctest::Approx(0));
  CHECK(document.at("ddp").at("cpu_us").at("max") == 57);
  std::ostringstream text;
  print_step_comparison(document, text);
  CHECK(text.str().find("collective / DDP") != std::string::npos);
}

TEST_CASE("steps without DistributedDataParallel say why and have no ratio") {
  StepComparison measured = two_windows();
  measured.ddp_absent = "no torch here";
  const Json document = step_comparison_document(measured);
  CHECK(document.at("ratio_to_ddp").is_null());
  CHECK(document.at("ddp") == Json{{"absent", "no torch here"}});
  std::ostringstream text;
  print_step_comparison(document, text);
  CHECK(text.str().find("no torch here") != std::string::npos);
}

TEST_CASE("engines are compared by the median of each window, and one that is absent says why") {
  EngineComparison measured;
  measured.bytes = 1'000'000;
  measured.nodes = 4;
  measured.engines = {{"gloo", "", "", {{1000, 2000, 9000}, {3000}}},
                      {"nccl", "no device", "", {}},
                      {"mpi", "", "algorithm 5", {{1000}, {2000}}}};
  const Json document = engine_comparison_document(measured);
  CHECK(document.at("engines").at(0).at("windows").at("allreduce_us").at("min") == 2000);
  CHECK(document.at("engines").at(0).at("windows").at("gb_per_s").at("max") == 2);
  CHECK(document.at("engines").at(2).at("setting") == "algorithm 5");
  CHECK(document.at("engines").at(1) == Json{{"name", "nccl"}, {"absent", "no device"}});
  CHECK(document.at("ratio_mpi_to_gloo").at("min") == 1.5);
  CHECK(document.at("ratio_mpi_to_gloo").at("max") == 2);
  measured.engines.back().absent = "no MPI";
  CHECK(engine_comparison_document(measured).at("ratio_mpi_to_gloo").is_null());
  std::ostringstream text;
  print_engine_comparison(engine_comparison_document(measured), text);
  CHECK(text.str().find("absent: no MPI") != std::string::npos);
}
