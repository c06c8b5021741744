#pragma once

namespace dpwa::test {

// Whether this build has a sanitizer, under which all takes several times as long and as much
// memory. Loops over seeds and moments then run in part: the release build runs them whole.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

}  // namespace dpwa::test
