#pragma once

#include <string_view>

namespace dpwa {

// "0.1.0", the version of CMakeLists.txt.
std::string_view version();

}  // namespace dpwa
