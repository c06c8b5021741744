#include "dpwa/attach/attached_gossip.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "dpwa/attach/report_text.h"
#include "dpwa/config/config.h"
#include "test/dpwa/config/scratch_file.h"

namespace dpwa::attach {
namespace {

// Stands in for a node process that takes a trainer, and ends right after that.
void take_one_trainer(int listener) {
  Channel trainer;
  while (!trainer.is_open()) {
    wait_for_any({listener}, look_every);
    trainer = accept_from(listener);
  }
  const std::string yes = nlohmann::json{{"state", to_json(ResumeState{})}}.dump();
  FileDescriptor parameters;
  trainer.receive(&parameters);  // attach
  trainer.send(yes);
  trainer.receive();  // the manifest
  trainer.send(yes);
  trainer.receive();  // start
  trainer.send(yes);
}

}  // namespace

TEST_CASE("of a trainer whose node process has ended, steps fail and leaving does not") {
  const test::ScratchFile file(
      "cluster: attached_gossip_test\n"
      "nodes: [{name: w1, host: 127.0.0.1, port: 45000}]\n"
      "gossip: {daemon: true}\nsecurity: {mode: insecure}\n");
  const Config config = load_config(file.path(), "w1");
  const FileDescriptor listener = listen_at(socket_name(config.cluster, "w1", 45000));
  std::jthread node([&] { take_one_trainer(listener.get()); });
  AttachedGossip gossip(config, Manifest({{.name = "x", .shape = {4}}}), SharedRegion::create(64),
                        1);
  gossip.start();
  node.join();
  SUBCASE("found by a step") {
    CHECK_THROWS_AS(gossip.update_send([] { return 1.0; }), const std::runtime_error&);
  }
  SUBCASE("found by leaving") {}
  CHECK_NOTHROW(gossip.leave());
  CHECK_NOTHROW(gossip.leave());
  CHECK_FALSE(gossip.finish().averaged);
}

}  // namespace dpwa::attach
