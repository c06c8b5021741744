#include "test/dpwa/net/secure_nodes.h"

#include <utility>

#include "test/support/eventually.h"

namespace dpwa::test {

void ClusterKey::write(const Keys& keys) const {
  folder_.write("key", key_file_text(keys).text());
}

std::shared_ptr<Security> ClusterKey::open() const {
  Config config;
  config.security.mode = "psk";
  config.security.key_file = folder_.path("key").string();
  return std::make_shared<Security>(config, "", "");
}

NodeCertificate::NodeCertificate(const TestAuthority& authority, const std::string& dns,
                                 long seconds) {
  authority.sign(folder_, "node", {dns, "", seconds});
}

std::shared_ptr<Security> NodeCertificate::open(const TestAuthority& trusted) const {
  Config config;
  config.security.mode = "mtls";
  config.security.ca = trusted.file();
  config.security.cert = folder_.path("node.pem").string();
  config.security.key = folder_.path("node.key").string();
  return std::make_shared<Security>(config, "", "");
}

std::unique_ptr<ServedNode> secure_node(std::shared_ptr<Security> security, std::size_t elements,
                                        Duration handshake_timeout) {
  ServerOptions options;
  options.handshake_timeout = handshake_timeout;
  options.same_host = false;
  return std::make_unique<ServedNode>(elements, std::move(options), BufferAllocator(), true,
                                      std::move(security));
}

std::unique_ptr<PullingNode> secure_caller(std::uint16_t port, std::shared_ptr<Security> security,
                                           std::size_t elements) {
  return std::make_unique<PullingNode>(std::vector<PeerAddress>{{"w1", {"127.0.0.1"}, port}},
                                       elements, 1, false, std::move(security));
}

std::string greeting_of(PullingNode& caller) {
  const auto greeted = caller.client().greet_all(patience);
  if (!greeted.front().failure) return "";
  return greeted.front().detail.empty() ? "no reason" : greeted.front().detail;
}

}  // namespace dpwa::test
