#include <torch/types.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "adapters/adapter.h"
#include "dpwa/log/log.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"
#include "test/support/temporary_directory.h"

// What a program may rely on, whatever back end the cluster file names: it may end without
// finish(), and has the log of the file. Each case runs itself as a process for each back end.
namespace dpwa {
namespace {

using test::backward;
using test::Circle;
using test::momentum_sgd;
using test::Net;
using test::Participant;
using test::run_nodes;

constexpr auto variable = "DPWA_TEST_BACK_END";  // of such a process: which one

struct Training {
  std::unique_ptr<Net> model;
  std::unique_ptr<torch::optim::SGD> optimizer;
  std::unique_ptr<Adapter> adapter;
};

enum class End { return_from_main, exit_in_the_middle, exit_without_destructors };

// Two steps of each node, and no end.
void train(const test::BackEnd& back_end, End end) {
  static std::vector<Training> in_static_storage;
  in_static_storage.resize(back_end.nodes);
  run_nodes(back_end, [&](Participant& node) {
    Training on_the_stack;
    Training& own =
        end == End::exit_without_destructors ? on_the_stack : in_static_storage[node.index];
    own.model = std::make_unique<Net>(node.index);
    own.optimizer = momentum_sgd(*own.model);
    own.adapter = make_adapter(node.config, *own.model);
    own.adapter->start();
    node.wait_for_all();
    Circle circle(node.index, at::kCPU);
    for (int step = 0; step < 2; ++step)
      own.adapter->step(*own.optimizer, backward(*own.optimizer, *own.model, circle));
    node.wait_for_all();
    if (end == End::return_from_main) return;
    if (node.index == 0) std::exit(0);
    node.wait_for_all();  // until the process has ended
  });
}

void check_all(const std::function<void(const test::BackEnd&)>& child,
               const std::string& test_case) {
  if (const char* which = std::getenv(variable))
    return child(test::back_ends().at(std::stoul(which)));
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  // One of each class; the other settings share its destructors.
  const std::set<std::string> names = {"null", "gossip with 2 nodes",
                                       "collective with 3 nodes that may shrink",
                                       "kvstore with 3 nodes"};
  std::size_t found = 0;
  for (std::size_t i = 0; i < test::back_ends().size(); ++i) {
    const test::BackEnd& back_end = test::back_ends()[i];
    if (!names.contains(back_end.name)) continue;
    ++found;
    CAPTURE(back_end.name);
    const std::string command = std::string(variable) + '=' + std::to_string(i) + " '" + program +
                                "' -tc='" + test_case + "'";
    CHECK(std::system(command.c_str()) == 0);
  }
  CHECK(found == names.size());
}

}  // namespace

TEST_CASE("an adapter in a static object needs no finish before main returns") {
  check_all([](const auto& back_end) { train(back_end, End::return_from_main); },
            "an adapter in a static object needs no finish*");
}

TEST_CASE("a program with an adapter in a static object may call exit in the middle") {
  check_all([](const auto& back_end) { train(back_end, End::exit_in_the_middle); },
            "a program with an adapter in a static object may call*");
}

TEST_CASE("a program whose adapter is never destroyed may call exit in the middle") {
  check_all([](const auto& back_end) { train(back_end, End::exit_without_destructors); },
            "a program whose adapter is never destroyed*");
}

TEST_CASE("make_adapter opens the log of the cluster file, and leaves one that is open") {
  check_all(
      [](const test::BackEnd& back_end) {
        const test::TemporaryDirectory directory;
        run_nodes(back_end, [&](Participant& node) {
          const auto make = [&](const std::string& file, const std::string& level) {
            Config config = node.config;
            config.log = {level, (directory.path() / file).string()};
            Net model(node.index);
            make_adapter(config, model);
          };
          make("first.log", "error");
          log(LogLevel::warn, "test", "below the level");
          log(LogLevel::error, "test", "said");
          node.wait_for_all();
          make("second.log", "debug");
        });
        const std::string said = test::read_text(directory.path() / "first.log");
        CHECK(said.find("test: said\n") != std::string::npos);
        CHECK(said.find("below the level") == std::string::npos);
        CHECK_FALSE(std::filesystem::exists(directory.path() / "second.log"));
      },
      "make_adapter opens the log of the cluster file*");
}

}  // namespace dpwa
