#include <doctest/doctest.h>

#include "bench/pull/pull_group.h"
#include "bench/pull/pull_report.h"

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
