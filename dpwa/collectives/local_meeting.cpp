#include "dpwa/collectives/local_meeting.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "dpwa/ipc/unix_socket.h"
#include "dpwa/net/same_host/offer.h"

namespace dpwa::collectives {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Before the name of the socket: what processes that can meet have in common. Names of abstract
// sockets are those of a network namespace.
std::string common_ground() {
  std::array<char, 64> link{};
  const ssize_t length = ::readlink("/proc/self/ns/net", link.data(), link.size());
  return same_host::boot_id() + "/" + std::string(link.data(), length > 0 ? length : 0) + "/" +
         std::to_string(::geteuid());
}

std::string socket_of(std::string_view invitation) {
  return std::string(invitation.substr(invitation.rfind('/') + 1));
}

// What a process says of itself: "GROUP RANK PROCESSORS".
struct Greeting {
  std::uint64_t group = 0;
  std::size_t rank = 0;
  std::size_t processors = 1;

  std::string text() const {
    return std::to_string(group) + " " + std::to_string(rank) + " " + std::to_string(processors);
  }
  static std::optional<Greeting> parse(const std::string& text) {
    Greeting greeting;
    const char* at = text.data();
    const char* const end = at + text.size();
    const auto take = [&](auto& number) {
      const auto [next, error] = std::from_chars(at, end, number);
      at = next + (next != end && *next == ' ' ? 1 : 0);
      return error == std::errc();
    };
    const bool whole = take(greeting.group) && take(greeting.rank) && take(greeting.processors);
    return whole && at == end ? std::optional(greeting) : std::nullopt;
  }
};

// For a process that has connected to say so.
constexpr auto time_to_greet = std::chrono::seconds(1);

}  // namespace

LocalMeeting::LocalMeeting() {
  const std::string name = same_host::unique_socket_name();
  listener_ = ipc::listen_at(name);
  invitation_ = common_ground() + "/" + name;
}

std::string LocalMeeting::ground_of(const std::string& invitation) {
  return invitation.substr(0, invitation.rfind('/'));
}

// Each sends its memory to those before it and gets theirs in turn. The kernel keeps what is sent
// before the other one comes to accept it, so nobody waits in a circle.
std::vector<std::optional<LocalMeeting::Member>> LocalMeeting::meet(
    std::span<const std::string> invitations, const LentMemory& own, const Terms& terms) {
  const auto gives_up = [&terms] {
    return terms.stop.stop_requested() || SteadyClock::now() >= terms.until;
  };
  const auto self = static_cast<std::size_t>(terms.rank);
  const std::string own_greeting = Greeting{terms.group, self, terms.processors}.text();
  std::vector<ipc::MessageSocket> sockets(invitations.size());
  std::vector<FileDescriptor> files(invitations.size());
  std::vector<std::size_t> processors(invitations.size(), terms.processors);

  for (std::size_t rank = 0; rank < self; ++rank) {
    auto socket = ipc::connect_to(socket_of(invitations[rank]));
    if (!socket) throw std::runtime_error("rank " + std::to_string(rank) + ": " + socket.error());
    sockets[rank] = ipc::MessageSocket(*std::move(socket));
    sockets[rank].send(own_greeting, own.descriptor());
  }
  for (std::size_t missing = invitations.size() - self - 1; missing > 0;) {
    if (gives_up()) throw std::runtime_error("not all ranks have come");
    for (std::size_t rank = 0; rank < sockets.size(); ++rank) {
      if (sockets[rank].is_open() && has_hung_up(sockets[rank].descriptor()))
        throw std::runtime_error("rank " + std::to_string(rank) + " has gone meanwhile");
    }
    if (!ipc::is_readable(listener_.get())) {
      ipc::wait_for_any({listener_.get()}, ipc::look_every);
      continue;
    }
    ipc::MessageSocket socket(ipc::accept_from(listener_.get()));
    FileDescriptor file;
    const auto until = SteadyClock::now() + time_to_greet;
    const auto words =
        socket.receive(&file, [&] { return gives_up() || SteadyClock::now() >= until; });
    const auto said = words ? Greeting::parse(*words) : std::nullopt;
    if (!said || said->group != terms.group) continue;  // of another group, or a stranger
    const std::size_t rank = said->rank;
    if (rank <= self || rank >= invitations.size() || sockets[rank].is_open()) continue;
    if (!socket.send(own_greeting, own.descriptor())) continue;
    sockets[rank] = std::move(socket);
    files[rank] = std::move(file);
    processors[rank] = said->processors;
    --missing;
  }
  ipc::stop_listening(listener_.get());
  for (std::size_t rank = 0; rank < self; ++rank) {
    const auto words = sockets[rank].receive(&files[rank], gives_up);
    const auto said = words ? Greeting::parse(*words) : std::nullopt;
    if (!said || said->group != terms.group || said->rank != rank)
      throw std::runtime_error("rank " + std::to_string(rank) + " does not come to this group");
    processors[rank] = said->processors;
  }

  std::vector<std::optional<Member>> members(invitations.size());
  for (std::size_t rank = 0; rank < invitations.size(); ++rank) {
    if (rank == self) continue;
    auto memory = BorrowedMemory::open(std::move(files[rank]));
    if (!memory) throw std::runtime_error("rank " + std::to_string(rank) + ": " + memory.error());
    members[rank] = Member{*std::move(memory), sockets[rank].release(), processors[rank]};
  }
  return members;
}

}  // namespace dpwa::collectives
