// Loaded before a peer's libraries (LD_PRELOAD), gives its TCP connections reno, which dpwa sets on
// loopback itself: some systems' default, BBR, halves the throughput there.
//   c++ -shared -fPIC -O2 -o reno_sockets.so reno_sockets.cpp -ldl
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>

// Connections that a listening socket accepts take over its setting.
extern "C" int socket(int domain, int type, int protocol) noexcept {
  using Socket = int (*)(int, int, int);
  static const auto next = reinterpret_cast<Socket>(dlsym(RTLD_NEXT, "socket"));
  const int result = next(domain, type, protocol);
  constexpr int kind_bits = 0xf;  // the rest are flags such as SOCK_CLOEXEC
  if (result >= 0 && (domain == AF_INET || domain == AF_INET6) &&
      (type & kind_bits) == SOCK_STREAM) {
    const int error = errno;
    setsockopt(result, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    errno = error;
  }
  return result;
}
