#include <iostream>

#include "bench/commands.h"

int main(int argc, char** argv) {
  return dpwa::bench::run(argc, argv, std::cout, std::cerr);
}
