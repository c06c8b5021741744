#include "dpwa/observe/routes.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "dpwa/observe/page_files.h"
#include "dpwa/observe/run_files.h"
#include "test/support/temporary_directory.h"

namespace dpwa {

namespace {

web::Response get(const observe::Routes& routes, const std::string& target,
                  const std::string& authorization = "", const std::string& host = "localhost") {
  const web::Access access{"0123456789abcdef", {}};
  return observe::answer({"GET", target, host, authorization}, access, routes);
}

}  // namespace

TEST_CASE("the page is public, small, and names no other server; what is not there is 404 or 401") {
  const observe::Routes routes = observe::page_routes();
  std::size_t bytes = 0;
  for (const auto& file : observe::page_files()) {
    bytes += file.text.size();
    CAPTURE(file.path);
    CHECK(get(routes, file.path).status == 200);
    CHECK(get(routes, file.path, "", "evil.example").status == 403);
    const std::string path = file.path;
    if (path.starts_with("/uplot/") || path.ends_with(".svg")) continue;
    const bool has_namespace = path == "/format.js";  // of SVG
    CHECK((file.text.find("://") != file.text.npos) == has_namespace);
    CHECK(file.text.find("innerHTML") == file.text.npos);
  }
  CHECK(bytes <= 150'000);
  CHECK(get(routes, "/healthz", "", "dashboard.service").status == 200);
  CHECK(get(routes, "/").type == "text/html; charset=utf-8");
  CHECK(get(routes, "/api/status").status == 401);
  CHECK(get(routes, "/api/status", "Bearer 0123456789abcdef").status == 404);
}

TEST_CASE("a node that was started again has one line, by the clock of the run") {
  const test::TemporaryDirectory directory;
  const auto& folder = directory.path();
  std::ofstream(folder / "w1.metrics.jsonl")
      << R"({"t": 1, "step": 1, "loss": 4, "wall": 101})" << '\n';
  std::ofstream(folder / "w2.metrics.1.jsonl")
      << R"({"t": 2, "step": 1, "loss": 3, "wall": 102})" << '\n';
  std::ofstream(folder / "w2.metrics.2.jsonl")
      << R"({"t": 0.5, "step": 1, "loss": 2, "wall": 110})" << '\n';
  std::ofstream(folder / "w2.metrics.jsonl")
      << R"({"t": 0.5, "step": 1, "loss": 1, "wall": 120})" << '\n'
      << R"({"t": 1.5, "step": 2, "loss": 0, "wall": 121})" << '\n';
  std::ofstream(folder / "w1.result.json") << R"({"lr": 0.1, "model": "cnn", "test_loss": 2})";
  std::ofstream(folder / "cluster.yaml")
      << "nodes: [{name: w1, port: 7001}, {name: w2, port: 7002}]\n"
         "interpolation: {method: constant, value: 0.25}\n";
  const observe::Json run = observe::read_run(folder);
  CHECK(run["nodes"]["w2"]["steps"]["time"] == observe::Json::parse("[2.0, 10.0, 20.0, 21.0]"));
  CHECK(run["nodes"]["w2"]["steps"]["loss"] == observe::Json::parse("[3.0, 2.0, 1.0, 0.0]"));
  CHECK(run["nodes"]["w2"]["made"] == 4);
  CHECK(run["settings"]["lr"] == "0.1");
  CHECK(run["settings"]["model"] == "cnn");
  CHECK(run["settings"]["interpolation.value"] == "0.25");
  CHECK_FALSE(run["settings"].contains("test_loss"));
}

TEST_CASE("runs are read from their folders, with the settings that differ") {
  const test::TemporaryDirectory directory;
  const auto run = [&](const std::string& name, const std::string& blocks) {
    const auto folder = directory.path() / name;
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "cluster.yaml")
        << "nodes: [{name: w1, port: 7001}, {name: w2, port: 7002}]\ngossip: {blocks: " << blocks
        << "}\n";
    std::ofstream(folder / "summary.json") << R"({"model": "mlp", "nodes": [1]})";
    std::ofstream(folder / "w1.metrics.jsonl")
        << R"({"t": 0.5, "step": 1, "loss": 2.5, "clock": 1, "outcome": "mixed", "peer": "w2"})"
        << '\n'
        << R"({"t": 1.0, "step": 2, "loss": null, "clock": 2, "outcome": "timed_out", "peer": "w2"})"
        << '\n'
        << R"({"t": 1.0, "step": 2, "test_accuracy": 0.5, "test_loss": 2})"
        << "\n{\"t\": 1.5, \"st";
    return folder;
  };
  const auto first = run("a", "1");
  const auto second = run("b", "4");
  const observe::Routes routes = observe::run_routes({first, second});
  const auto response = get(routes, "/api/status", "Bearer 0123456789abcdef");
  REQUIRE(response.status == 200);
  const auto runs = observe::Json::parse(response.body);
  CHECK(runs["differing"] == observe::Json::array({"gossip.blocks"}));
  CHECK(runs["runs"][1]["settings"]["gossip.blocks"] == "4");
  CHECK(runs["runs"][0]["summary"] == observe::Json{{"model", "mlp"}});
  const auto& node = runs["runs"][0]["nodes"]["w1"];
  CHECK(node["steps"]["loss"] == observe::Json::parse("[2.5, null]"));
  CHECK(node["steps"]["time"] == observe::Json::parse("[0.5, 1.0]"));
  CHECK(node["evaluations"]["accuracy"] == observe::Json::parse("[0.5]"));
  CHECK(node["peers"]["w2"] == observe::Json::parse("[1, 1]"));
  CHECK_THROWS_WITH_AS(observe::read_run(directory.path()), doctest::Contains("no metrics"),
                       std::runtime_error);
}

}  // namespace dpwa
