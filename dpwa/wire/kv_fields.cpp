#include "dpwa/wire/kv_fields.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/wire/kv_messages.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

using kvstore::Message;

template <typename Side>
void not_negative(Side& side, Of<Side, double>& value, std::string_view what) {
  side.field(value);
  if constexpr (reads<Side>)
    if (!std::isfinite(value) || value < 0)
      side.fail(Fault::bad_value, std::string(what) + " is not a finite number from 0 on");
}

}  // namespace

// Parts that several messages have.

//   member   name; u64 incarnation
template <typename Side>
void fields(Side& side, Of<Side, kvstore::MemberId>& member) {
  side.text(member.name, 1, max_name_bytes, "name of a member");
  side.field(member.incarnation);
}

//   slice    u8 kind of the key: 0 number, 1 text; the number as i64, or the text as u16 length
//            (1 to 255) + UTF-8; u32 index of the slice
template <typename Side>
void fields(Side& side, Of<Side, kvstore::SliceId>& slice) {
  bool is_text = !slice.key.is_number();
  side.flag(is_text, "kind of a key");
  if constexpr (reads<Side>) {
    slice.key = is_text ? kvstore::Key(side.text(1, kvstore::max_key_bytes, "key"))
                        : kvstore::Key(side.i64());
  } else if (is_text) {
    side.text(slice.key.name(), 1, kvstore::max_key_bytes, "key");
  } else {
    side.i64(slice.key.number());
  }
  side.field(slice.index);
}

//   spec     u8 dtype: 1 float32, 2 float64, 3 float16, 4 bfloat16; u8 rank, at most 8; for each
//            dimension a u64
template <typename Side>
void fields(Side& side, Of<Side, kvstore::ValueSpec>& spec) {
  if constexpr (!reads<Side>)
    if (const auto problem = spec_problem(spec)) throw std::invalid_argument("value " + *problem);
  side.choice(spec.dtype, DType::float32, DType::bfloat16, "dtype of a value");
  list<std::uint8_t>(side, spec.shape, max_rank, "dimensions of a value",
                     [&](auto& dimension) { side.field(dimension); });
  if constexpr (reads<Side>) {
    if (side.failed()) return;
    if (const auto problem = spec_problem(spec)) side.fail(Fault::bad_value, "value " + *problem);
  }
}

//   options  u16 length, 0 or 96; the byte form of the optimizer's options (kvstore/optimizer.h)
// Options of an optimizer that this version lacks pass, for the server to name them.
template <typename Side>
void options(Side& side, Of<Side, kvstore::Bytes>& bytes) {
  constexpr std::string_view wrong = "options of an optimizer have 0 or 96 bytes";
  auto size = static_cast<std::uint16_t>(bytes.size());
  if constexpr (reads<Side>) {
    side.field(size);
    side.require(size == 0 || size == kvstore::options_bytes, Fault::bad_value, wrong);
    if (side.failed()) return;
    bytes.resize(size);
    side.bytes({reinterpret_cast<std::uint8_t*>(bytes.data()), size});
  } else {
    if (!bytes.empty() && bytes.size() != kvstore::options_bytes)
      throw std::invalid_argument(std::string(wrong));
    side.field(size);
    side.bytes({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
  }
}

//   advances u16 number, at most 4,096; for each: name of the worker (u16 length + UTF-8), u64
//            incarnation, u64 the step that it pushes next
template <typename Side>
void fields(Side& side, Of<Side, std::vector<kvstore::Advance>>& advances) {
  list(side, advances, max_kv_workers, "workers",
       [&](auto& each) { all(side, each.worker, each.next); });
}

//   disk     u64 run; u32 number: a snapshot on the disks of the servers
template <typename Side>
void fields(Side& side, Of<Side, kvstore::SnapshotId>& id) {
  all(side, id.run, id.number);
}

template <typename Side>
void members(Side& side, Of<Side, std::vector<kvstore::MemberId>>& all, std::size_t most,
             std::string_view what) {
  list(side, all, most, what, [&](auto& member) { fields(side, member); });
}

//   epoch    u64 number; u16 number of servers, at most 256, and for each: name, u64 incarnation,
//            u8 state: 1 down, 2 filling, 3 up; u16 number of workers, at most 4,096, and for each:
//            name, u64 incarnation, u64 first step, u64 since (of a worker with steps of its own
//            for each key: the epoch with which it came; otherwise 0); u64 run; disk: that the run
//            began with; u16 number of workers that have left, at most 4,096, and for each: name;
//            u16 number of workers at their end, at most 4,096, and for each: member
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Epoch>& epoch) {
  side.field(epoch.number);
  list(side, epoch.servers, max_kv_servers, "servers", [&](auto& server) {
    fields(side, server.id);
    side.choice(server.state, kvstore::ServerState::down, kvstore::ServerState::up,
                "state of a server");
  });
  list(side, epoch.workers, max_kv_workers, "workers",
       [&](auto& worker) { all(side, worker.id, worker.first_step, worker.since); });
  all(side, epoch.run, epoch.from);
  list(side, epoch.left, max_kv_workers, "workers that have left",
       [&](auto& worker) { side.text(worker, 1, max_name_bytes, "name"); });
  members(side, epoch.at_end, max_kv_workers, "workers at their end");
}

// The messages.

// KV_INIT    u64 epoch; slice; spec. Payload: the values of the slice, or nothing
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Init>& message) {
  all(side, message.epoch, message.slice, message.spec);
}

// KV_PUSH    u64 epoch; slice; u64 step; f64 weight; u8 merge: 1 sum, 2 mean; u8 compression:
//            0 none, 1 fp16, 2 two bits; u8 1: the value is wanted; u32 snapshot; u64 epoch in
//            which its step began; options. Payload: the gradient
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Push>& message) {
  all(side, message.epoch, message.slice, message.step);
  not_negative(side, message.weight, "weight");
  side.choice(message.merge, kvstore::Merge::sum, kvstore::Merge::mean, "merge");
  side.choice(message.compression, kvstore::Compression::none, kvstore::Compression::two_bit,
              "compression");
  side.flag(message.wants_value, "wish for the value");
  all(side, message.snapshot, message.begun_in);
  options(side, message.optimizer);
}

// KV_PULL    u64 epoch; slice; u64 clock; u64 known version
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Pull>& message) {
  all(side, message.epoch, message.slice, message.clock, message.known_version);
}

// KV_ANSWER  u64 epoch; slice; u8 kind, 1 to 18; u64 step; u64 version; u32 snapshot;
//            problem: u16 length (at most 1,024) + UTF-8.
//            Payload: the values of the slice, or nothing
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Answer>& message) {
  all(side, message.epoch, message.slice);
  side.choice(message.kind, kvstore::AnswerKind::created, kvstore::AnswerKind::run_over,
              "kind of an answer");
  all(side, message.step, message.version, message.snapshot);
  std::string problem = message.problem.substr(0, max_reason_bytes);
  side.text(problem, 0, max_reason_bytes, "problem");
  if constexpr (reads<Side>) message.problem = std::move(problem);
}

// KV_FORWARD u64 epoch; slice; u64 version; u64 round; advances; options; f64 scale; u32 snapshot.
//            Payload: the gradient, merged, or nothing
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Forward>& message) {
  all(side, message.epoch, message.slice, message.version, message.round, message.advances);
  options(side, message.optimizer);
  not_negative(side, message.scale, "scale");
  side.field(message.snapshot);
}

// KV_SYNC    u64 epoch; slice; u64 version; u64 stamp
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Sync>& message) {
  all(side, message.epoch, message.slice, message.version, message.stamp);
}

// KV_COPY    u64 epoch; slice; spec; u64 version; u64 stamp; u64 round; advances; options;
//            u64 steps of the optimizer; u32 snapshot; u32 bytes of the values.
//            Payload: the values, then the state of the optimizer
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Copy>& message) {
  all(side, message.epoch, message.slice, message.spec, message.version, message.stamp,
      message.round, message.clocks);
  options(side, message.optimizer);
  all(side, message.optimizer_steps, message.snapshot);
  auto bytes = static_cast<std::uint32_t>(message.values ? message.values->size() : 0);
  side.field(bytes);
  if constexpr (reads<Side>) {
    side.require(bytes <= max_kv_slice_bytes, Fault::bad_length, "values of a slice are too long");
    if (!side.failed()) message.values = std::make_shared<kvstore::Bytes>(bytes);
  }
}

// KV_STORED  u64 epoch; slice; u64 version
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Stored>& message) {
  all(side, message.epoch, message.slice, message.version);
}

// KV_WANT    u64 epoch; slice
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Want>& message) {
  all(side, message.epoch, message.slice);
}

// KV_STATE   u64 epoch; slice; u8 kind: 1 ask, 2 place, 3 give; options; u64 updates so far.
//            Payload: the state of the optimizer, or nothing
template <typename Side>
void fields(Side& side, Of<Side, kvstore::StateMessage>& message) {
  all(side, message.epoch, message.slice);
  side.choice(message.kind, kvstore::StateMessage::Kind::ask, kvstore::StateMessage::Kind::give,
              "kind of a message on a state");
  options(side, message.optimizer);
  side.field(message.steps);
}

// KV_BEAT       u64 epoch; u64 clock; u8 1: waits, 2: active; u8 1: joins, 2: joins with steps of
//               its own for each key, 3: waits at its end; u64 longest step in µs; u32 snapshot;
//               u64 past epoch; u16 number of filled servers, at most 256; for each its place,
//               u16; u32 stored; u32 over; u64 updates; u8 1: the rest is known; u8 1: had a
//               complete one; u8 1: loaded; disk: that was loaded; u16 number held, at most 64;
//               for each: disk; u8 number of settings, at most 16; for each: u16 length + name,
//               u16 length + value; u16 number of processes that it hears, at most 4,352; for
//               each: member
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Stock>& stock) {
  bool loaded = stock.loaded.has_value();
  kvstore::SnapshotId id = stock.loaded.value_or(kvstore::SnapshotId{});
  side.flag(stock.listed, "stock");
  side.flag(stock.had_complete, "complete");
  side.flag(loaded, "loaded");
  fields(side, id);
  if constexpr (reads<Side>) {
    side.require(loaded || id == kvstore::SnapshotId{}, Fault::bad_value,
                 "a snapshot that is not loaded");
    if (loaded) stock.loaded = id;
  }
  list(side, stock.held, kvstore::max_snapshots_held, "snapshots",
       [&](auto& held) { fields(side, held); });
}

template <typename Side>
void fields(Side& side, Of<Side, kvstore::Beat>& beat) {
  std::uint8_t does = beat.waiting ? 1 : beat.active ? 2 : 0;
  std::uint8_t joins = beat.joins ? (beat.own_steps ? 2 : 1) : beat.at_end ? 3 : 0;
  all(side, beat.epoch, beat.clock, does, joins);
  if constexpr (reads<Side>) {
    side.require(does <= 2, Fault::bad_value, "wait is not from 0 to 2");
    side.require(joins <= 3, Fault::bad_value, "join is not from 0 to 3");
    beat.waiting = does == 1;
    beat.active = does == 2;
    beat.joins = joins == 1 || joins == 2;
    beat.own_steps = joins == 2;
    beat.at_end = joins == 3;
  }
  all(side, beat.longest_step_us, beat.snapshot, beat.past_epoch);
  list(side, beat.filled, max_kv_servers, "servers", [&](auto& place) { side.field(place); });
  all(side, beat.stored, beat.over, beat.updates, beat.stock);
  list<std::uint8_t>(side, beat.settings, kvstore::max_shared_settings, "settings",
                     [&](auto& setting) {
                       side.text(setting.first, 1, kvstore::max_setting_bytes, "setting");
                       side.text(setting.second, 0, max_setting_value_bytes, "value of a setting");
                     });
  members(side, beat.hears, max_kv_servers + max_kv_workers, "processes");
}

// KV_BALLOT     u64 base; u64 ballot
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Ballot>& message) {
  all(side, message.base, message.ballot);
}

// KV_PROMISE    u64 base; u64 ballot; u8 1: granted; u64 accepted ballot; epoch
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Promise>& message) {
  all(side, message.base, message.ballot);
  side.flag(message.granted, "promise");
  all(side, message.accepted_ballot, message.accepted);
}

// KV_PROPOSAL   u64 base; u64 ballot; epoch
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Proposal>& message) {
  all(side, message.base, message.ballot, message.epoch);
}

// KV_VOTE       u64 base; u64 ballot
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Vote>& message) {
  all(side, message.base, message.ballot);
}

// KV_EPOCH      epoch
template <typename Side>
void fields(Side& side, Of<Side, kvstore::EpochNews>& message) {
  fields(side, message.epoch);
}

// KV_ASK_EPOCH  nothing
template <typename Side>
void fields(Side&, Of<Side, kvstore::AskEpoch>&) {}

// KV_BARRIER    u64 epoch; u64 number of barriers; u8 1: waits at the last of them
template <typename Side>
void fields(Side& side, Of<Side, kvstore::Barrier>& message) {
  all(side, message.epoch, message.count);
  side.flag(message.waits, "wait");
}

// KV_PUSH_MAPPED and KV_ANSWER_MAPPED: the fields of KV_PUSH and KV_ANSWER, and then
//   u32 memory; u64 offset; u64 bytes; u64 generation of the memory, or number of the answer
template <typename Side>
void fields(Side& side, Of<Side, MemoryPlace>& place) {
  all(side, place.memory, place.offset, place.bytes, place.mark);
}

namespace {

// A message of the type with this number, behind the first one.
template <std::size_t Index = 0>
Message read_from(Reader& in, std::size_t index, bool is_mapped) {
  if constexpr (Index < std::variant_size_v<InOrder>) {
    if (index != Index) return read_from<Index + 1>(in, index, is_mapped);
    std::variant_alternative_t<Index, InOrder> message;
    fields(in, message);
    if constexpr (requires { message.place; })
      if (is_mapped) fields(in, message.place.emplace());
    return message;
  } else {
    return kvstore::AskEpoch{};
  }
}

}  // namespace

void write_fields(Writer& out, const Message& message) {
  std::visit(
      [&out](const auto& content) {
        fields(out, content);
        if constexpr (requires { content.place; })
          if (content.place) fields(out, *content.place);
      },
      message);
}

Message read_fields(Reader& in, MessageType type) {
  MessageType plain = type;  // that whose values are not in shared memory
  if (type == MessageType::kv_push_mapped) plain = MessageType::kv_push;
  if (type == MessageType::kv_answer_mapped) plain = MessageType::kv_answer;
  return read_from(in, static_cast<std::size_t>(plain) - static_cast<std::size_t>(first_kv_type),
                   plain != type);
}

}  // namespace dpwa::wire
