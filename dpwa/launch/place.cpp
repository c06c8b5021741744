#include "dpwa/launch/place.h"

#include <netdb.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "dpwa/launch/claims.h"

namespace dpwa::launch {
namespace {

std::string words(const Claim& claim) {
  return claim.rank_variable + " " + std::to_string(claim.place.rank) + " of " +
         claim.size_variable + " " + std::to_string(claim.place.size);
}

// RANK and WORLD_SIZE beside a launcher, as a script may set them from the launcher's: they must
// say the same.
void require_agreement(const Variables& variables, const Claim& claim) {
  const auto check = [&](const std::string& name, const std::string& other, int value) {
    if (name == other) return;
    const auto said = variables.number(name, 0, most_ranks);
    if (!said || *said == value) return;
    Variables::fail(name, std::to_string(*said) + " contradicts " + claim.place.launcher +
                              ", which has started this process as " + words(claim) +
                              "; accepted: the same, or no " + name);
  };
  check("RANK", claim.rank_variable, claim.place.rank);
  check("WORLD_SIZE", claim.size_variable, claim.place.size);
}

void set_meeting(const Variables& variables, Claim& claim) {
  LaunchPlace& place = claim.place;
  if (variables.has("MASTER_ADDR")) place.meeting_host = variables.text("MASTER_ADDR");
  if (const auto port = variables.number("MASTER_PORT", 1, most_ports))
    place.meeting_port = static_cast<std::uint16_t>(*port);
  if (place.size == 1) return;
  if (place.meeting_host.empty() && place.one_host) place.meeting_host = "127.0.0.1";
  const std::string because = "and " + place.launcher + " has started " +
                              std::to_string(place.size) +
                              " processes that have to find one another; accepted: ";
  if (place.meeting_host.empty())
    variables.need_text("MASTER_ADDR", because + "the host of rank 0, as all reach it");
  if (place.meeting_port == 0)
    variables.need_text("MASTER_PORT", because + "a free TCP port of the host of rank 0");
}

std::string full_name(const std::string& host) {
  addrinfo hints{};
  hints.ai_flags = AI_CANONNAME;
  addrinfo* answer = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &answer) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(answer, &freeaddrinfo);
  return answer->ai_canonname == nullptr ? "" : answer->ai_canonname;
}

}  // namespace

std::optional<LaunchPlace> find_place(const LauncherEnvironment& environment) {
  const Variables variables(environment);
  auto claim = claim_of_torchrun(variables);
  if (claim) return claim->place;
  claim = claim_of_open_mpi(variables);
  if (!claim) claim = claim_of_slurm(variables);
  if (!claim) claim = claim_of_kubernetes(variables, environment);
  if (!claim) claim = claim_of_variables(variables);
  if (!claim) return std::nullopt;
  require_agreement(variables, *claim);
  set_meeting(variables, *claim);
  return claim->place;
}

LauncherEnvironment launcher_environment() {
  LauncherEnvironment found;
  found.variable = [](const std::string& name) -> std::string {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? "" : value;
  };
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) == 0) found.host_name = name.data();
  found.full_host_name = [host = found.host_name] { return full_name(host); };
  return found;
}

}  // namespace dpwa::launch
