#include "dpwa/base/file_descriptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <limits>

namespace dpwa {

namespace {

// Else the kernel gives all users beyond a namespace one number.
bool sees_all_users() {
  std::uint64_t own = 1, outside = 1, count = 0;
  std::ifstream("/proc/self/uid_map") >> own >> outside >> count;
  return own == 0 && outside == 0 && count == std::numeric_limits<std::uint32_t>::max();
}

constexpr uid_t other_users = 65534;

}  // namespace

bool is_same_user(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         size == sizeof credentials && credentials.uid == ::geteuid() &&
         (credentials.uid != other_users || sees_all_users());
}

bool has_hung_up(int socket) {
  constexpr short ended = POLLRDHUP | POLLHUP | POLLERR;
  pollfd one{socket, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) == 1 && (one.revents & ended) != 0;
}

bool reserve_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) != -1) continue;
    // open() takes the lowest free number, which is this one. No O_CLOEXEC: a child inherits the
    // same descriptors.
    const int wrong_way = descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", wrong_way) != descriptor) return false;
  }
  return true;
}

}  // namespace dpwa
