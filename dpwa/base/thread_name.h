#pragma once

#include <pthread.h>

namespace dpwa {

// The name of a thread in top -H and gdb, such as "dpwa-rx": at most 15 characters. Threads that a
// thread starts inherit its name, so each thread of the project names itself first.
inline void name_thread(const char* name, pthread_t thread = pthread_self()) {
  ::pthread_setname_np(thread, name);
}

}  // namespace dpwa
