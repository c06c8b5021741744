#pragma once

#include "dpwa/wire/messages.h"

namespace dpwa {

// The purpose for which a caller got a snapshot.
enum class ServedFor { blend, taking_over, final_average };

inline ServedFor use_of(const wire::Pull& pull) {
  if (pull.for_final_average) return ServedFor::final_average;
  return pull.full ? ServedFor::taking_over : ServedFor::blend;
}

}  // namespace dpwa
