// dpwa-measure: what dpwa-bench measures with where LibTorch is not needed.
#include "bench/measurers.h"
#include "bench/serve.h"

int main(int argc, char** argv) {
  return dpwa::bench::serve(argc, argv,
                            {{"memory", dpwa::bench::make_memory_passes},
                             {"choice", dpwa::bench::make_peer_choice},
                             {"pull", dpwa::bench::make_pull_node},
                             {"raw", dpwa::bench::make_raw_node},
                             {"store_worker", dpwa::bench::make_store_worker},
                             {"store_server", dpwa::bench::make_store_server}});
}
