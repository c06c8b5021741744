#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dpwa/kvstore/messages.h"
#include "dpwa/wire/fields.h"
#include "dpwa/wire/kv_messages.h"

namespace dpwa::wire {

// Parts that several messages of the store have.

//   slice    u8 kind of the key: 0 number, 1 text; the number as i64, or the text as u16 length
//            (1 to 255) + UTF-8; u32 index of the slice
void write(Writer& out, const kvstore::SliceId& slice);
kvstore::SliceId read_slice(Reader& in);

//   spec     u8 dtype: 1 float32, 2 float64, 3 float16, 4 bfloat16; u8 rank, at most 8; for each
//            dimension a u64
void write(Writer& out, const kvstore::ValueSpec& spec);
kvstore::ValueSpec read_spec(Reader& in);

//   options  u16 length, 0 or 96; the byte form of the optimizer's options (kvstore/optimizer.h)
void write_options(Writer& out, const kvstore::Bytes& options);
kvstore::Bytes read_options(Reader& in);

//   advances u16 number, at most 4,096; for each: name of the worker (u16 length + UTF-8), u64
//            incarnation, u64 the step that it pushes next
void write(Writer& out, const std::vector<kvstore::Advance>& advances);
std::vector<kvstore::Advance> read_advances(Reader& in);

//   member   name; u64 incarnation
void write(Writer& out, const kvstore::MemberId& member);
kvstore::MemberId read_member(Reader& in);

//   disk     u64 run; u32 number: a snapshot on the disks of the servers
void write(Writer& out, const kvstore::SnapshotId& id);
kvstore::SnapshotId read_snapshot_id(Reader& in);

//   epoch    u64 number; u16 number of servers, at most 256, and for each: name, u64 incarnation,
//            u8 state: 1 down, 2 filling, 3 up; u16 number of workers, at most 4,096, and for each:
//            name, u64 incarnation, u64 first step, u64 since (of a worker with steps of its own
//            for each key: the epoch with which it came; otherwise 0); u64 run; disk: that the run
//            began with; u16 number of workers that have left, at most 4,096, and for each: name;
//            u16 number of workers at their end, at most 4,096, and for each: member
void write(Writer& out, const kvstore::Epoch& epoch);
kvstore::Epoch read_epoch(Reader& in);

bool read_bool(Reader& in, std::string_view what);
double read_finite(Reader& in, std::string_view what);

// The codecs of the messages: fields only.
void write_fields(Writer& out, const kvstore::Init& message);
void write_fields(Writer& out, const kvstore::Push& message);
void write_fields(Writer& out, const kvstore::Pull& message);
void write_fields(Writer& out, const kvstore::Answer& message);
void write_fields(Writer& out, const kvstore::Forward& message);
void write_fields(Writer& out, const kvstore::Sync& message);
void write_fields(Writer& out, const kvstore::Copy& message);
void write_fields(Writer& out, const kvstore::Stored& message);
void write_fields(Writer& out, const kvstore::Want& message);
void write_fields(Writer& out, const kvstore::Beat& message);
void write_fields(Writer& out, const kvstore::Ballot& message);
void write_fields(Writer& out, const kvstore::Promise& message);
void write_fields(Writer& out, const kvstore::Proposal& message);
void write_fields(Writer& out, const kvstore::Vote& message);
void write_fields(Writer& out, const kvstore::EpochNews& message);
void write_fields(Writer& out, const kvstore::AskEpoch& message);
void write_fields(Writer& out, const kvstore::StateMessage& message);
void write_fields(Writer& out, const kvstore::Barrier& message);
// None of these for another type.
kvstore::Message read_slice_message(Reader& in, MessageType type);
kvstore::Message read_member_message(Reader& in, MessageType type);

}  // namespace dpwa::wire
