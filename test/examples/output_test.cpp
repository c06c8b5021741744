#include <doctest/doctest.h>

#include <string>

#include "test/examples/trainer_process.h"

// What the programs do when their result cannot be written.
namespace dpwa::test {

TEST_CASE_FIXTURE(Trainer, "a program whose result cannot be written ends with 1 and says so") {
  const std::string cluster = (dir / "cluster.yaml").string();
  const std::string checkpoints = (dir / "checkpoints").string();
  const Arguments programs[] = {
      {DPWA_EMBEDDED, cluster, "w1"},
      {DPWA_TRAIN, "--config", cluster, "--name", "w1", "--data", "synthetic", "--steps", "2",
       "--threads", "1", "--quiet", "--checkpoint", checkpoints},
      {DPWA_SVI, "--version"},
      {DPWA_SVI, "--config", cluster, "--name", "w1", "--data", "synthetic", "--steps", "2"},
      {DPWA_CLI, "--help"},
      {DPWA_CLI, "init", "-o", "-"},
      {DPWA_CLI, "config", "check", cluster},
      {DPWA_CLI, "config", "keys"},
      {DPWA_CLI, "config", "nodes", cluster},
      {DPWA_CLI, "completion", "bash"},
      {DPWA_CLI, "status", cluster, "--timeout-ms", "1"},
      {DPWA_CLI, "status", cluster, "--timeout-ms", "1", "--json"},
  };
  for (const Arguments& program : programs) {
    for (const std::string redirected : {">/dev/full", ">&-"}) {
      if (program[0] == DPWA_EMBEDDED && redirected != ">&-") continue;  // it trains to its end
      Arguments all{"/bin/sh", "-c", "exec \"$@\" " + redirected, "sh"};
      all.insert(all.end(), program.begin(), program.end());
      CAPTURE(program[0] + ' ' + program[1] + ' ' + redirected);
      std::filesystem::remove_all(checkpoints);
      CHECK(start(all).wait() == 1);
      CAPTURE(output());
      CHECK(said(": cannot write the result\n"));
    }
  }
}

}  // namespace dpwa::test
