#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/kvstore/shard_engine.h"
#include "test/dpwa/kvstore/doubles.h"

namespace dpwa::kvstore::testing {

inline const MemberId server_of_shard{"s1", 1};

// Two keys of one server, and w1, which takes part since epoch 7.
struct Shard {
  explicit Shard(const ShardRules& rules = rules_of(KvstoreType::dist_sync)) : engine(rules, "s1") {
    const MemberId first{"w1", 1};
    install(7, {{first, 0, 7}});
    for (const int key : {1, 2}) init(first, key);
  }
  void install(std::uint64_t number, std::vector<WorkerEntry> workers) {
    engine.install({number, {{server_of_shard, ServerState::up}}, std::move(workers)}, now);
  }
  // The answers by tag.
  std::map<std::uint64_t, Answer> answers() {
    std::map<std::uint64_t, Answer> all;
    for (Outgoing& each : engine.take()) all[each.tag] = std::get<Answer>(std::move(each.message));
    return all;
  }
  std::map<std::uint64_t, Answer> init(const MemberId& worker, int key, std::uint64_t tag = 1) {
    const Init message{engine.epoch().number, {Key(key), 0}, {DType::float64, {1}}, bytes_of({0})};
    engine.receive(worker, tag, message, now);
    return answers();
  }
  std::uint64_t round(int key) const { return engine.view({Key(key), 0})->round; }
  void push(const MemberId& worker, int key, std::uint64_t step, std::uint64_t begun_in) {
    Push push;
    push.epoch = engine.epoch().number;
    push.slice = {Key(key), 0};
    push.step = step;
    push.begun_in = begun_in;
    const auto optimizer = encode(default_options(OptimizerKind::sgd));
    push.optimizer = {optimizer.begin(), optimizer.end()};
    push.values = bytes_of({1});
    engine.receive(worker, 1, std::move(push), now);
    engine.take();
  }

  TimePoint now{};
  ShardEngine engine;
};

}  // namespace dpwa::kvstore::testing
