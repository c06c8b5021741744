#include "dpwa/net/socket_progress.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace dpwa::net {

SocketProgress progress_of(int descriptor) {
  SocketProgress progress;
  tcp_info info{};  // an older kernel fills in less of it
  socklen_t length = sizeof info;
  if (::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
    progress.received = info.tcpi_bytes_received;
    progress.acknowledged = info.tcpi_bytes_acked;
    progress.least_round_trip = std::chrono::microseconds(info.tcpi_min_rtt);
  }
  int outgoing = 0;
  if (::ioctl(descriptor, SIOCOUTQ, &outgoing) == 0 && outgoing > 0)
    progress.outgoing = static_cast<std::size_t>(outgoing);
  return progress;
}

}  // namespace dpwa::net
