#pragma once

#include <span>
#include <string>
#include <vector>

#include "dpwa/base/file_descriptor.h"
#include "test/support/raw_socket.h"

namespace dpwa::test {

// Unix sockets of the abstract namespace, to be used as RawSocket is. Throw std::runtime_error.
RawSocket connect_unix(const std::string& name);
int listen_unix(const std::string& name);  // a listening descriptor

// Bytes with descriptors beside them.
bool send_descriptors(RawSocket& socket, std::span<const std::byte> bytes,
                      std::span<const int> descriptors);
// Reads once, at most 4096 bytes; `descriptor` is the one that came along, if one did.
std::vector<std::byte> receive_descriptor(RawSocket& socket, FileDescriptor& descriptor);

}  // namespace dpwa::test
