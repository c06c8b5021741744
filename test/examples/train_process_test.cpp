#include <doctest/doctest.h>
#include <signal.h>

#include <cstdlib>

#include "dpwa/net/free_ports.h"
#include "test/examples/trainer_process.h"
#include "test/support/eventually.h"

using namespace dpwa;
using namespace dpwa::test;

TEST_CASE_FIXTURE(Trainer, "a run ends with exit code 0, metrics of every step and a result") {
  const std::string model = (dir / "models/m.safetensors").string();
  REQUIRE_MESSAGE(train("run", {"--steps", "60", "--eval-every", "25", "--save", model}) == 0,
                  output());
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
  CHECK(said("training on 12000 of 12000 samples: shard 1 of 1 (iid)"));
  CHECK(said("w1: finished step 60, 1920 samples; test accuracy "));
  CHECK(said("; own model in " + model + "\n"));
  CHECK(test::read_text(model).size() > 101'770 * sizeof(float));
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
  REQUIRE(train("straight", with({"--steps", "24", "--eval-every", "12"})) == 0);
  REQUIRE(train("parts", with({"--steps", "11", "--checkpoint", checkpoints})) == 0);
  REQUIRE_MESSAGE(
      train("parts", with({"--steps", "24", "--checkpoint", checkpoints, "--resume"})) == 0,
      output());
  CHECK(std::ranges::count_if(lines_of(dir / "straight/w1.metrics.jsonl"), [](const json& line) {
          return line.contains("test_accuracy");
        }) == 2);  // the evaluation of the last step is told once
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

TEST_CASE_FIXTURE(Trainer, "--resume among checkpoints of other nodes alone says whose they are") {
  std::filesystem::create_directory(dir / "points");
  test::write_text(dir / "points/s1.6.ckpt", "whatever it holds");
  test::write_text(dir / "points/s1.9.ckpt", "whatever it holds");
  test::write_text(dir / "points/a.b.12.ckpt", "whatever it holds");
  test::write_text(dir / "points/s3.x.ckpt", "no checkpoint");
  const std::string points = (dir / "points").string();
  REQUIRE(train("run", {"--steps", "3", "--resume", "--checkpoint", points}) == 0);
  CHECK(said(points + " holds checkpoints of a.b, s1, none of w1: starting from the beginning"));
  CHECK_FALSE(said("no checkpoint in"));
}

TEST_CASE_FIXTURE(Trainer,
                  "a wrong set-up is refused with exit code 2 and one line, nothing written") {
  Arguments arguments;
  std::string expected;
  SUBCASE("no data directory") {
    ::unsetenv("DPWA_DATA_DIR");
    arguments = {"--data", "mnist"}, expected = "--data-dir: not given; accepted: the directory";
  }
  SUBCASE("node before the data") {
    ::unsetenv("DPWA_DATA_DIR");
    arguments = {"--data", "mnist", "--name", "w9"}, expected = "'w9'";
  }
  SUBCASE("back end before the data") {
    test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: 24999}]\nbackend: kvstore\n");
    arguments = {"--data", "mnist", "--data-dir", "/none"};
    expected = "cluster.yaml: kvstore.servers: missing";
  }
  SUBCASE("checkpoints of another run before the data") {
    std::filesystem::create_directory(dir / "points");
    test::write_text(dir / "points/w1.6.ckpt", "whatever it holds");
    arguments = {"--data", "mnist",        "--data-dir",
                 "/none",  "--checkpoint", (dir / "points").string()};
    expected = "holds checkpoints of w1; accepted: with --resume, or another directory";
  }
  SUBCASE("a log that cannot be opened") {
    test::write_text(dir / "cluster.yaml",
                     std::string(one_node) + "log: {file: /dev/null/w1.log}\n");
    expected = "cluster.yaml:3: log.file: ";
  }
  SUBCASE("device") {
    arguments = {"--device", "cuda:99"}, expected = "--device: 'cuda";
  }
  // The last of an option given twice would win; so the one of the fixture goes.
  Arguments all = command("run", {});
  for (std::size_t i = 0; i + 1 < all.size();) {
    if (std::ranges::find(arguments, all[i]) != arguments.end() && all[i].starts_with("--"))
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i),
                all.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    else
      ++i;
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  CHECK(start(all).wait() == 2);
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
      run + "' && exec " + line + "\"; fi; ulimit -f 64; exec" + line;
  CHECK(start({"/bin/sh", "-c", full}).wait() == 1);
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
  auto process = start(command("run", endless));
  REQUIRE(test::eventually([&] { return !test::read_text(dir / "run/w1.metrics.jsonl").empty(); },
                           until_it_trains));
  CHECK_FALSE(std::filesystem::exists(dir / "points/w1.6.ckpt.tmp"));

  test::write_text(dir / "points/w1.7.ckpt.tmp", "as if it was being written");
  CHECK(start(command("second", endless), "refused").wait() == 1);
  INFO(test::read_text(dir / "refused"));
  CHECK(std::filesystem::exists(dir / "points/w1.7.ckpt.tmp"));
  process.signal(SIGTERM);
  CHECK(process.wait() == 143);
}

TEST_CASE_FIXTURE(Trainer, "BatchNorm is measured anew on the averaged model, alike on all nodes") {
  const auto ports = net::free_ports(2);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + std::to_string(ports[0]) +
                                             "}, {name: w2, port: " + std::to_string(ports[1]) +
                                             "}]\ngossip: {firewall: {distance: warn}}\n");
  const auto averaged_loss = [&](const std::string& run, const Arguments& more) {
    Arguments all{"--steps", "40", "--model", "cnn", "--split", "dirichlet:0.3", "--quiet"};
    all.insert(all.end(), more.begin(), more.end());
    Arguments second = command(run, all);
    *std::ranges::find(second, "w1") = "w2";
    auto other = start(second, "other-output");
    CHECK(train(run, all) == 0);
    CHECK(other.wait() == 0);
    const json theirs = json::parse(test::read_text(dir / run / "w2.result.json"));
    const json ours = result(run)["averaged_model"];
    REQUIRE(ours["participants"] == 2);
    CHECK(ours["test_loss"] == theirs["averaged_model"]["test_loss"]);
    return ours["test_loss"].get<double>();
  };
  averaged_loss("plain", {});
  CHECK_FALSE(said("BatchNorm"));
  averaged_loss("measured", {"--reestimate-batchnorm"});
  CHECK(said("measured the statistics of 2 BatchNorm layers again on the averaged model"));
}

TEST_CASE_FIXTURE(Trainer, "gossip nodes of other options train, and warn with both values") {
  const auto ports = net::free_ports(2);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + std::to_string(ports[0]) +
                                             "}, {name: w2, port: " + std::to_string(ports[1]) +
                                             "}]\n");
  Arguments second = command("run", {"--steps", "30", "--quiet", "--lr", "0.05", "--seed", "2",
                                     "--split", "dirichlet:1", "--batch-size", "16"});
  *std::ranges::find(second, "w1") = "w2";
  auto other = start(second, "other-output");
  CHECK(train("run", {"--steps", "20", "--quiet"}) == 0);
  CHECK(other.wait() == 0);
  const std::string theirs = test::read_text(dir / "other-output");
  INFO(output() << theirs);
  const std::string end = "; their models are blended all the same";
  for (const char* words :
       {"--lr: 0.03 on 'w1' and 0.05 on 'w2'", "--seed: 1 on 'w1' and 2 on 'w2'",
        "--split: iid on 'w1' and dirichlet:1 on 'w2'"}) {
    CHECK(said(words + end));
  }
  CHECK(theirs.find("--lr: 0.05 on 'w2' and 0.03 on 'w1'" + end) != std::string::npos);
  CHECK_FALSE(said("--batch-size"));
  CHECK_FALSE(said("--model"));
  CHECK(result("run")["averaged_model"]["participants"] == 2);
}

TEST_CASE_FIXTURE(Trainer, "--reestimate-batchnorm that will measure nothing is a warning") {
  CHECK(train("run", {"--steps", "3", "--reestimate-batchnorm"}) == 0);
  CHECK(said("--reestimate-batchnorm: mlp has no BatchNorm: nothing will be measured"));
  CHECK(train("run", {"--steps", "3", "--reestimate-batchnorm", "--model", "cnn"}) == 0);
  CHECK_FALSE(said("has no BatchNorm"));
  CHECK(said("--reestimate-batchnorm: no averaged model, so its BatchNorm is not measured"));
}

TEST_CASE_FIXTURE(Trainer, "SIGHUP reads the cluster file again, and a wrong one changes nothing") {
  const auto ports = net::free_ports(2);
  const std::string before = std::to_string(ports[0]);
  const std::string after = std::to_string(ports[1]);
  test::write_text(dir / "cluster.yaml", "nodes: [{name: w1, port: " + before + "}]\n");
  const Arguments endless{"--steps", "1000000", "--step-time", "5"};
  auto process = start(command("run", endless));
  const auto metrics = dir / "run/w1.metrics.jsonl";
  REQUIRE(test::eventually([&] { return !test::read_text(metrics).empty(); }, until_it_trains));
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
  log_warnings_alone();
  CHECK(train("run", {"--steps", "200", "--lr", "1e30", "--quiet"}) == 1);
  INFO(output());
  CHECK(said("dpwa-train: the loss is not finite after step "));
  CHECK(output().find('\n') == output().size() - 1);
}

TEST_CASE_FIXTURE(Trainer, "without a run directory the result goes to stdout") {
  log_warnings_alone();  // output() has stderr too
  Arguments all = command("run", {"--steps", "3", "--quiet"});
  const auto run_dir = std::find(all.begin(), all.end(), "--run-dir");
  all.erase(run_dir, run_dir + 2);
  CHECK(start(all).wait() == 0);
  CHECK(json::parse(output())["steps"] == 3);
}

TEST_CASE_FIXTURE(Trainer, "the embedding example trains to the end") {
  CHECK(start({DPWA_EMBEDDED, (dir / "cluster.yaml").string(), "w1"}).wait() == 0);
  INFO(output());
  const auto at = output().find("accuracy ");
  REQUIRE(at != std::string::npos);
  // Its weights and data differ each time: .89 to .99. A model that has learned nothing has .5.
  CHECK(std::stod(output().substr(at + 9)) > 0.75);
}

TEST_CASE_FIXTURE(Trainer, "training attached to a node process is killed, and resumed there") {
  const auto port = std::to_string(net::free_ports(1)[0]);
  test::write_text(dir / "cluster.yaml",
                   "nodes: [{name: w1, port: " + port + "}]\ngossip: {daemon: true}\n");
  auto node = start({DPWA_CLI, "node", "--config", (dir / "cluster.yaml").string(), "--name", "w1"},
                    "node-output");
  {
    auto killed = start(command("run", {"--steps", "1000000", "--step-time", "2"}));
    const auto metrics = dir / "run/w1.metrics.jsonl";
    const auto steps = [&] { return std::ranges::count(test::read_text(metrics), '\n'); };
    REQUIRE(test::eventually([&] { return steps() > 50; }, until_it_trains));
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
