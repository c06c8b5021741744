#include "dpwa/launch/place.h"

#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "dpwa/base/numbers.h"
#include "dpwa/base/random.h"
#include "dpwa/config/config.h"
#include "dpwa/config/text.h"

namespace dpwa::launch {
namespace {

// The claim of a launcher about a process that it has started, with the variables that make it.
struct Claim {
  std::string rank_variable, size_variable;
  LaunchPlace place;
};

constexpr int most_ranks = 65536;
constexpr int most_ports = 65535;
constexpr auto started_by_torchrun = "TORCHELASTIC_RUN_ID is set";
constexpr int kubernetes_port = 29500;  // every pod has ports of its own

// A port below those that the kernel gives to outgoing connections. It is the same for all
// processes of a run, and most likely another one for another run on the host.
std::uint16_t port_of(const std::string& run) {
  constexpr std::uint64_t first = 12'000, count = 20'000;
  return static_cast<std::uint16_t>(first + hash_of(run) % count);
}

// `sign`: the variable that shows that the launcher has started this process.
Claim read_rank(const LauncherEnvironment& environment, const std::string& launcher,
                const std::string& sign, const std::string& rank, const std::string& size) {
  Claim claim{rank, size, {}};
  claim.place.launcher = launcher;
  const std::string half = "though " + sign + "; accepted: " + rank + " and " + size + " together";
  claim.place.rank = environment.need_number(rank, 0, most_ranks - 1, half);
  claim.place.size = environment.need_number(size, 1, most_ranks, half);
  if (claim.place.rank >= claim.place.size) {
    environment.fail(rank, "there is no rank " + std::to_string(claim.place.rank) + " among " +
                               std::to_string(claim.place.size) + " (" + size +
                               "); accepted: 0 to " + std::to_string(claim.place.size - 1));
  }
  return claim;
}

// mpirun's own host: "687669248.0;tcp://192.0.2.2,10.0.0.1:53957;tcp6://..." says where it listens.
std::string host_of_mpirun(const std::string& uri) {
  const std::string mark = ";tcp://";
  const auto begin = uri.find(mark);
  if (begin == std::string::npos) return {};
  const auto from = begin + mark.size();
  return uri.substr(from, uri.find_first_of(",:;", from) - from);
}

// "train-0.job.default.svc" of "train-2.job.default.svc"; empty where there is no domain.
std::string first_pod(const std::string& full_host_name) {
  const auto dot = full_host_name.find('.');
  if (dot == std::string::npos) return {};
  const auto dash = full_host_name.rfind('-', dot);
  if (dash == std::string::npos) return {};
  return full_host_name.substr(0, dash) + "-0" + full_host_name.substr(dot);
}

std::optional<int> ordinal_of(const std::string& host_name) {
  const auto dash = host_name.rfind('-');
  if (dash == std::string::npos || dash == 0) return std::nullopt;
  const std::string digits = host_name.substr(dash + 1);
  const bool number =
      !digits.empty() && digits.size() < 6 &&
      std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  return number ? std::optional<int>(std::stoi(digits)) : std::nullopt;
}

// One function for each launcher: its claim; none: it has not started this process. They throw
// ConfigError for an incomplete environment and for a rank that does not exist.

std::optional<Claim> claim_of_torchrun(const LauncherEnvironment& environment) {
  if (!environment.has("TORCHELASTIC_RUN_ID")) return std::nullopt;
  Claim claim = read_rank(environment, "torchrun", started_by_torchrun, "RANK", "WORLD_SIZE");
  LaunchPlace& place = claim.place;
  const std::string because =
      std::string("though ") + started_by_torchrun + "; accepted: what torchrun sets";
  place.meeting_host = environment.need_text("MASTER_ADDR", because);
  place.meeting_port =
      static_cast<std::uint16_t>(environment.need_number("MASTER_PORT", 1, most_ports, because));
  place.hosted = environment.variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  place.local_rank = environment.number("LOCAL_RANK", 0, most_ranks - 1).value_or(0);
  place.one_host = environment.number("LOCAL_WORLD_SIZE", 1, most_ranks) == place.size;
  place.run = environment.variable("TORCHELASTIC_RUN_ID") + "/" +
              environment.variable("TORCHELASTIC_RESTART_COUNT");
  return claim;
}

std::optional<Claim> claim_of_open_mpi(const LauncherEnvironment& environment) {
  if (!environment.has("OMPI_COMM_WORLD_RANK") && !environment.has("OMPI_COMM_WORLD_SIZE"))
    return std::nullopt;
  Claim claim = read_rank(environment, "Open MPI", "mpirun has started this process",
                          "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  LaunchPlace& place = claim.place;
  place.local_rank =
      environment.number("OMPI_COMM_WORLD_LOCAL_RANK", 0, most_ranks - 1).value_or(0);
  place.one_host = environment.number("OMPI_COMM_WORLD_LOCAL_SIZE", 1, most_ranks) == place.size;
  const std::string mpirun = environment.variable("OMPI_MCA_orte_hnp_uri");
  place.run =
      "mpi/" + environment.variable("PMIX_NAMESPACE") + "/" + mpirun.substr(0, mpirun.find(';'));
  if (!place.one_host) place.meeting_host = host_of_mpirun(mpirun);
  place.meeting_port = port_of(place.run);
  return claim;
}

// A batch script has SLURM_PROCID too, but is not a step.
std::optional<Claim> claim_of_slurm(const LauncherEnvironment& environment) {
  if (!environment.has("SLURM_STEP_ID") || !environment.has("SLURM_PROCID")) return std::nullopt;
  const std::string size =
      environment.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Claim claim =
      read_rank(environment, "Slurm", "srun has started this process", "SLURM_PROCID", size);
  LaunchPlace& place = claim.place;
  place.local_rank = environment.number("SLURM_LOCALID", 0, most_ranks - 1).value_or(0);
  place.one_host = environment.number("SLURM_STEP_NUM_NODES", 1, most_ranks) == 1;
  const std::string list =
      environment.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  if (!place.one_host) place.meeting_host = first_host(environment.variable(list));
  place.run = "slurm/" + environment.variable("SLURM_JOB_ID") + "." +
              environment.variable("SLURM_STEP_ID") + "/" +
              environment.variable("SLURM_RESTART_COUNT");
  place.meeting_port = port_of(place.run);
  return claim;
}

// A pod of an Indexed Job, or of a StatefulSet. Neither kind is told the number of pods.
std::optional<Claim> claim_of_kubernetes(const LauncherEnvironment& environment) {
  const bool indexed = environment.has("JOB_COMPLETION_INDEX");
  const auto ordinal = ordinal_of(environment.host_name);
  const bool in_set = environment.has("KUBERNETES_SERVICE_HOST") && environment.has("WORLD_SIZE") &&
                      !environment.has("RANK") && ordinal;
  if (!indexed && !in_set) return std::nullopt;
  Claim claim;
  if (indexed) {
    if (!environment.has("WORLD_SIZE")) {
      environment.fail("WORLD_SIZE",
                       "not set, and a Job does not tell its pods how many they are; accepted: "
                       "spec.completions of the Job, in its manifest");
    }
    claim = read_rank(environment, "Kubernetes", "this is a pod of an Indexed Job",
                      "JOB_COMPLETION_INDEX", "WORLD_SIZE");
  } else {
    claim = {"the host name " + environment.host_name, "WORLD_SIZE", {}};
    claim.place.launcher = "Kubernetes";
    claim.place.rank = *ordinal;
    claim.place.size = environment.need_number("WORLD_SIZE", 1, most_ranks, "");
    if (*ordinal >= claim.place.size)
      environment.fail("WORLD_SIZE", std::to_string(claim.place.size) +
                                         " does not count this pod, " + environment.host_name +
                                         "; accepted: spec.replicas of the StatefulSet");
  }
  claim.place.meeting_host = first_pod(environment.full_host_name());
  claim.place.meeting_port = kubernetes_port;
  claim.place.run = "kubernetes";
  return claim;
}

// RANK and WORLD_SIZE by themselves: of a script, or of a launcher that imitates torchrun.
std::optional<Claim> claim_of_variables(const LauncherEnvironment& environment) {
  if (!environment.has("RANK") && !environment.has("WORLD_SIZE")) return std::nullopt;
  const std::string other = environment.has("RANK") ? "RANK" : "WORLD_SIZE";
  Claim claim = read_rank(environment, "the environment", other + " is set", "RANK", "WORLD_SIZE");
  claim.place.local_rank = environment.number("LOCAL_RANK", 0, most_ranks - 1).value_or(0);
  claim.place.one_host = environment.number("LOCAL_WORLD_SIZE", 1, most_ranks) == claim.place.size;
  claim.place.run = "environment";
  return claim;
}

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
  auto claim = claim_of_torchrun(environment);
  if (claim) return claim->place;
  claim = claim_of_open_mpi(environment);
  if (!claim) claim = claim_of_slurm(environment);
  if (!claim) claim = claim_of_kubernetes(environment);
  if (!claim) claim = claim_of_variables(environment);
  if (!claim) return std::nullopt;
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
  return found;
}

}  // namespace dpwa::launch
