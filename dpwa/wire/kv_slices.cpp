#include <stdexcept>
#include <string>

#include "dpwa/wire/kv_fields.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {

// KV_INIT    u64 epoch; slice; spec. Payload: the values of the slice, or nothing
void write_fields(Writer& out, const kvstore::Init& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  write(out, message.spec);
}

// KV_PUSH    u64 epoch; slice; u64 step; f64 weight; u8 merge: 1 sum, 2 mean; u8 compression:
//            0 none, 1 fp16, 2 two bits; u8 1: the value is wanted; u32 snapshot; u64 epoch in
//            which its step began; options. Payload: the gradient
void write_fields(Writer& out, const kvstore::Push& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u64(message.step);
  out.f64(message.weight);
  out.u8(static_cast<std::uint8_t>(message.merge));
  out.u8(static_cast<std::uint8_t>(message.compression));
  out.u8(message.wants_value ? 1 : 0);
  out.u32(message.snapshot);
  out.u64(message.begun_in);
  write_options(out, message.optimizer);
}

// KV_PULL    u64 epoch; slice; u64 clock; u64 known version
void write_fields(Writer& out, const kvstore::Pull& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u64(message.clock);
  out.u64(message.known_version);
}

// KV_ANSWER  u64 epoch; slice; u8 kind, 1 to 18; u64 step; u64 version; u32 snapshot;
//            problem: u16 length (at most 1,024) + UTF-8.
//            Payload: the values of the slice, or nothing
void write_fields(Writer& out, const kvstore::Answer& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u8(static_cast<std::uint8_t>(message.kind));
  out.u64(message.step);
  out.u64(message.version);
  out.u32(message.snapshot);
  out.text(message.problem.substr(0, max_reason_bytes), 0, max_reason_bytes, "problem");
}

// KV_FORWARD u64 epoch; slice; u64 version; u64 round; advances; options; f64 scale; u32 snapshot.
//            Payload: the gradient, merged, or nothing
void write_fields(Writer& out, const kvstore::Forward& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u64(message.version);
  out.u64(message.round);
  write(out, message.advances);
  write_options(out, message.optimizer);
  out.f64(message.scale);
  out.u32(message.snapshot);
}

// KV_SYNC    u64 epoch; slice; u64 version; u64 stamp
void write_fields(Writer& out, const kvstore::Sync& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u64(message.version);
  out.u64(message.stamp);
}

// KV_COPY    u64 epoch; slice; spec; u64 version; u64 stamp; u64 round; advances; options;
//            u64 steps of the optimizer; u32 snapshot; u32 bytes of the values.
//            Payload: the values, then the state of the optimizer
void write_fields(Writer& out, const kvstore::Copy& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  write(out, message.spec);
  out.u64(message.version);
  out.u64(message.stamp);
  out.u64(message.round);
  write(out, message.clocks);
  write_options(out, message.optimizer);
  out.u64(message.optimizer_steps);
  out.u32(message.snapshot);
  out.u32(static_cast<std::uint32_t>(message.values ? message.values->size() : 0));
}

// KV_STORED  u64 epoch; slice; u64 version
void write_fields(Writer& out, const kvstore::Stored& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u64(message.version);
}

// KV_WANT    u64 epoch; slice
void write_fields(Writer& out, const kvstore::Want& message) {
  out.u64(message.epoch);
  write(out, message.slice);
}

// KV_STATE   u64 epoch; slice; u8 kind: 1 ask, 2 place, 3 give; options; u64 updates so far.
//            Payload: the state of the optimizer, or nothing
void write_fields(Writer& out, const kvstore::StateMessage& message) {
  out.u64(message.epoch);
  write(out, message.slice);
  out.u8(static_cast<std::uint8_t>(message.kind));
  write_options(out, message.optimizer);
  out.u64(message.steps);
}

kvstore::Message read_slice_message(Reader& in, MessageType type) {
  const std::uint64_t epoch = in.u64();
  const kvstore::SliceId slice = read_slice(in);
  switch (type) {
    case MessageType::kv_init:
      return kvstore::Init{epoch, slice, read_spec(in), {}};
    case MessageType::kv_push: {
      kvstore::Push push;
      push.epoch = epoch;
      push.slice = slice;
      push.step = in.u64();
      push.weight = read_finite(in, "weight");
      push.merge = in.choice(kvstore::Merge::sum, kvstore::Merge::mean, "merge");
      push.compression =
          in.choice(kvstore::Compression::none, kvstore::Compression::two_bit, "compression");
      push.wants_value = read_bool(in, "wish for the value");
      push.snapshot = in.u32();
      push.begun_in = in.u64();
      push.optimizer = read_options(in);
      return push;
    }
    case MessageType::kv_pull: {
      const std::uint64_t clock = in.u64();
      return kvstore::Pull{epoch, slice, clock, in.u64()};
    }
    case MessageType::kv_answer: {
      kvstore::Answer answer;
      answer.epoch = epoch;
      answer.slice = slice;
      answer.kind = in.choice(kvstore::AnswerKind::created, kvstore::AnswerKind::snapshot_begun,
                              "kind of an answer");
      answer.step = in.u64();
      answer.version = in.u64();
      answer.snapshot = in.u32();
      answer.problem = in.text(0, max_reason_bytes, "problem");
      return answer;
    }
    case MessageType::kv_forward: {
      kvstore::Forward forward;
      forward.epoch = epoch;
      forward.slice = slice;
      forward.version = in.u64();
      forward.round = in.u64();
      forward.advances = read_advances(in);
      forward.optimizer = read_options(in);
      forward.scale = read_finite(in, "scale");
      forward.snapshot = in.u32();
      return forward;
    }
    case MessageType::kv_sync: {
      const std::uint64_t version = in.u64();
      return kvstore::Sync{epoch, slice, version, in.u64()};
    }
    case MessageType::kv_copy: {
      kvstore::Copy copy;
      copy.epoch = epoch;
      copy.slice = slice;
      copy.spec = read_spec(in);
      copy.version = in.u64();
      copy.stamp = in.u64();
      copy.round = in.u64();
      copy.clocks = read_advances(in);
      copy.optimizer = read_options(in);
      copy.optimizer_steps = in.u64();
      copy.snapshot = in.u32();
      const std::uint32_t bytes = in.u32();
      in.require(bytes <= max_kv_slice_bytes, Fault::bad_length, "values of a slice are too long");
      if (!in.failed()) copy.values = std::make_shared<kvstore::Bytes>(bytes);
      return copy;
    }
    case MessageType::kv_state: {
      kvstore::StateMessage state;
      state.epoch = epoch;
      state.slice = slice;
      state.kind = in.choice(kvstore::StateMessage::Kind::ask, kvstore::StateMessage::Kind::give,
                             "kind of a message on a state");
      state.optimizer = read_options(in);
      state.steps = in.u64();
      return state;
    }
    case MessageType::kv_stored:
      return kvstore::Stored{epoch, slice, in.u64()};
    default:
      return kvstore::Want{epoch, slice};
  }
}

}  // namespace dpwa::wire
