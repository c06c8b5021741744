#include "dpwa/net/shown_numbers.h"

#include <stdexcept>

namespace dpwa {
namespace {

constexpr const char* usual = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./ ";

}  // namespace

void ShownNumbers::set(const std::string& name, double value) {
  const bool is_usual = name.find_first_not_of(usual) == std::string::npos;
  if (name.empty() || name.size() > longest_name || !is_usual)
    throw std::logic_error(
        "show() of a number with a name that is not accepted; accepted: 1 to 40 letters, digits, "
        "spaces and _ - . /");
  const MutexLock lock(mutex_);
  if (numbers_.size() >= most_numbers && !numbers_.contains(name))
    throw std::logic_error("show() of a number '" + name + "' beside " +
                           std::to_string(most_numbers) + " others; accepted: that many names");
  numbers_.insert_or_assign(name, value);
}

std::map<std::string, double> ShownNumbers::all() const {
  const MutexLock lock(mutex_);
  return numbers_;
}

}  // namespace dpwa
