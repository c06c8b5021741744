#include <algorithm>
#include <memory>
#include <utility>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/wire/kv_messages.h"
#include "test/dpwa/wire/samples.h"

namespace dpwa::wire {
namespace {

kvstore::Bytes bytes(std::size_t count) {
  kvstore::Bytes values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::byte>(i + 1);
  return values;
}

kvstore::Bytes options() {
  kvstore::OptimizerOptions adamw = kvstore::default_options(kvstore::OptimizerKind::adamw);
  adamw.weight_decay = 0.25;
  const auto form = kvstore::encode(adamw);
  return {form.begin(), form.end()};
}

kvstore::Epoch epoch() {
  return {0x0102030405060708,
          {{{"s1", 7}, kvstore::ServerState::up},
           {{"s2", 9}, kvstore::ServerState::filling},
           {{"s3", 1}, kvstore::ServerState::down}},
          {{{"w1", 3}, 0}, {{"w2", 0x1112131415161718}, 42}},
          0x0102030405060000,
          {0x2122232425262728, 12},
          {"w0", "w3"},
          {{"w3", 5}}};
}

std::vector<std::byte> frame_of(const kvstore::Message& message, std::uint32_t request_id) {
  KvFrame parts = encode(message, request_id);
  for (const auto& part : parts.payload) {
    parts.head.insert(parts.head.end(), part.begin(), part.end());
  }
  return std::move(parts.head);
}

}  // namespace

std::vector<Sample> kv_samples() {
  const kvstore::SliceId weight{"fc1.weight", 3};
  const kvstore::SliceId number{-5, 0};
  const std::vector<kvstore::Advance> advances = {{{"w1", 3}, 42}, {{"w2", 4}, 43}};

  kvstore::Push push;
  push.epoch = 5;
  push.slice = weight;
  push.step = 41;
  push.weight = 32;
  push.merge = kvstore::Merge::mean;
  push.wants_value = true;
  push.snapshot = 2;
  push.optimizer = options();
  push.compression = kvstore::Compression::two_bit;
  push.values = bytes(8);
  kvstore::Push plain;
  plain.slice = number;

  kvstore::Answer value;
  value.epoch = 5;
  value.slice = weight;
  value.kind = kvstore::AnswerKind::value;
  value.step = 42;
  value.version = 43;
  value.snapshot = 2;
  value.values = std::make_shared<kvstore::Bytes>(bytes(12));
  kvstore::Answer refused;
  refused.slice = number;
  refused.kind = kvstore::AnswerKind::unknown_key;
  refused.problem = "key -5, worker w1: no such key was initialised";

  kvstore::Answer taken;
  taken.kind = kvstore::AnswerKind::name_taken;
  taken.problem = "another process takes part as worker 'w1'";
  kvstore::Answer begun;
  begun.epoch = 5;
  begun.kind = kvstore::AnswerKind::snapshot_begun;
  begun.snapshot = 7;
  kvstore::Answer over;
  over.kind = kvstore::AnswerKind::run_over;
  over.step = 9;
  over.version = 3;
  over.problem = "server 's1' was started again";

  kvstore::Push push_mapped = plain;
  push_mapped.place = {3, 0x0102030405, 4'000'000, 6};
  kvstore::Answer answer_mapped = value;
  answer_mapped.values = nullptr;
  answer_mapped.place = {0, 1 << 20, 12, 77};

  kvstore::Forward forward;
  forward.epoch = 5;
  forward.slice = weight;
  forward.version = 43;
  forward.round = 42;
  forward.advances = advances;
  forward.optimizer = options();
  forward.scale = 0.125;
  forward.snapshot = 2;
  forward.gradient = bytes(16);

  kvstore::Copy copy;
  copy.epoch = 5;
  copy.slice = weight;
  copy.spec = {DType::bfloat16, {128, 784}};
  copy.version = 43;
  copy.stamp = 4;
  copy.round = 42;
  copy.clocks = advances;
  copy.values = std::make_shared<kvstore::Bytes>(bytes(6));
  copy.optimizer = options();
  copy.optimizer_steps = 40;
  copy.snapshot = 2;
  copy.optimizer_state = bytes(24);

  kvstore::Beat own_steps{5, 42, false, true, 12345, 6, {}};
  own_steps.own_steps = true;
  own_steps.settings = {{"kvstore.type", "dist_sync"}, {"kvstore.update", "server"}};
  kvstore::Beat at_end{5, 42, true, false, 12345, 6, {}};
  at_end.at_end = true;
  kvstore::Beat active{5, 42, false, true, 12345, 6, {}};
  active.active = active.own_steps = true;
  active.past_epoch = 4;
  kvstore::Beat hears;
  hears.epoch = 5;
  hears.hears = {{"s2", 7}, {"w1", 8}};
  kvstore::Beat start;
  start.stock = {true, true, {{7, 3}, {8, 4}}, kvstore::SnapshotId{8, 4}};

  using Kind = kvstore::StateMessage::Kind;
  const std::vector<std::pair<std::string, kvstore::Message>> messages = {
      {"kv_init", kvstore::Init{5, weight, {DType::float32, {2, 2}}, bytes(16)}},
      {"kv_init_scalar", kvstore::Init{5, number, {DType::float64, {}}, {}}},
      {"kv_push", push},
      {"kv_push_empty", plain},
      {"kv_pull", kvstore::Pull{5, weight, 42, kvstore::any_version}},
      {"kv_answer_value", value},
      {"kv_answer_refused", refused},
      {"kv_answer_name_taken", taken},
      {"kv_answer_snapshot_begun", begun},
      {"kv_answer_run_over", over},
      {"kv_beat_active", active},
      {"kv_forward", forward},
      {"kv_sync", kvstore::Sync{5, number, 43, 4}},
      {"kv_copy", copy},
      {"kv_stored", kvstore::Stored{5, weight, 43}},
      {"kv_want", kvstore::Want{5, number}},
      {"kv_beat", kvstore::Beat{5, 42, true, true, 12345, 6, {1, 2}, 5, 6, 77}},
      {"kv_beat_at_end", at_end},
      {"kv_beat_at_start", start},
      {"kv_beat_hears", hears},
      {"kv_ballot", kvstore::Ballot{5, 0x10001}},
      {"kv_promise", kvstore::Promise{5, 0x10001, true, 0x10000, epoch()}},
      {"kv_promise_refused", kvstore::Promise{5, 0x20001, false, 0, {}}},
      {"kv_proposal", kvstore::Proposal{5, 0x10001, epoch()}},
      {"kv_vote", kvstore::Vote{5, 0x10001}},
      {"kv_epoch", kvstore::EpochNews{epoch()}},
      {"kv_ask_epoch", kvstore::AskEpoch{}},
      {"kv_beat_own_steps", own_steps},
      {"kv_state_ask", kvstore::StateMessage{5, weight, Kind::ask, {}, 0, {}}},
      {"kv_state_place", kvstore::StateMessage{5, number, Kind::place, options(), 40, bytes(24)}},
      {"kv_state_give", kvstore::StateMessage{5, weight, Kind::give, options(), 40, bytes(24)}},
      {"kv_barrier", kvstore::Barrier{5, 3, true}},
      {"kv_push_mapped", push_mapped},
      {"kv_answer_mapped", answer_mapped}};
  std::vector<Sample> all;
  for (const auto& [name, message] : messages) all.push_back({name, frame_of(message, request_id)});
  return all;
}

std::vector<TypeBound> kv_bounds() {
  std::vector<TypeBound> bounds;
  for (auto type = static_cast<unsigned>(first_kv_type);
       type <= static_cast<unsigned>(last_kv_type); ++type) {
    const auto kv_type = static_cast<MessageType>(type);
    bounds.push_back({kv_type, max_kv_body_bytes(kv_type)});
  }
  bounds.push_back({MessageType::kv_read, kv_read_bytes});
  return bounds;
}

Decoded<std::vector<std::byte>> transcode_kv(MessageType type, std::uint32_t request_id,
                                             std::span<const std::byte> body) {
  const auto message = decode_kv(type, body);
  if (!message) return message.error();
  return frame_of(*message, request_id);
}

}  // namespace dpwa::wire
