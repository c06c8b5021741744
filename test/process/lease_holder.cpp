// A process that introduces itself as a node, is handed its peer's memory, and keeps it:
//   dpwa_lease_holder PORT NAME ELEMENTS DEADLINE_MS
// Prints "holding" once it has the memory, then waits for a signal to end it.

#include <unistd.h>

#include <exception>
#include <iostream>
#include <string>

#include "test/support/memory_reader.h"
#include "test/support/vector_cluster.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  try {
    const auto manifest = dpwa::test::vector_manifest(std::stoul(argv[3]));
    dpwa::wire::Hello hello;
    hello.cluster = "dpwa";
    hello.node = argv[2];
    hello.incarnation = 1;
    hello.fingerprint = manifest.fingerprint();
    dpwa::test::MemoryReader reader(static_cast<std::uint16_t>(std::stoul(argv[1])), hello);
    const std::chrono::milliseconds deadline(std::stoul(argv[4]));
    if (!reader.pull(deadline)) return 1;
    std::cout << "holding" << std::endl;
    while (true) ::pause();
  } catch (const std::exception& error) {
    std::cerr << "dpwa_lease_holder: " << error.what() << "\n";
    return 1;
  }
}
