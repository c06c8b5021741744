#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace dpwa::wire {

// The frame in golden/NAME.hex: two hexadecimal digits a byte, '#' begins a comment. Throws when
// the file is missing or holds anything else.
std::vector<std::byte> read_golden(const std::string& name);

// With DPWA_UPDATE_GOLDEN=1 in the environment the golden files are rewritten instead of compared:
// a deliberate change of the protocol, which needs a new protocol version once released.
bool update_golden();
void write_golden(const std::string& name, std::span<const std::byte> frame);

}  // namespace dpwa::wire
