#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "test/process/train_process.h"
#include "test/support/temporary_directory.h"

// dpwa-train with servers of the store, killed as a whole and started again with --resume: with
// checkpoints of other steps than each other and than the servers' snapshot.
namespace dpwa {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const std::vector<std::string> workers{"w1", "w2"};

std::string settings(const std::string& update, const fs::path& snapshots) {
  return "backend: kvstore\nkvstore: {type: dist_sync, update: " + update +
         ", lost_after_ms: 20s, servers: " + test::server_entries(1) +
         (snapshots.empty() ? ""
                            : ", snapshots: {folder: " + snapshots.string() + ", every_ms: 30}") +
         "}\n";
}

// One life of a run: a server and two workers, in a folder of its own.
class Life {
 public:
  Life(const std::string& update, bool has_snapshots)
      : run_(2, settings(update, has_snapshots ? snapshots() : fs::path())) {
    fs::create_directory(checkpoints());
    fs::create_directory(snapshots());
  }
  void start(std::uint64_t steps, const std::string& step_ms = "0") {
    processes_.emplace("s1", test::start_server(run_.file(), "s1"));
    for (const std::string& name : workers) {
      const test::ClusterRun::Arguments options{"--quiet",
                                                "--optimizer",
                                                "momentum",
                                                "--schedule",
                                                "constant",
                                                "--steps",
                                                std::to_string(steps),
                                                "--step-time",
                                                step_ms,
                                                "--save",
                                                run_.directory() / "{node}.safetensors",
                                                "--checkpoint",
                                                checkpoints(),
                                                "--checkpoint-every",
                                                "10",
                                                "--resume"};
      processes_.emplace(name, test::start_training(run_, name, options));
    }
  }
  // All workers end well at the same step and clock; their one model.
  std::string model(std::uint64_t steps) {
    std::vector<std::string> models;
    for (const std::string& name : workers) {
      const auto code = processes_.at(name).wait(2 * test::run_patience);
      INFO(logs());
      REQUIRE(code == 0);
      const Json result = test::training_result(run_, name);
      CHECK(result["steps"] == steps);
      CHECK(result["clock"] == steps);
      models.push_back(tensors(name));
    }
    CHECK_MESSAGE((models.front() == models.back()), logs());
    return models.front();
  }
  void kill() {
    for (auto& [name, process] : processes_) process.signal(SIGKILL);
    for (auto& [name, process] : processes_) process.wait(test::run_patience);
  }
  std::string logs() const { return run_.logs() + run_.log("s1"); }
  fs::path checkpoints() const { return folder_ / "checkpoints"; }
  fs::path snapshots() const { return folder_ / "snapshots"; }

 private:
  std::string tensors(const std::string& name) const {
    const std::string all = test::read_text(run_.directory() / (name + ".safetensors"));
    REQUIRE(all.size() > 8);
    const auto* size = reinterpret_cast<const unsigned char*>(all.data());
    return all.substr(8 + boost::endian::load_little_u64(size));  // without their header
  }

  test::TemporaryDirectory folder_;
  test::ClusterRun run_;
  std::map<std::string, test::ChildProcess> processes_;
};

struct Numbered {
  fs::path file;  // NAME.NUMBER.ENDING
  std::uint64_t number = 0;
};
// The one with the highest number; 0: there is none.
Numbered newest(const fs::path& folder, std::string_view name, std::string_view ending) {
  Numbered found;
  std::error_code gone;
  for (const auto& each : fs::directory_iterator(folder, gone)) {
    const fs::path& file = each.path();
    if (!file.filename().string().starts_with(name) || file.extension() != ending) continue;
    const std::uint64_t number = std::stoull(file.stem().extension().string().substr(1));
    if (number > found.number) found = {file, number};
  }
  return found;
}

// What a run leaves behind that is killed as a whole: a snapshot of its server, and checkpoints of
// each worker that are older and newer than that.
class Remains {
 public:
  explicit Remains(const std::string& update) : life_(update, update == "server") {
    life_.start(1'000'000, "4");
    for (const std::string& name : workers)
      keep("older", life_.checkpoints(), name + ".", ".ckpt", 10);
    if (update == "server") {
      const auto earlier = newest(life_.snapshots(), "s1.", ".snapshot").number;
      keep("snapshots", life_.snapshots(), "s1.", ".snapshot", earlier + 2);
    }
    std::uint64_t now = 0;
    for (const std::string& name : workers)
      now = std::max(now, newest(life_.checkpoints(), name + ".", ".ckpt").number);
    for (const std::string& name : workers)
      last_ = std::max(last_, keep("newer", life_.checkpoints(), name + ".", ".ckpt", now + 20));
    life_.kill();
  }
  std::uint64_t last() const { return last_; }  // step of all of it
  fs::path of(const std::string& age) const { return kept_ / age; }

 private:
  // Copies the first file with that number or a higher one. Files come whole, and go.
  std::uint64_t keep(const std::string& age, const fs::path& from, const std::string& name,
                     const std::string& ending, std::uint64_t least) {
    std::uint64_t kept = 0;
    fs::create_directory(of(age));
    const bool is_there = test::holds_in_time([&] {
      const Numbered found = newest(from, name, ending);
      std::error_code gone;
      if (found.number < least || !fs::copy_file(found.file, of(age) / found.file.filename(), gone))
        return false;
      kept = found.number;
      return true;
    });
    REQUIRE_MESSAGE(is_there, life_.logs());
    return kept;
  }

  Life life_;
  test::TemporaryDirectory kept_;
  std::uint64_t last_ = 0;
};

// With these checkpoints of the workers, by age; "none".
struct Resumed {
  bool has_snapshot;
  std::string w1;
  std::string w2;
};

void check_resumed(const std::string& update, const std::vector<Resumed>& all) {
  const Remains remains(update);
  const std::uint64_t steps = remains.last() + 20;
  Life whole(update, false);
  whole.start(steps);
  const std::string expected = whole.model(steps);
  for (const Resumed& each : all) {
    CAPTURE(each.has_snapshot);
    CAPTURE(each.w1);
    CAPTURE(each.w2);
    Life life(update, each.has_snapshot);
    for (const auto& [name, age] : {std::pair("w1", each.w1), std::pair("w2", each.w2)}) {
      const Numbered found = newest(remains.of(age), std::string(name) + ".", ".ckpt");
      if (found.number != 0) fs::copy_file(found.file, life.checkpoints() / found.file.filename());
    }
    if (each.has_snapshot) fs::copy(remains.of("snapshots"), life.snapshots());
    life.start(steps);
    const std::string model = life.model(steps);
    CHECK_MESSAGE((model == expected), life.logs());
    CHECK(test::has(life.logs(), "starts from snapshot") == each.has_snapshot);
  }
}

}  // namespace

TEST_CASE("a run that was killed resumes as one that was not, whichever checkpoints are left") {
  SUBCASE("update: server") {
    check_resumed("server", {{true, "none", "newer"},
                             {true, "newer", "older"},
                             {true, "older", "none"},
                             {false, "none", "newer"},
                             {false, "older", "newer"},
                             {false, "newer", "older"}});
  }
  SUBCASE("update: worker") {
    check_resumed("worker", {{false, "newer", "newer"},
                             {false, "none", "newer"},
                             {false, "older", "newer"},
                             {false, "newer", "older"},
                             {false, "newer", "none"}});
  }
}

}  // namespace dpwa
