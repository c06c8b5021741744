#include <stdexcept>
#include <utility>

#include "dpwa/wire/messages.h"
#include "dpwa/wire/progress.h"

namespace dpwa::wire {
namespace {

constexpr std::uint8_t descriptor_flag = 2;

// What is wrong with the values; empty when nothing is.
std::string_view fault_of(const Mapped& message) {
  if (const auto fault = progress_fault(message.progress); !fault.empty()) return fault;
  if (message.offset > max_snapshot_bytes || message.length > max_snapshot_bytes - message.offset) {
    return "range of the snapshot ends beyond 2^48 bytes";
  }
  if (message.generation == 0 || message.generation % 2 != 0) {
    return "generation of the memory is not that of a published snapshot";
  }
  if (message.buffer >= max_shared_buffers) return "number of the memory is too high";
  return {};
}

}  // namespace

// MAPPED
//   offset size
//        0   48  progress (progress.h)
//       48    8  offset of the range in the snapshot
//       56    8  length of the range
//       64    8  generation of the memory
//       72    4  number of the memory, below 64
//       76    1  state: 1 joining, 2 ready, 3 finished
//       77    1  flags: bit 0 final, bit 1 a descriptor comes with the message; the others 0
//       78   10  reserved, 0
//       88    4  CRC32C of bytes 0..87
std::vector<std::byte> encode(const Mapped& message, std::uint32_t request_id) {
  if (const auto fault = fault_of(message); !fault.empty()) {
    throw std::invalid_argument(std::string(fault));
  }
  Writer out;
  write_progress(out, message.progress);
  out.u64(message.offset);
  out.u64(message.length);
  out.u64(message.generation);
  out.u32(message.buffer);
  out.u8(static_cast<std::uint8_t>(message.state));
  out.u8(static_cast<std::uint8_t>((message.progress.final ? final_flag : 0) |
                                   (message.with_descriptor ? descriptor_flag : 0)));
  out.reserved(10);
  out.checksum();
  return std::move(out).finish(MessageType::mapped, request_id);
}

Decoded<Mapped> decode_mapped(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Mapped message;
  message.progress = read_progress(in);
  message.offset = in.u64();
  message.length = in.u64();
  message.generation = in.u64();
  message.buffer = in.u32();
  message.state = in.choice(NodeState::joining, NodeState::finished, "node state");
  const std::uint8_t flags = in.u8();
  in.require(flags <= (final_flag | descriptor_flag), Fault::bad_value, "unknown flags in MAPPED");
  message.progress.final = (flags & final_flag) != 0;
  message.with_descriptor = (flags & descriptor_flag) != 0;
  in.reserved(10);
  const std::string_view fault = fault_of(message);
  in.require(fault.empty(), Fault::bad_value, fault);
  return in.finish(std::move(message));
}

// RELEASE
//   offset size
//        0    1  landed: 1 the snapshot was read in full and whole, 0 it was not
//        1    3  reserved, 0
//        4    4  CRC32C of bytes 0..3
std::vector<std::byte> encode(const Release& message, std::uint32_t request_id) {
  Writer out;
  out.u8(message.landed ? 1 : 0);
  out.reserved(3);
  out.checksum();
  return std::move(out).finish(MessageType::release, request_id);
}

Decoded<Release> decode_release(std::span<const std::byte> body) {
  Reader in = Reader::checked(body);
  Release message;
  const std::uint8_t landed = in.u8();
  in.require(landed <= 1, Fault::bad_value, "RELEASE says neither landed nor not");
  message.landed = landed == 1;
  in.reserved(3);
  return in.finish(message);
}

}  // namespace dpwa::wire
