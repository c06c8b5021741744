#include <stdexcept>
#include <utility>

#include "dpwa/wire/kv_fields.h"

namespace dpwa::wire {
namespace {

constexpr std::size_t max_heard = max_kv_servers + max_kv_workers;

}  // namespace

// KV_BEAT       u64 epoch; u64 clock; u8 1: waits, 2: active; u8 1: joins, 2: joins with steps of
//               its own for each key, 3: waits at its end; u64 longest step in µs; u32 snapshot;
//               u64 past epoch; u16 number of filled servers, at most 256; for each its place,
//               u16; u32 stored; u32 over; u64 updates; u8 1: the rest is known; u8 1: had a
//               complete one; u8 1: loaded; disk: that was loaded; u16 number held, at most 64;
//               for each: disk; u8 number of settings, at most 16; for each: u16 length + name,
//               u16 length + value; u16 number of processes that it hears, at most 4,352; for
//               each: member
void write_fields(Writer& out, const kvstore::Beat& message) {
  if (message.filled.size() > max_kv_servers) throw std::invalid_argument("too many servers");
  const kvstore::Stock& stock = message.stock;
  if (stock.held.size() > kvstore::max_snapshots_held) {
    throw std::invalid_argument("too many snapshots");
  }
  out.u64(message.epoch);
  out.u64(message.clock);
  out.u8(message.waiting ? 1 : message.active ? 2 : 0);
  if (message.joins) {
    out.u8(message.own_steps ? 2 : 1);
  } else {
    out.u8(message.at_end ? 3 : 0);
  }
  out.u64(message.longest_step_us);
  out.u32(message.snapshot);
  out.u64(message.past_epoch);
  out.u16(static_cast<std::uint16_t>(message.filled.size()));
  for (const std::uint16_t server : message.filled) out.u16(server);
  out.u32(message.stored);
  out.u32(message.over);
  out.u64(message.updates);
  out.u8(stock.listed ? 1 : 0);
  out.u8(stock.had_complete ? 1 : 0);
  out.u8(stock.loaded ? 1 : 0);
  write(out, stock.loaded.value_or(kvstore::SnapshotId{}));
  out.u16(static_cast<std::uint16_t>(stock.held.size()));
  for (const kvstore::SnapshotId& id : stock.held) write(out, id);
  if (message.settings.size() > kvstore::max_shared_settings) {
    throw std::invalid_argument("too many settings");
  }
  out.u8(static_cast<std::uint8_t>(message.settings.size()));
  for (const auto& [setting, value] : message.settings) {
    out.text(setting, 1, kvstore::max_setting_bytes, "setting");
    out.text(value, 0, max_setting_value_bytes, "value of a setting");
  }
  if (message.hears.size() > max_heard) throw std::invalid_argument("too many processes");
  out.u16(static_cast<std::uint16_t>(message.hears.size()));
  for (const kvstore::MemberId& member : message.hears) write(out, member);
}

// KV_BALLOT     u64 base; u64 ballot
void write_fields(Writer& out, const kvstore::Ballot& message) {
  out.u64(message.base);
  out.u64(message.ballot);
}

// KV_PROMISE    u64 base; u64 ballot; u8 1: granted; u64 accepted ballot; epoch
void write_fields(Writer& out, const kvstore::Promise& message) {
  out.u64(message.base);
  out.u64(message.ballot);
  out.u8(message.granted ? 1 : 0);
  out.u64(message.accepted_ballot);
  write(out, message.accepted);
}

// KV_PROPOSAL   u64 base; u64 ballot; epoch
void write_fields(Writer& out, const kvstore::Proposal& message) {
  out.u64(message.base);
  out.u64(message.ballot);
  write(out, message.epoch);
}

// KV_VOTE       u64 base; u64 ballot
void write_fields(Writer& out, const kvstore::Vote& message) {
  out.u64(message.base);
  out.u64(message.ballot);
}

// KV_EPOCH      epoch
void write_fields(Writer& out, const kvstore::EpochNews& message) {
  write(out, message.epoch);
}

// KV_ASK_EPOCH  nothing
void write_fields(Writer&, const kvstore::AskEpoch&) {}

// KV_BARRIER    u64 epoch; u64 number of barriers; u8 1: waits at the last of them
void write_fields(Writer& out, const kvstore::Barrier& message) {
  out.u64(message.epoch);
  out.u64(message.count);
  out.u8(message.waits ? 1 : 0);
}

namespace {

kvstore::Stock read_stock(Reader& in) {
  kvstore::Stock stock;
  stock.listed = read_bool(in, "stock");
  stock.had_complete = read_bool(in, "complete");
  const bool loaded = read_bool(in, "loaded");
  const kvstore::SnapshotId id = read_snapshot_id(in);
  in.require(loaded || id == kvstore::SnapshotId{}, Fault::bad_value,
             "a snapshot that is not loaded");
  if (loaded) stock.loaded = id;
  const std::size_t held = in.u16();
  in.require(held <= kvstore::max_snapshots_held, Fault::bad_value, "too many snapshots");
  for (std::size_t i = 0; i < held && !in.failed(); ++i) {
    stock.held.push_back(read_snapshot_id(in));
  }
  return stock;
}

kvstore::Beat read_beat(Reader& in) {
  kvstore::Beat beat;
  beat.epoch = in.u64();
  beat.clock = in.u64();
  const std::uint8_t does = in.u8();
  in.require(does <= 2, Fault::bad_value, "wait is not from 0 to 2");
  beat.waiting = does == 1;
  beat.active = does == 2;
  const std::uint8_t joins = in.u8();
  in.require(joins <= 3, Fault::bad_value, "join is not from 0 to 3");
  beat.joins = joins == 1 || joins == 2;
  beat.at_end = joins == 3;
  beat.own_steps = joins == 2;
  beat.longest_step_us = in.u64();
  beat.snapshot = in.u32();
  beat.past_epoch = in.u64();
  const std::size_t filled = in.u16();
  in.require(filled <= max_kv_servers, Fault::bad_value, "too many servers");
  for (std::size_t i = 0; i < filled && !in.failed(); ++i) beat.filled.push_back(in.u16());
  beat.stored = in.u32();
  beat.over = in.u32();
  beat.updates = in.u64();
  beat.stock = read_stock(in);
  const std::size_t settings = in.u8();
  in.require(settings <= kvstore::max_shared_settings, Fault::bad_value, "too many settings");
  for (std::size_t i = 0; i < settings && !in.failed(); ++i) {
    std::string setting = in.text(1, kvstore::max_setting_bytes, "setting");
    std::string value = in.text(0, max_setting_value_bytes, "value of a setting");
    beat.settings.emplace_back(std::move(setting), std::move(value));
  }
  const std::size_t heard = in.u16();
  in.require(heard <= max_heard, Fault::bad_value, "too many processes");
  for (std::size_t i = 0; i < heard && !in.failed(); ++i) beat.hears.push_back(read_member(in));
  return beat;
}

}  // namespace

kvstore::Message read_member_message(Reader& in, MessageType type) {
  if (type == MessageType::kv_epoch) return kvstore::EpochNews{read_epoch(in)};
  if (type == MessageType::kv_ask_epoch) return kvstore::AskEpoch{};
  if (type == MessageType::kv_barrier) {
    const std::uint64_t epoch = in.u64();
    const std::uint64_t count = in.u64();
    return kvstore::Barrier{epoch, count, read_bool(in, "wait")};
  }
  if (type == MessageType::kv_beat) return read_beat(in);
  const std::uint64_t base = in.u64();
  const std::uint64_t ballot = in.u64();
  switch (type) {
    case MessageType::kv_promise: {
      const bool granted = read_bool(in, "promise");
      const std::uint64_t accepted = in.u64();
      return kvstore::Promise{base, ballot, granted, accepted, read_epoch(in)};
    }
    case MessageType::kv_proposal:
      return kvstore::Proposal{base, ballot, read_epoch(in)};
    case MessageType::kv_vote:
      return kvstore::Vote{base, ballot};
    default:
      return kvstore::Ballot{base, ballot};
  }
}

}  // namespace dpwa::wire
