#include <cstddef>

#include "test/adapters/doctest_with_torch.h"
#include "test/support/node_processes.h"

namespace dpwa::test {

// On a GPU the threads of one process share one thread for their backward passes, whose hooks wait
// for the other nodes.
TEST_CASE("backend collective keeps the contract with a process for each node") {
  for (const std::size_t nodes : {std::size_t{2}, std::size_t{3}}) {
    CAPTURE(nodes);
    const std::string problem = NodeProcess::run(
        nodes, {"--source-file=*contract_training_test*,*contract_life_cycle_test*,*contract_"
                "caller_test*,*contract_empty_test*,*skipped_step_test*",
                "--abort-after=1", "--no-intro"});
    INFO(problem);
    CHECK(problem.empty());
  }
}

}  // namespace dpwa::test
