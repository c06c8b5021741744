#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "dpwa/net/local_node.h"
#include "dpwa/net/request_handler.h"
#include "dpwa/net/served_chunks.h"
#include "dpwa/net/served_for.h"
#include "dpwa/net/server_options.h"
#include "dpwa/net/staging_pool.h"
#include "dpwa/rules/readers.h"

namespace dpwa {

// PULL: the latest snapshot, straight from its memory or encoded chunk by chunk. A slow reader
// holds its own coroutine and one snapshot buffer until the deadline that it stated, and delays
// nobody.
class SnapshotHandler : public RequestHandler {
 public:
  using OnServed =
      std::function<void(const std::string& peer, const Progress& progress, ServedFor use)>;

  // `readers`: those of the server, over TCP and of memory together.
  SnapshotHandler(LocalNode& local, const ServerOptions& options, Readers& readers,
                  OnServed on_served)
      : local_(local), options_(options), readers_(readers), on_served_(std::move(on_served)) {}

  std::vector<wire::TypeBound> requests(const Requester& requester) const override;
  boost::asio::awaitable<bool> answer(net::Frame request, Responder& responder) override;

 private:
  boost::asio::awaitable<bool> send(ServedChunks chunks, wire::SnapshotHead head,
                                    std::uint32_t request_id, Responder& responder);

  LocalNode& local_;
  const ServerOptions& options_;
  Readers& readers_;
  const OnServed on_served_;
  StagingPool staging_;
};

}  // namespace dpwa
