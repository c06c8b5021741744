#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "python/core/program_thread.h"

namespace dpwa::python {

// An object of Python that a call of the node asks, on the thread of the program. It outlives the
// calls.
class Asked {
 public:
  Asked(ProgramThread& program, nanobind::handle object) : program_(&program), object_(object) {}

  nanobind::handle object() const { return object_; }
  void use(const std::function<void(nanobind::handle)>& use) const {
    program_->ask([&] { use(object_); });
  }
  template <class... Arguments>
  void tell(const char* method, const Arguments&... arguments) const {
    use([&](nanobind::handle object) { object.attr(method)(arguments...); });
  }
  template <class Result, class... Arguments>
  Result ask(const char* method, const Arguments&... arguments) const {
    Result result;
    use([&](nanobind::handle object) {
      result = nanobind::cast<Result>(object.attr(method)(arguments...));
    });
    return result;
  }

 private:
  ProgramThread* program_;
  nanobind::handle object_;
};

}  // namespace dpwa::python
