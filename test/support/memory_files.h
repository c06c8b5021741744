#pragma once

#include <sys/types.h>

namespace dpwa::test {

// The memory files (dpwa/snapshot/memory_file.h) that a process has mapped: those of process
// `owner`, or of all (-1).
int mapped_memory_files(pid_t process, pid_t owner = -1);

// The names of this project in /dev/shm: memory files have none.
int names_in_dev_shm();

}  // namespace dpwa::test
