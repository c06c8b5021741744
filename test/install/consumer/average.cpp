// Gossip averaging of two arrays without torch, as a cluster of one node.
#include <dpwa/gossip/gossip.h>
#include <dpwa/gossip/host_parameters.h>

#include <cstdio>

int main() {
  dpwa::TensorSpec weight, bias;
  weight.name = "weight";
  weight.shape = {4, 3};
  bias.name = "bias";
  bias.shape = {3};
  const dpwa::Manifest manifest({weight, bias});
  dpwa::AlignedBuffer memory(manifest.total_bytes());
  dpwa::HostParameters parameters(manifest, memory.bytes());

  dpwa::NodeEntry node;
  node.name = "w1";  // on 127.0.0.1, port chosen by the system
  dpwa::Config config;
  config.nodes = {node};
  config.self = node.name;
  config.log.level = "warn";

  dpwa::Gossip gossip(config, parameters);
  gossip.start();
  dpwa::StepReport report;
  for (int step = 0; step < 3; ++step) {
    gossip.update_send([] { return 0.5; });
    report = gossip.update_wait();
  }
  gossip.finish();
  std::printf("clock %.0f, %s\n", report.clock, dpwa::to_string(report.outcome).data());
  return report.clock == 3 ? 0 : 1;
}
