#pragma once

#include <string>

#include "dpwa/base/file_descriptor.h"
#include "dpwa/collectives/link_greeting.h"

namespace dpwa::collectives {

// A port at which a member of a group that is to be formed waits for the others, and a new token.
// From here on callers queue up in the kernel; connect_links() answers them. Movable.
class LinkListener {
 public:
  // At `address`, the host name or address by which the other members reach this one. Throws
  // std::system_error that names it.
  explicit LinkListener(const std::string& address);

  const MemberAddress& address() const { return address_; }
  // For the other members, to be told by means that strangers do not see.
  std::string text() const { return address_.text(); }

  bool is_ipv6() const { return is_ipv6_; }
  FileDescriptor take() { return std::move(socket_); }

 private:
  MemberAddress address_;
  bool is_ipv6_ = false;
  FileDescriptor socket_;
};

}  // namespace dpwa::collectives
