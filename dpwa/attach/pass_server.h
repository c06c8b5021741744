#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "dpwa/attach/protocol.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/gossip/parameters.h"
#include "dpwa/snapshot/aligned_buffer.h"

namespace dpwa::attach {

// Makes the passes over the parameters of a trainer that its node process asks for
// (RemoteParameters), over memory of that process. One thread.
class PassServer {
 public:
  explicit PassServer(Parameters& parameters) : parameters_(parameters) {}  // they outlive it
  ~PassServer() { end(); }
  PassServer(const PassServer&) = delete;
  PassServer& operator=(const PassServer&) = delete;

  const Parameters& parameters() const { return parameters_; }
  // The loss of the next update_send(); read when it is asked for.
  void add_loss(std::function<double()> loss) { losses_[++sends_] = std::move(loss); }
  // `file`: comes with a memory. Throws nothing: the answer has the error.
  PassAnswer answer(const PassRequest& request, FileDescriptor file);
  // No more requests come: waits for copies under way, and unmaps all.
  void end() noexcept;

 private:
  double make(const PassRequest& request, FileDescriptor file);
  Landing landing_in(const PassRequest& request) const;
  void map(std::size_t bytes, FileDescriptor file);

  Parameters& parameters_;
  std::vector<AlignedBuffer> memory_;  // by number
  std::uint64_t sends_ = 0;
  std::map<std::uint64_t, std::function<double()>> losses_;  // that may yet be asked for
};

}  // namespace dpwa::attach
