#pragma once

#include <string>
#include <utility>

#include "dpwa/base/time.h"
#include "dpwa/base/wait_lines.h"
#include "dpwa/kvclient/store_client.h"

namespace dpwa::kvstore {

// Says in the log what a worker waits for, with what is known of the reason: servers that do not
// answer or, without any, the workers that take part. One thread.
class WaitLog {
 public:
  // `self`: the name of the worker. `client` outlives this.
  WaitLog(const kvclient::StoreClient& client, std::string self)
      : client_(client), self_(std::move(self)) {}

  // During a wait that began then, some times a second: a line every 10 s.
  void look(TimePoint began, const std::string& what, TimePoint now);
  // The same until the servers take the worker in, at the latest then (TimePoint::max(): some day).
  // A line soon, for a person who starts the processes one by one, then one every 30 s.
  void look_at_start(TimePoint began, TimePoint until, TimePoint now);
  // The same for a worker that has made its last step, where nothing is wrong: every 30 s, whom it
  // waits for.
  void look_at_end(TimePoint began, TimePoint now);
  // What is known of the servers that do not answer, for a line; empty: all do.
  std::string problems() const;
  // Whom this worker waits for, in few words: "the servers" or, when all answer, the other workers.
  std::string whom() const;

 private:
  std::string reason() const;
  std::string others() const;

  const kvclient::StoreClient& client_;
  const std::string self_;
  WaitLines lines_;
};

}  // namespace dpwa::kvstore
