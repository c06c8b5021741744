#include <atomic>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

#include "bench/exchange.h"
#include "bench/measurers.h"
#include "dpwa/attach/node_service.h"
#include "dpwa/base/plain_text.h"
#include "dpwa/config/open_log.h"

namespace dpwa::bench {
namespace {

// The network side of a node whose trainer is another process, as `dpwa node` runs it. It pulls
// when that trainer asks. Job: {"config": FILE, "name": NODE}
class NodeProcess : public Server {
 public:
  explicit NodeProcess(const Json& job)
      : config_(load_config(job.at("config").get<std::string>(), job.at("name"))),
        service_(config_, [this] { return config_; },
                 {[this] { return stop_.load(); }, [] { return false; }}) {
    open_log(config_).use();
    thread_ = std::thread([this] { run(); });
  }
  ~NodeProcess() override {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() {
    try {
      service_.run();
    } catch (const std::exception& error) {  // the trainer waits in vain, and says so
      std::cerr << "node process: " << one_line(error) << std::endl;
    }
  }

  const Config config_;
  std::atomic<bool> stop_ = false;
  attach::NodeService service_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Measurer> make_node_process(const Json& job) {
  return std::make_unique<NodeProcess>(job);
}

}  // namespace dpwa::bench
