#include "test/fuzz/memory_client.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/snapshot/manifest.h"
#include "dpwa/snapshot/memory_file.h"
#include "dpwa/wire/messages.h"
#include "test/fuzz/memory_host.h"

namespace dpwa::test {
namespace {

constexpr std::size_t most_files = 8;
constexpr std::size_t page = 4096;
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
constexpr unsigned first_special = 200;
constexpr std::array<std::uint64_t, 16> special = {0xffffffff,
                                                   most,
                                                   most - 3,
                                                   large_bytes,
                                                   large_bytes - 1,
                                                   large_bytes + 4,
                                                   page,
                                                   page - 4,
                                                   page + 1,
                                                   std::uint64_t{1} << 63,
                                                   std::uint64_t{1} << 32,
                                                   std::uint64_t{1} << 31,
                                                   8,
                                                   large_bytes / 2,
                                                   most / 2,
                                                   1};

}  // namespace

unsigned Input::byte() {
  if (rest_.empty()) return 0;
  const auto first = std::to_integer<unsigned>(rest_.front());
  rest_ = rest_.subspan(1);
  return first;
}

std::uint64_t Input::number() {
  const unsigned value = byte();
  return value < first_special ? value : special[(value - first_special) % special.size()];
}

std::span<const std::byte> Input::bytes(std::size_t count) {
  const auto taken = rest_.first(std::min(count, rest_.size()));
  rest_ = rest_.subspan(taken.size());
  return taken;
}

MemoryGuest::~MemoryGuest() {
  for (const Mapped& file : files_) ::munmap(file.data, MemoryFileLayout::file_bytes(file.bytes));
}

void MemoryGuest::send(std::span<const std::byte> frame, int descriptor) {
  if (frame.empty()) return;
  // What does not fit into the socket is lost.
  (void)ipc::Write(frame, descriptor).step(socket_.get());
}

void MemoryGuest::hello(unsigned name, unsigned incarnation) {
  wire::Hello hello;
  hello.capabilities = wire::capability(Codec::raw);
  hello.cluster = name % 4 == 3 ? "other" : "test";
  hello.node = name % 4 == 1 ? "w2" : name % 4 == 2 ? "w9" : "w1";
  hello.incarnation = incarnation % 8;
  hello.fingerprint = Manifest{}.fingerprint();
  send(wire::encode(hello, 1));
}

void MemoryGuest::share(std::uint32_t number, std::uint64_t bytes, unsigned kind) {
  const auto frame = wire::encode(wire::Share{number, bytes}, 0);
  FileDescriptor file;
  switch (kind % 6) {
    case 0:
      file = memory_file(page, true);
      break;
    case 1:
      file = memory_file(large_bytes, true);
      break;
    case 2:
      file = memory_file(page, false);
      break;
    case 3:
      file = memory_file(bytes % large_bytes, true);
      break;
    case 4:
      return send(frame, socket_.get());
    default:
      break;
  }
  send(frame, file.get());
}

FileDescriptor MemoryGuest::memory_file(std::size_t bytes, bool sealed) {
  if (files_.size() >= most_files) return {};
  FileDescriptor file(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const std::size_t all = MemoryFileLayout::file_bytes(bytes);
  if (!file.valid() || ::ftruncate(file.get(), static_cast<off_t>(all)) != 0) return {};
  if (sealed && ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return {};
  void* data = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) return {};
  files_.push_back({static_cast<std::byte*>(data), bytes});
  return file;
}

void MemoryGuest::write(unsigned file, unsigned value, std::uint64_t generation) {
  if (files_.empty()) return;
  constexpr std::array<float, 8> values = {0,
                                           1,
                                           -1,
                                           std::numeric_limits<float>::quiet_NaN(),
                                           std::numeric_limits<float>::infinity(),
                                           3e38F,
                                           -3e38F,
                                           1e-40F};
  const Mapped& target = files_[file % files_.size()];
  const float number = values[value % values.size()];
  for (std::size_t at = 0; at + sizeof number <= target.bytes; at += sizeof number)
    std::memcpy(target.data + at, &number, sizeof number);
  std::memcpy(target.data + MemoryFileLayout::generation_offset(target.bytes), &generation,
              sizeof generation);
}

void MemoryGuest::drain() {
  std::array<std::byte, 4096> bytes;
  while (::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
}

}  // namespace dpwa::test
