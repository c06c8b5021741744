#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "dpwa/collectives/tcp_links.h"
#include "dpwa/security/key_file.h"
#include "dpwa/security/security.h"
#include "test/support/certificates.h"

namespace dpwa::test {

// As one member opens the key file of its cluster.
std::shared_ptr<const Security> opened(const SecretFolder& folder, const Keys& keys);

// The members of a group in one process, each on a thread of its own, connected over loopback.
class TcpMembers {
 public:
  explicit TcpMembers(int size);

  int size() const { return static_cast<int>(texts.size()); }
  // Calls `body` for each with its links, or else `failed` with why there are none; the others then
  // give up too.
  void run(const std::function<void(std::unique_ptr<collectives::TcpLinks>)>& body,
           const std::function<void(int rank, const collectives::GroupBroken&)>& failed = nullptr);

  std::vector<collectives::LinkListener> listeners;
  std::vector<std::string> texts;
  std::vector<collectives::LinkOptions> options;
  std::vector<std::function<void(int)>> on_broken;
  Duration limit;
  std::stop_source stop;
  int dying = -1;  // a rank that ends without a word once it is connected, as if its process did
};

}  // namespace dpwa::test
