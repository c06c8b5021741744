#include "test/dpwa/collectives/tcp_members.h"

#include <utility>

#include "dpwa/collectives/group.h"
#include "dpwa/config/config.h"
#include "test/support/eventually.h"

namespace dpwa::test {

using collectives::GroupBroken;

std::shared_ptr<const Security> opened(const SecretFolder& folder, const Keys& keys) {
  folder.write("key", key_file_text(keys).text());
  Config config;
  config.security.mode = "psk";
  config.security.key_file = folder.path("key").string();
  return std::make_shared<Security>(config, "", "");
}

TcpMembers::TcpMembers(int size)
    : options(static_cast<std::size_t>(size)),
      on_broken(static_cast<std::size_t>(size)),
      limit(patience) {
  for (int rank = 0; rank < size; ++rank) {
    listeners.emplace_back("127.0.0.1");
    texts.push_back(listeners.back().text());
  }
}

void TcpMembers::run(const std::function<void(std::unique_ptr<collectives::TcpLinks>)>& body,
                     const std::function<void(int rank, const GroupBroken&)>& failed) {
  at_once(texts.size(), [&](std::size_t rank) {
    std::unique_ptr<collectives::TcpLinks> links;
    if (static_cast<int>(rank) == dying) {
      collectives::form_links(std::move(listeners[rank]), options[rank], dying, texts, limit,
                              stop.get_token());
      return;
    }
    try {
      links = collectives::connect_links(std::move(listeners[rank]), options[rank],
                                         static_cast<int>(rank), texts, limit, stop.get_token(),
                                         on_broken[rank]);
    } catch (const GroupBroken& broken) {
      stop.request_stop();
      if (!failed) throw;
      failed(static_cast<int>(rank), broken);
      return;
    }
    body(std::move(links));
  });
}

}  // namespace dpwa::test
