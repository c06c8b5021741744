#include "dpwa/wire/kv_fields.h"

#include <cmath>
#include <stdexcept>

#include "dpwa/kvstore/optimizer.h"
#include "dpwa/wire/messages.h"

namespace dpwa::wire {
namespace {

void require_count(std::size_t count, std::size_t most, const char* what) {
  if (count > most) {
    throw std::invalid_argument(std::to_string(count) + " " + what +
                                ", accepted: " + std::to_string(most));
  }
}

}  // namespace

void write(Writer& out, const kvstore::MemberId& member) {
  out.text(member.name, 1, max_name_bytes, "name of a member");
  out.u64(member.incarnation);
}

kvstore::MemberId read_member(Reader& in) {
  kvstore::MemberId member;
  member.name = in.text(1, max_name_bytes, "name of a member");
  member.incarnation = in.u64();
  return member;
}

void write(Writer& out, const kvstore::SliceId& slice) {
  out.u8(slice.key.is_number() ? 0 : 1);
  if (slice.key.is_number()) {
    out.i64(slice.key.number());
  } else {
    out.text(slice.key.name(), 1, kvstore::max_key_bytes, "key");
  }
  out.u32(slice.index);
}

kvstore::SliceId read_slice(Reader& in) {
  kvstore::SliceId slice;
  if (read_bool(in, "kind of a key")) {
    slice.key = kvstore::Key(in.text(1, kvstore::max_key_bytes, "key"));
  } else {
    slice.key = kvstore::Key(in.i64());
  }
  slice.index = in.u32();
  return slice;
}

void write(Writer& out, const kvstore::ValueSpec& spec) {
  if (const auto problem = spec_problem(spec)) throw std::invalid_argument("value " + *problem);
  out.u8(static_cast<std::uint8_t>(spec.dtype));
  out.u8(static_cast<std::uint8_t>(spec.shape.size()));
  for (const std::uint64_t dimension : spec.shape) out.u64(dimension);
}

kvstore::ValueSpec read_spec(Reader& in) {
  kvstore::ValueSpec spec;
  spec.dtype = in.choice(DType::float32, DType::bfloat16, "dtype of a value");
  const std::size_t rank = in.u8();
  in.require(rank <= max_rank, Fault::bad_value, "a value has too many dimensions");
  for (std::size_t i = 0; i < rank && !in.failed(); ++i) spec.shape.push_back(in.u64());
  if (in.failed()) return spec;
  if (const auto problem = spec_problem(spec)) in.fail(Fault::bad_value, "value " + *problem);
  return spec;
}

void write_options(Writer& out, const kvstore::Bytes& options) {
  if (!options.empty() && options.size() != kvstore::options_bytes) {
    throw std::invalid_argument("options of an optimizer have 0 or 96 bytes");
  }
  out.u16(static_cast<std::uint16_t>(options.size()));
  out.bytes({reinterpret_cast<const std::uint8_t*>(options.data()), options.size()});
}

// Options of an optimizer that this version lacks pass, for the server to name them.
kvstore::Bytes read_options(Reader& in) {
  const std::size_t size = in.u16();
  in.require(size == 0 || size == kvstore::options_bytes, Fault::bad_value,
             "options of an optimizer have 0 or 96 bytes");
  if (in.failed()) return {};
  kvstore::Bytes options(size);
  in.bytes({reinterpret_cast<std::uint8_t*>(options.data()), size});
  return options;
}

void write(Writer& out, const std::vector<kvstore::Advance>& advances) {
  require_count(advances.size(), max_kv_workers, "workers");
  out.u16(static_cast<std::uint16_t>(advances.size()));
  for (const kvstore::Advance& each : advances) {
    write(out, each.worker);
    out.u64(each.next);
  }
}

std::vector<kvstore::Advance> read_advances(Reader& in) {
  std::vector<kvstore::Advance> advances;
  const std::size_t count = in.u16();
  in.require(count <= max_kv_workers, Fault::bad_value, "too many workers");
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    kvstore::Advance each;
    each.worker = read_member(in);
    each.next = in.u64();
    advances.push_back(std::move(each));
  }
  return advances;
}

void write(Writer& out, const kvstore::SnapshotId& id) {
  out.u64(id.run);
  out.u32(id.number);
}

kvstore::SnapshotId read_snapshot_id(Reader& in) {
  const std::uint64_t run = in.u64();
  return {run, in.u32()};
}

void write(Writer& out, const kvstore::Epoch& epoch) {
  require_count(epoch.servers.size(), max_kv_servers, "servers");
  require_count(epoch.workers.size(), max_kv_workers, "workers");
  out.u64(epoch.number);
  out.u16(static_cast<std::uint16_t>(epoch.servers.size()));
  for (const kvstore::ServerEntry& server : epoch.servers) {
    write(out, server.id);
    out.u8(static_cast<std::uint8_t>(server.state));
  }
  out.u16(static_cast<std::uint16_t>(epoch.workers.size()));
  for (const kvstore::WorkerEntry& worker : epoch.workers) {
    write(out, worker.id);
    out.u64(worker.first_step);
    out.u64(worker.since);
  }
  out.u64(epoch.run);
  write(out, epoch.from);
  require_count(epoch.left.size(), max_kv_workers, "workers that have left");
  out.u16(static_cast<std::uint16_t>(epoch.left.size()));
  for (const std::string& worker : epoch.left) out.text(worker, 1, max_name_bytes, "name");
  require_count(epoch.at_end.size(), max_kv_workers, "workers at their end");
  out.u16(static_cast<std::uint16_t>(epoch.at_end.size()));
  for (const kvstore::MemberId& worker : epoch.at_end) write(out, worker);
}

kvstore::Epoch read_epoch(Reader& in) {
  kvstore::Epoch epoch;
  epoch.number = in.u64();
  const std::size_t servers = in.u16();
  in.require(servers <= max_kv_servers, Fault::bad_value, "too many servers");
  for (std::size_t i = 0; i < servers && !in.failed(); ++i) {
    kvstore::ServerEntry server;
    server.id = read_member(in);
    server.state =
        in.choice(kvstore::ServerState::down, kvstore::ServerState::up, "state of a server");
    epoch.servers.push_back(std::move(server));
  }
  const std::size_t workers = in.u16();
  in.require(workers <= max_kv_workers, Fault::bad_value, "too many workers");
  for (std::size_t i = 0; i < workers && !in.failed(); ++i) {
    kvstore::WorkerEntry worker;
    worker.id = read_member(in);
    worker.first_step = in.u64();
    worker.since = in.u64();
    epoch.workers.push_back(std::move(worker));
  }
  epoch.run = in.u64();
  epoch.from = read_snapshot_id(in);
  const std::size_t left = in.u16();
  in.require(left <= max_kv_workers, Fault::bad_value, "too many workers that have left");
  for (std::size_t i = 0; i < left && !in.failed(); ++i)
    epoch.left.push_back(in.text(1, max_name_bytes, "name"));
  const std::size_t at_end = in.u16();
  in.require(at_end <= max_kv_workers, Fault::bad_value, "too many workers at their end");
  for (std::size_t i = 0; i < at_end && !in.failed(); ++i) epoch.at_end.push_back(read_member(in));
  return epoch;
}

bool read_bool(Reader& in, std::string_view what) {
  const std::uint8_t value = in.u8();
  in.require(value <= 1, Fault::bad_value, std::string(what) + " is neither 0 nor 1");
  return value == 1;
}

double read_finite(Reader& in, std::string_view what) {
  const double value = in.f64();
  in.require(std::isfinite(value) && value >= 0, Fault::bad_value,
             std::string(what) + " is not a finite number from 0 on");
  return value;
}

}  // namespace dpwa::wire
