// What the network side guarantees by itself: each of its invariants broken once.

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>

#include "dpwa/net/coroutine.h"
#include "dpwa/net/snapshot_handler.h"
#include "dpwa/net/staging_pool.h"
#include "test/support/broken_invariant.h"
#include "test/support/run_in_child.h"

namespace dpwa {

TEST_CASE("a turn is given back once, and an encoded reply has a buffer") {
  boost::asio::io_context io(1);
  net::Turns turns(io.get_executor());
  CHECK(test::breaks("a turn is given back by the coroutine that has it",
                     [&] { turns.give_back(); }));
  const Manifest manifest;
  CHECK(test::breaks("an encoded reply has a buffer for its chunks",
                     [&] { ServedChunks(manifest, nullptr, Codec::fp16, true, std::nullopt); }));
}

// A lease gives its buffer back without exceptions, so that this one ends a process.
TEST_CASE("a buffer that a pool has not lent is not given back to it") {
  const test::Ended child = test::run_in_child([] {
    StagingPool pool;
    const StagingPool::Lease lease(pool, AlignedBuffer(64));
  });
  CHECK(child.exit_code != 0);
  CHECK(child.errors.find("a buffer that is given back was lent") != std::string::npos);
}

}  // namespace dpwa
