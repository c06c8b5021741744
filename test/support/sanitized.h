#pragma once

// GCC defines macros, clang has features.
#if defined(__has_feature)
#define DPWA_HAS_FEATURE(name) __has_feature(name)
#else
#define DPWA_HAS_FEATURE(name) 0
#endif

namespace dpwa::test {

// Whether this build has a sanitizer, under which all takes several times as long and as much
// memory. Loops over seeds and moments then run in part: the release build runs them whole.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
    DPWA_HAS_FEATURE(address_sanitizer) || DPWA_HAS_FEATURE(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace dpwa::test
