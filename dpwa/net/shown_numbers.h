#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "dpwa/base/threads.h"

namespace dpwa {

// Numbers that the program shows beside those of its node, such as an accuracy. Any thread.
class ShownNumbers {
 public:
  // Throws std::logic_error for a name that is not 1 to 40 letters, digits and "_-./ ", and for
  // more than 16 names. NaN: there is none yet.
  void set(const std::string& name, double value);
  std::map<std::string, double> all() const;

  static constexpr std::size_t longest_name = 40;
  static constexpr std::size_t most_numbers = 16;

 private:
  mutable Mutex mutex_;
  std::map<std::string, double> numbers_ DPWA_GUARDED_BY(mutex_);
};

}  // namespace dpwa
