#pragma once

#include "dpwa/wire/messages.h"

namespace dpwa {

// What a node holds against a caller. The log has one line of each a minute and address, so that
// one that anybody can cause hides none of another kind.
enum class CallerFault {
  accept,       // no connection could be accepted
  limit,        // a bound on connections
  user,         // a process of another user of this host
  ended,        // the stream broke before the caller was admitted
  security,     // it does not prove who it is
  certificate,  // it proves to be another
  protocol,     // bytes that are no valid message
  version,      // the rest: why a HELLO was answered by a REJECT
  cluster,
  name,
  model,
  handler,  // serving it failed here
};

constexpr CallerFault fault_of(wire::RejectCode code) {
  switch (code) {
    case wire::RejectCode::version:
      return CallerFault::version;
    case wire::RejectCode::cluster:
      return CallerFault::cluster;
    case wire::RejectCode::unknown_node:
    case wire::RejectCode::own_name:
      return CallerFault::name;
    case wire::RejectCode::model:
      return CallerFault::model;
    case wire::RejectCode::security:
      return CallerFault::certificate;
  }
  return CallerFault::handler;
}

}  // namespace dpwa
