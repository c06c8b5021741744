#pragma once

#include "dpwa/wire/messages.h"

namespace dpwa {

// What a caller had a snapshot for.
enum class ServedFor { blend, taking_over, final_average };

inline ServedFor use_of(const wire::Pull& pull) {
  if (pull.for_final_average) return ServedFor::final_average;
  return pull.full ? ServedFor::taking_over : ServedFor::blend;
}

}  // namespace dpwa
