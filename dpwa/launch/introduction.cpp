#include "dpwa/launch/introduction.h"

#include <stdexcept>

#include "dpwa/base/own_address.h"
#include "dpwa/base/threads.h"
#include "dpwa/net/free_ports.h"

namespace dpwa::launch {

OwnEndpoint own_endpoint(const LauncherEnvironment& environment, int local_rank) {
  return {environment.variable("DPWA_HOST"), environment.variable("DPWA_BIND"),
          own_port(environment, local_rank)};
}

Introduction introduction_of(const OwnEndpoint& own, const std::string& meeting_point) {
  Introduction introduction;
  introduction.host_given = !own.host.empty();
  introduction.host = introduction.host_given ? own.host : own_address_towards(meeting_point);
  if (introduction.host.empty()) throw std::runtime_error("no route to " + meeting_point);
  introduction.bind = own.bind;
  introduction.port = own.port == 0 ? net::free_ports(1).front() : own.port;
  introduction.meeting_point = meeting_point;
  introduction.processors = usable_processors();
  return introduction;
}

}  // namespace dpwa::launch
