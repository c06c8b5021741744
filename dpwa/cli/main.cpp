#include <iostream>

#include "dpwa/base/standard_output.h"
#include "dpwa/cli/app.h"

int main(int argc, char** argv) {
  dpwa::hold_standard_descriptors();
  return dpwa::cli::run(argc, argv, std::cout, std::cerr);
}
