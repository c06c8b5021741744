#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>

#include "dpwa/base/file_descriptor.h"

namespace dpwa::same_host {

// Descriptors that others send along with their bytes may be anything. Closing a TCP socket can
// wait for as long as its linger time, in the thread that closes it: what is not kept ends by
// discard().

// Closes it at once. Unsent data of a TCP socket is lost; so are messages that a Unix socket holds,
// with the descriptors in them.
void discard(FileDescriptor descriptor);

// Ends a Unix socket in both directions and discards what has come and was not received.
void discard_received(int socket);

// recvmsg() that does not wait: bytes into `target`, and all descriptors that came with them. The
// first is put into `kept` in place of what it held, the others are discarded; null: all are.
ssize_t receive(int socket, std::span<std::byte> target, FileDescriptor* kept);

// sendmsg() of `bytes`, with `descriptor` (-1 = none) beside the first of them; it stays open here.
ssize_t send(int socket, std::span<const std::byte> bytes, int descriptor, int flags);

}  // namespace dpwa::same_host
