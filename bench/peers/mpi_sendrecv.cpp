// Averages a float32 vector with the next process's by Open MPI, for comparison with dpwa: every
// rank sends its vector to the rank before and receives that of the rank behind, then blends it in.
//   mpirun -np N mpi_sendrecv NAME BYTES SECONDS
// Rank 0 prints one JSON document. Of each window: bytes of vectors that were received and blended
// and processor seconds, of all ranks together, and nanoseconds.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

#include "bench/peers/process.h"

namespace {

using dpwa::bench::make_vector;
using dpwa::bench::processor_seconds;

constexpr int windows = 5;

struct Ring {
  int before;
  int behind;
  std::span<float> own;
  std::span<float> received;

  void average() const {
    const int count = static_cast<int>(own.size());
    MPI_Sendrecv(own.data(), count, MPI_FLOAT, before, 0, received.data(), count, MPI_FLOAT, behind,
                 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    float* __restrict x = own.data();
    const float* __restrict y = received.data();
    for (std::size_t i = 0; i < own.size(); ++i) x[i] += 0.5F * (y[i] - x[i]);
  }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int nodes = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &nodes);
  if (argc != 4) {
    if (rank == 0) std::fprintf(stderr, "usage: mpi_sendrecv NAME BYTES SECONDS\n");
    MPI_Finalize();
    return 2;
  }
  const std::size_t bytes = std::strtoull(argv[2], nullptr, 10);
  const double seconds = std::strtod(argv[3], nullptr);
  const std::size_t elements = bytes / sizeof(float);
  const Ring ring{(rank + nodes - 1) % nodes,
                  (rank + 1) % nodes,
                  {make_vector(elements), elements},
                  {make_vector(elements), elements}};
  ring.average();
  double took = -MPI_Wtime();
  for (int i = 0; i < 2; ++i) ring.average();
  took = (took + MPI_Wtime()) / 2;
  MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const int count = std::max(1, static_cast<int>(seconds / windows / took));
  std::string results;
  for (int window = 0; window < windows; ++window) {
    MPI_Barrier(MPI_COMM_WORLD);
    double used = -processor_seconds();
    double elapsed = -MPI_Wtime();
    for (int i = 0; i < count; ++i) ring.average();
    elapsed += MPI_Wtime();
    used += processor_seconds();
    MPI_Allreduce(MPI_IN_PLACE, &elapsed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &used, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    char text[160];
    std::snprintf(text, sizeof text, "%s{\"bytes\": %.0f, \"ns\": %.0f, \"cpu_s\": %f}",
                  window == 0 ? "" : ", ", 1.0 * count * nodes * static_cast<double>(bytes),
                  1e9 * elapsed, used);
    results += text;
  }
  if (rank == 0)
    std::printf(
        "{\"kind\": \"peer\", \"name\": \"Open MPI %s sendrecv and blend\", \"bytes\": %zu, "
        "\"nodes\": %d, \"windows\": [%s]}\n",
        argv[1], bytes, nodes, results.c_str());
  MPI_Finalize();
}
