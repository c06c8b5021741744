#include <iostream>

#include "dpwa/base/standard_output.h"
#include "dpwa/base/stop_signal.h"
#include "dpwa/cli/app.h"

int main(int argc, char** argv) {
  dpwa::hold_standard_descriptors();
  dpwa::stop_signal::install_early();  // the starter of a container may have blocked signals
  return dpwa::cli::run(argc, argv, std::cout, std::cerr);
}
