#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "dpwa/net/free_ports.h"
#include "test/examples/process.h"
#include "test/examples/temporary_directory.h"
#include "test/support/eventually.h"

using namespace dpwa;
using nlohmann::json;
using Arguments = std::vector<std::string>;

namespace {

constexpr std::chrono::seconds patience(60);  // until a program with LibTorch trains

constexpr const char* one_node = "nodes: [{name: w1, port: 45999}]\nbackend: \"null\"\n";

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::istringstream text(test::read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(json::parse(line));
  return lines;
}

// A cluster of one node without a network, and runs of dpwa-train in it.
struct Trainer {
  test::TemporaryDirectory dir;
  Trainer() { test::write_text(dir / "cluster.yaml", one_node); }

  Arguments command(const std::string& run, const Arguments& more) const {
    Arguments all{DPWA_TRAIN, "--config",  (dir / "cluster.yaml").string(),
                  "--name",   "w1",        "--threads",
                  "1",        "--run-dir", (dir / run).string(),
                  "--data",   "synthetic"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  int train(const std::string& run, const Arguments& more) const {
    return test::Process(command(run, more), dir / "output").wait();
  }
  std::string output() const { return test::read_text(dir / "output"); }
  json result(const std::string& run) const {
    return json::parse(test::read_text(dir / run / "w1.result.json"));
  }
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> losses;
    for (const json& line : lines_of(dir / run / "w1.metrics.jsonl"))
      if (line.contains("loss")) losses.push_back(line.at("loss"));
    return losses;
  }
  bool said(const std::string& text) const { return output().find(text) != std::string::npos; }
};

}  // namespace

TEST_CASE_FIXTURE(Trainer, "a run ends with exit code 0, metrics of every step and a result") {
  REQUIRE_MESSAGE(train("run", {"--steps", "60", "--eval-every", "25"}) == 0, output());
  const auto lines = lines_of(dir / "run/w1.metrics.jsonl");
  std::uint64_t step = 0;
  std::vector<int> evaluated;
  for (const json& line : lines) {
    if (line.contains("test_accuracy"))
      evaluated.push_back(line.at("step"));
    else
      CHECK(line.at("step") == ++step);
  }
  CHECK(step == 60);
  CHECK(evaluated == std::vector<int>{25, 50, 60});
  const json outcome = result("run");
  CHECK(outcome["node"] == "w1");
  CHECK(outcome["dataset"] == "synthetic");
  CHECK(outcome["backend"] == "null");
  CHECK(outcome["steps"] == 60);
  CHECK(outcome["samples"] == 60 * 32);
  CHECK(outcome["clock"].is_number());
  CHECK(outcome["test_accuracy"] > 0.5);
  CHECK(outcome["step_ms_median"] > 0);
  CHECK(outcome["train_seconds"] > 0);
  CHECK(outcome["averaged_model"].is_null());
  CHECK(outcome["interrupted"] == false);
  CHECK(said("w1: finished step 60, 1920 samples; test accuracy "));
}

TEST_CASE_FIXTURE(Trainer,
                  "a run stopped half way and resumed equals an uninterrupted one exactly") {
  // A constant rate: the others depend on the length, which is stated anew on resume.
  const Arguments model{"--model",    "cnn",      "--optimizer", "adam",
                        "--schedule", "constant", "--quiet"};
  const auto with = [&](Arguments more) {
    more.insert(more.end(), model.begin(), model.end());
    return more;
  };
  const std::string checkpoints = (dir / "checkpoints").string();
  REQUIRE(train("straight", with({"--steps", "24"})) == 0);
  REQUIRE(train("parts", with({"--steps", "11", "--checkpoint", checkpoints})) == 0);
  REQUIRE_MESSAGE(
      train("parts", with({"--steps", "24", "--checkpoint", checkpoints, "--resume"})) == 0,
      output());
  CHECK(losses("parts").size() == 24);
  CHECK(losses("parts") == losses("straight"));
  CHECK(result("parts")["test_loss"] == result("straight")["test_loss"]);
  CHECK(result("parts")["steps"] == 24);

  CHECK(train("other", {"--steps", "24", "--checkpoint", checkpoints, "--resume"}) == 2);
  CHECK(said("--resume: the checkpoint has --model \"cnn\", this run \"mlp\"; accepted: the same"));
  CHECK(train("other", with({"--steps", "24", "--checkpoint", checkpoints})) == 2);
  CHECK(said("holds checkpoints of w1; accepted: with --resume, or another directory"));
  CHECK_FALSE(std::filesystem::exists(dir / "other"));
}

TEST_CASE_FIXTURE(Trainer,
                  "SIGTERM and SIGINT end a run after its step with checkpoint and result") {
  for (const int number : {SIGTERM, SIGINT}) {
    const std::string run = "run" + std::to_string(number);
    const std::string checkpoints = (dir / ("checkpoints" + std::to_string(number))).string();
    const Arguments options{"--steps", "100000", "--step-time", "5", "--checkpoint", checkpoints};
    test::Process process(command(run, options), dir / "output");
    const auto metrics = dir / run / "w1.metrics.jsonl";
    REQUIRE(test::eventually([&] { return !test::read_text(metrics).empty(); }, patience));
    process.signal(number);
    CHECK(process.wait() == 128 + number);
    const json outcome = result(run);
    CHECK(outcome["interrupted"] == true);
    const std::uint64_t steps = outcome["steps"];
    CHECK(losses(run).size() == steps);
    CHECK(std::filesystem::exists(std::filesystem::path(checkpoints) /
                                  ("w1." + std::to_string(steps) + ".ckpt")));
    CHECK(train(run, {"--steps", std::to_string(steps + 3), "--checkpoint", checkpoints,
                      "--resume"}) == 0);
    CHECK(losses(run).size() == steps + 3);
  }
}

TEST_CASE_FIXTURE(Trainer, "a second signal ends the process at once") {
  test::Process process(command("run", {"--steps", "10", "--step-time", "60000"}), dir / "output");
  // The metrics file is opened just before training starts.
  const auto metrics = dir / "run/w1.metrics.jsonl";
  REQUIRE(test::eventually([&] { return std::filesystem::exists(metrics); }, patience));
  process.signal(SIGINT);
  REQUIRE(test::eventually([&] { return !process.pending(SIGINT); }));  // two would merge
  process.signal(SIGINT);
  CHECK(process.wait() == 130);
}

TEST_CASE_FIXTURE(Trainer,
                  "a wrong set-up is refused with exit code 2 and one line, nothing written") {
  Arguments arguments;
  std::string expected;
  SUBCASE("option") {
    arguments = {"--model", "vgg"}, expected = "mlp|cnn|resnet18";
  }
  SUBCASE("node") {
    arguments = {"--name", "w9"}, expected = "w9";
  }
  SUBCASE("cluster file") {
    arguments = {"--config", "/none.yaml"}, expected = "/none.yaml";
  }
  SUBCASE("data") {
    arguments = {"--data", "mnist", "--data-dir", "/none"}, expected = "train-images-idx3-ubyte";
  }
  SUBCASE("device") {
    arguments = {"--device", "cuda:99"}, expected = "--device: 'cuda";
  }
  // The last of an option given twice would win; so the one of the fixture goes.
  Arguments all = command("run", {});
  for (std::size_t i = 0; i + 1 < all.size();) {
    if (all[i] == arguments[0])
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i),
                all.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    else
      ++i;
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  CHECK(test::Process(all, dir / "output").wait() == 2);
  INFO(output());
  CHECK(said(expected));
  CHECK(output().find('\n') == output().size() - 1);
  CHECK_FALSE(std::filesystem::exists(dir / "run"));
}

TEST_CASE_FIXTURE(Trainer,
                  "on a full disk training goes on to its end, which says what was not written") {
  const std::string run = (dir / "run").string();
  const Arguments train = command("run", {"--steps", "30", "--checkpoint-every", "10",
                                          "--checkpoint", (dir / "run/checkpoints").string()});
  std::string line;
  for (const std::string& word : train) line += " '" + word + "'";
  // A file system of 64 KiB where that is allowed; else no file may grow beyond 32 KiB.
  const std::string full =
      "mkdir -p '" + run +
      "'; if unshare -rm true 2>/dev/null; then exec unshare -rm sh -c \"mount "
      "-t tmpfs -o size=64k none '" +
      run + "' && exec " + line +
      "\"; fi; trap '' XFSZ; ulimit -f "
      "64; exec" +
      line;
  CHECK(test::Process({"/bin/sh", "-c", full}, dir / "output").wait() == 1);
  INFO(output());
  CHECK(said("no checkpoint written: "));
  CHECK(said("finished step 30"));
}

TEST_CASE_FIXTURE(Trainer,
                  "half a checkpoint of a killed process is removed by the next, not by one that "
                  "is refused under the name") {
  const auto port = std::to_string(net::free_ports(1)[0]);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + port + "}]\n");
  const Arguments endless{"--steps", "1000000",      "--step-time",  "5",
                          "--quiet", "--checkpoint", dir / "points", "--resume"};
  std::filesystem::create_directory(dir / "points");
  test::write_text(dir / "points/w1.6.ckpt.tmp", "half of it");
  test::Process process(command("run", endless), dir / "output");
  REQUIRE(test::eventually([&] { return !test::read_text(dir / "run/w1.metrics.jsonl").empty(); },
                           patience));
  CHECK_FALSE(std::filesystem::exists(dir / "points/w1.6.ckpt.tmp"));

  test::write_text(dir / "points/w1.7.ckpt.tmp", "as if it was being written");
  CHECK(test::Process(command("second", endless), dir / "refused").wait() == 1);
  INFO(test::read_text(dir / "refused"));
  CHECK(std::filesystem::exists(dir / "points/w1.7.ckpt.tmp"));
  process.signal(SIGTERM);
  CHECK(process.wait() == 143);
}

TEST_CASE_FIXTURE(Trainer, "a checkpoint directory that cannot be made costs checkpoints alone") {
  test::write_text(dir / "file", "");
  CHECK(train("run", {"--steps", "5", "--checkpoint", (dir / "file/checkpoints").string()}) == 1);
  INFO(output());
  CHECK(said("no checkpoint written: "));
  CHECK(said("finished step 5"));
  CHECK(result("run")["steps"] == 5);
}

TEST_CASE_FIXTURE(Trainer,
                  "metrics that cannot be written give exit code 1, at the end of training") {
  std::filesystem::create_directories(dir / "run");
  std::filesystem::create_symlink("/dev/full", dir / "run/w1.metrics.jsonl");
  CHECK(train("run", {"--steps", "5"}) == 1);
  INFO(output());
  CHECK(said("w1.metrics.jsonl: No space left on device; its lines wait in memory"));
  CHECK(said("finished step 5"));
  CHECK(said("6 lines could not be written"));
  CHECK(result("run")["steps"] == 5);
}

TEST_CASE_FIXTURE(Trainer, "a result that cannot be written is said once") {
  std::filesystem::create_directories(dir / "run/w1.result.json/in the way");
  CHECK(train("run", {"--steps", "5"}) == 1);
  INFO(output());
  CHECK(said("finished step 5"));
  const std::string text = output(), refused = "no result written: ";
  REQUIRE(said(refused));
  CHECK(text.find(refused) == text.rfind(refused));
}

TEST_CASE_FIXTURE(Trainer, "SIGHUP reads the cluster file again, and a wrong one changes nothing") {
  const auto ports = net::free_ports(2);
  const std::string before = std::to_string(ports[0]);
  const std::string after = std::to_string(ports[1]);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + before + "}]\n");
  const Arguments endless{"--steps", "1000000", "--step-time", "5"};
  test::Process process(command("run", endless), dir / "output");
  const auto metrics = dir / "run/w1.metrics.jsonl";
  REQUIRE(test::eventually([&] { return !test::read_text(metrics).empty(); }, patience));
  test::write_text(dir / "cluster.yaml",
                   "nodes: [{name: w1, port: " + after + "}]\ngossip: {timeout_ms: 800}\n");
  process.signal(SIGHUP);
  CHECK(test::eventually([&] { return said("reloaded: gossip.timeout_ms: 500 -> 800"); }));
  CHECK(test::eventually([&] {
    return said("needs a restart, not taken over: nodes[w1].port: " + before + " -> " + after);
  }));
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: none}]\n");
  process.signal(SIGHUP);
  CHECK(test::eventually([&] { return said("not reloaded: "); }));
  process.signal(SIGTERM);
  CHECK(process.wait() == 143);
}

TEST_CASE_FIXTURE(Trainer, "training that diverges ends with exit code 1 and says so") {
  CHECK(train("run", {"--steps", "200", "--lr", "1e30", "--quiet"}) == 1);
  INFO(output());
  CHECK(said("dpwa-train: the loss is not finite after step "));
  CHECK(output().find('\n') == output().size() - 1);
}

TEST_CASE_FIXTURE(Trainer, "without a run directory the result goes to stdout") {
  Arguments all = command("run", {"--steps", "3", "--quiet"});
  const auto run_dir = std::find(all.begin(), all.end(), "--run-dir");
  all.erase(run_dir, run_dir + 2);
  CHECK(test::Process(all, dir / "output").wait() == 0);
  CHECK(json::parse(output())["steps"] == 3);
}

TEST_CASE_FIXTURE(Trainer, "the embedding example trains to the end") {
  CHECK(test::Process({DPWA_EMBEDDED, (dir / "cluster.yaml").string(), "w1"}, dir / "output")
            .wait() == 0);
  INFO(output());
  const auto at = output().find("accuracy ");
  REQUIRE(at != std::string::npos);
  CHECK(std::stod(output().substr(at + 9)) > 0.9);
}

TEST_CASE_FIXTURE(Trainer, "training attached to a node process is killed, and resumed there") {
  const auto port = std::to_string(net::free_ports(1)[0]);
  test::write_text(dir / "cluster.yaml",
                   "nodes: [{name: w1, port: " + port + "}]\ngossip: {daemon: true}\n");
  test::Process node(
      {DPWA_CLI, "node", "--config", (dir / "cluster.yaml").string(), "--name", "w1"},
      dir / "node-output");
  {
    test::Process killed(command("run", {"--steps", "1000000", "--step-time", "2"}),
                         dir / "output");
    const auto metrics = dir / "run/w1.metrics.jsonl";
    const auto steps = [&] { return std::ranges::count(test::read_text(metrics), '\n'); };
    REQUIRE(test::eventually([&] { return steps() > 50; }, patience));
    killed.signal(SIGKILL);
    killed.wait();
  }
  REQUIRE_MESSAGE(train("again", {"--steps", "300"}) == 0, output());
  INFO(test::read_text(dir / "node-output"));
  CHECK(test::read_text(dir / "node-output").find("is gone: serving its snapshot") !=
        std::string::npos);
  const json ended = result("again");
  CHECK(ended["clock"] > 340);  // it went on where the killed one was
  CHECK(ended["test_accuracy"] > 0.8);
  node.signal(SIGTERM);
  CHECK(node.wait() == 143);
}
