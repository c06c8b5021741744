#include "dpwa/group/group_endpoint.h"

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/base/time.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/server.h"
#include "dpwa/node/status_document.h"

namespace dpwa::group {

std::unique_ptr<Endpoint> group_endpoint(const Config& config, std::shared_ptr<Inbox> inbox) {
  std::vector<std::string> others;
  for (const NodeEntry& node : config.nodes) {
    if (node.name != config.self) others.push_back(node.name);
  }
  const NodeEntry& at = config.self_node();
  auto local = std::make_unique<LocalProcess>(config.cluster, config.self, wall_clock_us(),
                                              std::move(others));
  auto endpoint =
      std::make_unique<Endpoint>(config, at, std::move(local), server_options(config, at));
  endpoint->serve_status([&process = endpoint->local()]() -> boost::asio::awaitable<std::string> {
    co_return status_document(process, {{"clock", nullptr}, {"loss", nullptr}});
  });
  endpoint->server().add(std::make_unique<GroupHandler>(std::move(inbox)));
  return endpoint;
}

}  // namespace dpwa::group
