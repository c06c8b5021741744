#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <sstream>

#include "bench/collective/engine_comparison.h"
#include "bench/collective/step_comparison.h"
#include "bench/measure/machine.h"
#include "bench/measure/statistics.h"
#include "bench/pull/pull_group.h"
#include "bench/pull/pull_report.h"
#include "dpwa/snapshot/memory_file.h"

using namespace dpwa::bench;

TEST_CASE("the path in force shows in what the kernel counted on TCP") {
  CHECK(transport_in_force(1.001e9, 1'000'000'000) == "tcp");
  CHECK(transport_in_force(0.26e9, 1'000'000'000) == "tcp");  // int8
  CHECK(transport_in_force(0.0001e9, 1'000'000'000) == "same_host");
  CHECK(transport_in_force(0, 200) == "same_host");
}

TEST_CASE(
    "memory beyond the buffers leaves out the code and the peers' memory and counts the staging "
    "buffer") {
  const std::vector<Json> reports = {{{"peak_rss_kib", 11000 + 4000}, {"peers_mapped_kib", 0}},
                                     {{"peak_rss_kib", 11000 + 9100}, {"peers_mapped_kib", 5000}}};
  const std::vector<Json> small = {{{"peak_rss_kib", 11000}, {"peers_mapped_kib", 0}},
                                   {{"peak_rss_kib", 11008}, {"peers_mapped_kib", 8}}};
  CHECK(memory_beyond_buffers(reports, small, 4, 1024 * 1000, 1024) == 1024 * 100 + 1024);
}

TEST_CASE("figures of windows are medians, and latencies quantiles over all nodes") {
  Series series{"dpwa", nullptr, {}};
  for (const double rate : {4.0, 6.0, 5.0}) {
    GroupWindow window;
    window.pulls = 10;
    window.bytes = 1'000'000'000;
    window.gb_per_s = rate;
    window.cpu_s = 1 / rate;
    window.failed = {{"skipped", 2}};
    series.windows.push_back(window);
  }
  const std::vector<Json> reports = {{{"latency_us", {1, 2}},
                                      {"trainer_latency_us", {3, 4}},
                                      {"peak_rss_kib", 1024},
                                      {"peers_mapped_kib", 512}},
                                     {{"latency_us", {9}},
                                      {"trainer_latency_us", {9}},
                                      {"peak_rss_kib", 2048},
                                      {"peers_mapped_kib", 0}}};
  const Json figures = figures_of(series, reports);
  CHECK(figures.at("pulls") == 30);
  CHECK(figures.at("failed").at("skipped") == 6);
  CHECK(figures.at("gb_per_s") == 5);
  CHECK(figures.at("cpu_s_per_gb") == doctest::Approx(0.2));
  CHECK(figures.at("latency_us").at("median") == 2);
  CHECK(figures.at("latency_us").at("p99") == 9);
  CHECK(figures.at("trainer_latency_us").at("median") == 4);
  CHECK(figures.at("peak_rss_mib") == 2);
  CHECK(figures.at("peers_mapped_mib") == 0.5);
  CHECK(windows_of(series).at("gb_per_s").at("min") == 4);
  CHECK(windows_of(series).at("gb_per_s").at("max") == 6);
}

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

TEST_CASE("a quantile is the value of the nearest rank") {
  const std::vector<double> values = {5, 1, 4, 2, 3};
  CHECK(quantile(values, 0) == 1);
  CHECK(quantile(values, 0.5) == 3);
  CHECK(quantile(values, 0.99) == 5);
  CHECK(quantile(values, 1) == 5);
  CHECK(quantile({7, 1}, 0.5) == 1);
}

TEST_CASE("the 99th percentile of a hundred values is the last but one") {
  std::vector<double> values;
  for (int i = 1; i <= 100; ++i) values.push_back(i);
  CHECK(quantile(values, 0.99) == 99);
}

TEST_CASE("a range has the lowest, the median and the highest value") {
  const Range range = range_of({2, 9, 4});
  CHECK(range.min == 2);
  CHECK(range.median == 4);
  CHECK(range.max == 9);
  CHECK(spread_of(range) == doctest::Approx(7.0 / 4));
}

TEST_CASE("nothing has no quantiles and no spread") {
  CHECK(quantile({}, 0.5) == 0);
  CHECK(range_of({}).max == 0);
  CHECK(spread_of(range_of({})) == 0);
}

TEST_CASE("the time of all processors is read from the first line of /proc/stat") {
  // user nice system idle iowait irq softirq steal guest guest_nice
  const ProcessorTime time =
      parse_processor_time("cpu  100 10 50 800 20 5 5 10 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n", 100);
  CHECK(time.busy == doctest::Approx(1.7));
  CHECK(time.steal == doctest::Approx(0.1));
  CHECK(time.total == doctest::Approx(10));
}

TEST_CASE("a /proc/stat of another form gives no time") {
  for (const char* text : {"", "intr 1 2 3\n", "cpu 1 2 3\n", "cpu a b c d e f g h\n"}) {
    CAPTURE(text);
    CHECK(parse_processor_time(text, 100).total == 0);
  }
}

TEST_CASE("a quiet machine gives no reason to doubt") {
  const Noise noise = judge_noise(0.1, {10, 0, 100}, {12, 0.01, 104}, 1.9);
  CHECK(noise.reasons.empty());
  CHECK(noise.other_load == doctest::Approx(0.025));
}

TEST_CASE("windows that differ, other work and steal are told apart") {
  CHECK(judge_noise(0.2, {}, {}, 0).reasons.size() == 1);
  CHECK(judge_noise(0, {10, 0, 100}, {13, 0, 104}, 1).reasons.size() == 1);
  CHECK(judge_noise(0, {10, 0, 100}, {11, 1, 104}, 1).reasons.size() == 1);
  CHECK(judge_noise(0.2, {10, 0, 100}, {13, 1, 104}, 1).reasons.size() == 3);
}

TEST_CASE("more processor time of our own than the machine counted is no load of others") {
  CHECK(judge_noise(0, {10, 0, 100}, {11, 0, 104}, 2).other_load == 0);
}

namespace {

// A heap on huge pages, a snapshot of the process itself and one of a peer, whose id begins alike.
constexpr const char* smaps = R"(7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Rss:                4096 kB
AnonHugePages:      2048 kB
ShmemPmdMapped:        0 kB
VmFlags: rd wr mr mw me ac
7f1000000000-7f1000400000 rw-s 00000000 00:01 77                         /memfd:dpwa-snapshot-123 (deleted)
Rss:                4100 kB
Pss:                2050 kB
AnonHugePages:         0 kB
ShmemPmdMapped:     4096 kB
7f2000000000-7f2000400000 r--s 00000000 00:01 78                         /memfd:dpwa-snapshot-1234 (deleted)
Rss:                3000 kB
Shared_Clean:       3000 kB
ShmemPmdMapped:     2048 kB
)";

}  // namespace

TEST_CASE("only snapshots of other processes count as mapped from peers") {
  std::istringstream text(smaps);
  const MappedMemory mapped = parse_mapped_memory(text, 123);
  CHECK(mapped.peers_kib == 3000);
  CHECK(mapped.huge_kib == 2048 + 4096);
}

TEST_CASE("the owner is told by the whole id") {
  std::istringstream text(smaps);
  CHECK(parse_mapped_memory(text, 1234).peers_kib == 4100);
  std::istringstream again(smaps);
  CHECK(parse_mapped_memory(again, 12).peers_kib == 4100 + 3000);
}

TEST_CASE("nothing to read means nothing mapped") {
  std::istringstream text;
  const MappedMemory mapped = parse_mapped_memory(text, 1);
  CHECK(mapped.peers_kib == 0);
  CHECK(mapped.huge_kib == 0);
}

TEST_CASE("a snapshot of this process itself is its own memory") {
  constexpr std::size_t bytes = std::size_t{1} << 20;
  const auto file = dpwa::MemoryFile::create(bytes);
  REQUIRE(file != nullptr);
  std::memset(file->data(), 1, bytes);
  CHECK(mapped_memory().peers_kib == 0);
  CHECK(peak_resident_kib() >= bytes / 1024);
}
