#pragma once

#include <string>
#include <utility>

#include "dpwa/base/time.h"
#include "dpwa/kvclient/store_client.h"

namespace dpwa::kvstore {

// Says every 10 s in the log what a worker waits for, with what is known of the reason: servers
// that do not answer or, without any, the workers that take part. One thread.
class WaitLog {
 public:
  // `self`: the name of the worker. `client` outlives this.
  WaitLog(const kvclient::StoreClient& client, std::string self)
      : client_(client), self_(std::move(self)) {}

  // During a wait that began then, some times a second.
  void look(TimePoint began, const std::string& what, TimePoint now);
  // The same for a worker that has made its last step, where nothing is wrong: every 30 s, whom it
  // waits for.
  void look_at_end(TimePoint began, TimePoint now);
  // What is known of the servers that do not answer, for a line; empty: all do.
  std::string problems() const;

 private:
  bool is_time(TimePoint began, Duration between, TimePoint now);

  const kvclient::StoreClient& client_;
  const std::string self_;
  TimePoint told_{};
};

}  // namespace dpwa::kvstore
