#include <iostream>

#include "bench/commands.h"
#include "dpwa/base/standard_output.h"

int main(int argc, char** argv) {
  dpwa::hold_standard_descriptors();
  return dpwa::bench::run(argc, argv, std::cout, std::cerr);
}
