#include <iostream>

#include "dpwa/cli/app.h"

int main(int argc, char** argv) {
  return dpwa::cli::run(argc, argv, std::cout, std::cerr);
}
