#pragma once

#include <string>

namespace dpwa {

// The address by which this machine talks to another one, at this numeric address; empty: there is
// no route. Sends nothing.
std::string own_address_towards(const std::string& address);

// Whether an interface of this machine has this numeric address.
bool is_of_this_machine(const std::string& address);

}  // namespace dpwa
