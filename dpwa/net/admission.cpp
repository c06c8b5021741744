#include "dpwa/net/admission.h"

namespace dpwa {

std::optional<wire::Reject> examine_hello(const wire::Hello& hello, const LocalNode& local) {
  const auto reject = [](wire::RejectCode code, std::string reason) {
    return wire::Reject{code, std::move(reason)};
  };
  if (hello.cluster != local.cluster) {
    return reject(wire::RejectCode::cluster, "node '" + local.name + "' belongs to cluster '" +
                                                 local.cluster + "', not '" + hello.cluster + "'");
  }
  if (hello.role == wire::Role::observer) return std::nullopt;
  if (hello.node == local.name) {
    return reject(wire::RejectCode::own_name, "two nodes are named '" + local.name + "'");
  }
  const auto unknown = [&](const std::string& why) {
    return reject(wire::RejectCode::unknown_node, "node '" + hello.node + "' " + why);
  };
  switch (local.members->admission(hello.node)) {
    case Membership::Admission::known:
      return std::nullopt;
    case Membership::Admission::closed:
      return unknown("is not in the cluster file of '" + local.name + "'");
    case Membership::Admission::full:
      return unknown("cannot join: the table of '" + local.name + "' is full");
    case Membership::Admission::may_join:
      break;
  }
  if ((hello.capabilities & wire::members_capability) == 0) {
    return unknown("is not in the cluster file of '" + local.name +
                   "', and does not say where it can be reached");
  }
  return std::nullopt;
}

wire::Reject model_reject(const LocalNode& local, const std::string& caller) {
  return {wire::RejectCode::model,
          "the models of '" + local.name + "' (here) and '" + caller + "' (there) differ"};
}

wire::Reject model_reject(const LocalNode& local, const std::string& caller,
                          const Manifest& there) {
  const auto difference = first_difference(local.manifest, there);
  wire::Reject reject = model_reject(local, caller);
  reject.reason += ": " + difference.value_or("their fingerprints are not equal");
  return reject;
}

}  // namespace dpwa
