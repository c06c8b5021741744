#pragma once

namespace dpwa {

// Opens the null device on each of the descriptors 0, 1 and 2 that is closed, such that no file or
// memory that is opened later gets the number that messages are written to. Reading such a
// descriptor 0 and writing 1 or 2 fails, as it does while they are closed. True: all three are
// open.
//
// Every program that logs (dpwa/log/log.h) does so before its main() begins.
bool reserve_standard_descriptors();

}  // namespace dpwa
