#include "dpwa/launch/place.h"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <vector>

#include "dpwa/base/numbers.h"
#include "dpwa/config/config.h"
#include "dpwa/config/text.h"
#include "dpwa/launch/claims.h"

namespace dpwa::launch {
namespace {

std::string words(const Claim& claim) {
  return claim.rank_variable + " " + std::to_string(claim.place.rank) + " of " +
         claim.size_variable + " " + std::to_string(claim.place.size);
}

// RANK and WORLD_SIZE beside a launcher, as a script may set them from the launcher's: they must
// say the same.
void require_agreement(const LauncherEnvironment& environment, const Claim& claim) {
  const auto check = [&](const std::string& name, const std::string& other, int value) {
    if (name == other) return;
    const auto said = environment.number(name, 0, most_ranks);
    if (!said || *said == value) return;
    environment.fail(name, std::to_string(*said) + " contradicts " + claim.place.launcher +
                               ", which has started this process as " + words(claim) +
                               "; accepted: the same, or no " + name);
  };
  check("RANK", claim.rank_variable, claim.place.rank);
  check("WORLD_SIZE", claim.size_variable, claim.place.size);
}

void set_meeting(const LauncherEnvironment& environment, Claim& claim) {
  LaunchPlace& place = claim.place;
  if (environment.has("MASTER_ADDR")) place.meeting_host = environment.variable("MASTER_ADDR");
  if (const auto port = environment.number("MASTER_PORT", 1, most_ports))
    place.meeting_port = static_cast<std::uint16_t>(*port);
  if (place.size == 1) return;
  if (place.meeting_host.empty() && place.one_host) place.meeting_host = "127.0.0.1";
  const std::string because = "and " + place.launcher + " has started " +
                              std::to_string(place.size) +
                              " processes that have to find one another; accepted: ";
  if (place.meeting_host.empty())
    environment.need_text("MASTER_ADDR", because + "the host of rank 0, as all reach it");
  if (place.meeting_port == 0)
    environment.need_text("MASTER_PORT", because + "a free TCP port of the host of rank 0");
}

// Of /proc/PID; empty where it cannot be read.
std::string text_of_process(pid_t process, const char* file) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/" + file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::string starter_of_this(const std::string& variable) {
  const std::string entry = std::string(1, '\0') + variable + "=";
  pid_t process = ::getppid();
  while (process > 0) {
    const std::string stat = text_of_process(process, "stat");
    const auto name_end = stat.rfind(')');
    if (name_end == std::string::npos) return {};
    std::istringstream fields(stat.substr(name_end + 1));
    std::vector<std::string> field(std::istream_iterator<std::string>{fields}, {});
    constexpr std::size_t parent = 1, start_time = 19;  // proc(5), without the first two
    if (field.size() <= start_time) return {};
    const std::string environment = '\0' + text_of_process(process, "environ");
    if (environment.find(entry) == std::string::npos)
      return std::to_string(process) + "@" + field[start_time];
    process = number_in<pid_t>(field[parent]).value_or(0);
  }
  return {};
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

void LauncherEnvironment::fail(const std::string& name, const std::string& problem) {
  throw ConfigError("environment: " + name + ": " + problem);
}

std::optional<int> LauncherEnvironment::number(const std::string& name, int low, int high) const {
  const std::string value = variable(name);
  if (value.empty()) return std::nullopt;
  const std::optional<int> number = number_in<int>(value);
  if (!number || *number < low || *number > high) {
    fail(name, config::shown(value) + " is not accepted; accepted: a whole number from " +
                   std::to_string(low) + " to " + std::to_string(high));
  }
  return number;
}

int LauncherEnvironment::need_number(const std::string& name, int low, int high,
                                     const std::string& because) const {
  const auto value = number(name, low, high);
  if (!value) fail(name, "not set, " + because);
  return *value;
}

std::string LauncherEnvironment::need_text(const std::string& name,
                                           const std::string& because) const {
  std::string value = variable(name);
  if (value.empty()) fail(name, "not set, " + because);
  return value;
}

std::uint16_t own_port(const LauncherEnvironment& environment, int local_rank,
                       std::uint16_t first) {
  const int base = environment.number("DPWA_PORT", 1, most_ports).value_or(first);
  if (base == 0) return 0;
  if (base + local_rank > most_ports)
    environment.fail("DPWA_PORT", std::to_string(base) + " and local rank " +
                                      std::to_string(local_rank) +
                                      " make no port; accepted: a smaller one");
  return static_cast<std::uint16_t>(base + local_rank);
}

bool is_torchrun(const LauncherEnvironment& environment) {
  return environment.has("TORCHELASTIC_RUN_ID");
}

// A batch script has SLURM_PROCID too, but is not a step.
bool is_slurm_step(const LauncherEnvironment& environment) {
  return environment.has("SLURM_STEP_ID") && environment.has("SLURM_PROCID");
}

std::string first_host(const std::string& list) {
  std::string name;
  for (std::size_t at = 0; at < list.size() && list[at] != ','; ++at) {
    if (list[at] != '[') {
      name += list[at];
      continue;
    }
    const auto close = std::min(list.find(']', at), list.size());
    const auto end = std::min(list.find_first_of(",-", at), close);
    name += list.substr(at + 1, end - at - 1);
    at = close;
  }
  return name;
}

std::optional<LaunchPlace> find_place(const LauncherEnvironment& environment) {
  auto claim = first_claim(claims_of_processes(), environment);
  if (!claim) claim = first_claim(claims_of_pods(), environment);
  if (!claim) return std::nullopt;
  if (is_torchrun(environment)) return claim->place;  // it has set all of them
  require_agreement(environment, *claim);
  set_meeting(environment, *claim);
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
  found.starter = starter_of_this;
  return found;
}

}  // namespace dpwa::launch
