#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "dpwa/collectives/shared_group.h"

namespace dpwa::test {

// Groups in memory of one host, whose members are threads of this process that read one another's
// files. `processors`: fewer than the members, and they wait as where members outnumber processors.
std::vector<std::unique_ptr<collectives::SharedGroup>> shared_members(int size,
                                                                      std::size_t processors);

// What each member has when all have run `body`, each on a thread of its own.
std::vector<std::vector<std::byte>> run_shared(
    int size, std::size_t processors,
    const std::function<std::vector<std::byte>(collectives::SharedGroup& group)>& body);

}  // namespace dpwa::test
