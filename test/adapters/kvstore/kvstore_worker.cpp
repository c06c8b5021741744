// A program with the class KVStore, for tests that kill it: kvstore_worker FILE NAME. Pushes ones
// to a key for as long as it runs; writes a line with its steps, the value and the pushes that did
// not count after each.
#include <torch/types.h>

#include <exception>
#include <iostream>

#include "adapters/kvstore/kvstore.h"
#include "dpwa/config/config.h"
#include "dpwa/config/open_log.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    const dpwa::Config config = dpwa::load_config(argv[1], argv[2]);
    dpwa::open_log(config).use();
    dpwa::KVStore store(config);
    auto value = torch::zeros({4});
    store.init("w", value);
    store.pull("w", value);
    std::cout << "begins with " << value[0].item<float>() << std::endl;
    store.barrier();
    for (;;) {
      store.pushpull("w", {torch::ones({4})}, {value});
      std::cout << "value " << value[0].item<float>() << ", dropped " << store.dropped_pushes()
                << std::endl;
    }
  } catch (const std::exception& fault) {
    std::cout << "fault: " << fault.what() << std::endl;
    return 1;
  }
}
