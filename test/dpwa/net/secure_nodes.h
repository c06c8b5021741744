#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "dpwa/security/key_file.h"
#include "dpwa/security/security.h"
#include "test/dpwa/net/pulling_node.h"
#include "test/dpwa/net/served_node.h"
#include "test/support/certificates.h"

namespace dpwa::test {

// A key file that nodes share.
class ClusterKey {
 public:
  explicit ClusterKey(const Keys& keys = {new_key()}) { write(keys); }

  void write(const Keys& keys) const;      // in place of what it held
  std::shared_ptr<Security> open() const;  // as one node does

 private:
  SecretFolder folder_;
};

// The certificate of one node, or of an observer, by an authority.
class NodeCertificate {
 public:
  NodeCertificate(const TestAuthority& authority, const std::string& dns, long seconds = 3600);

  // `trusted`: the authority that this node checks others by. The own name is not checked, as for
  // an observer.
  std::shared_ptr<Security> open(const TestAuthority& trusted) const;

 private:
  SecretFolder folder_;
};

// Node w1, whose handshakes may take this long.
std::unique_ptr<ServedNode> secure_node(std::shared_ptr<Security> security,
                                        std::size_t elements = 16,
                                        Duration handshake_timeout = std::chrono::seconds(20));
// Node w2, over TCP, whose only peer is w1 at `port`.
std::unique_ptr<PullingNode> secure_caller(std::uint16_t port, std::shared_ptr<Security> security,
                                           std::size_t elements = 16);

// What w1 said when w2 greeted it: "" = welcome.
std::string greeting_of(PullingNode& caller);

}  // namespace dpwa::test
