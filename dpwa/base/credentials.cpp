#include "dpwa/base/credentials.h"

#include <sys/socket.h>
#include <unistd.h>

namespace dpwa {

bool is_same_user(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 &&
         size == sizeof credentials && credentials.uid == ::geteuid();
}

}  // namespace dpwa
