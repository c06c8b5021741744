#include "dpwa/launch/claims.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "dpwa/base/random.h"
#include "dpwa/config/text.h"

namespace dpwa::launch {
namespace {

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

// mpirun's own host, of Open MPI 4: "687669248.0;tcp://192.0.2.2,10.0.0.1:53957;tcp6://..." says
// where it listens.
std::string host_of_mpirun(const std::string& uri) {
  const std::string mark = ";tcp://";
  const auto begin = uri.find(mark);
  if (begin == std::string::npos) return {};
  const auto from = begin + mark.size();
  return uri.substr(from, uri.find_first_of(",:;", from) - from);
}

// mpirun's own host, of Open MPI 5: "prterun-head-11301@1" names it before its process.
std::string host_of_prterun(const std::string& name_space) {
  const std::string_view mark = "prterun-";
  const auto end = name_space.rfind('-');
  if (!name_space.starts_with(mark) || end == std::string::npos || end < mark.size()) return {};
  return name_space.substr(mark.size(), end - mark.size());
}

// "train-7" is "train" and 7.
struct Numbered {
  std::string stem;
  int number = 0;
};

std::optional<Numbered> numbered(const std::string& host_name) {
  const auto dash = host_name.rfind('-');
  if (dash == std::string::npos || dash == 0) return std::nullopt;
  const std::string digits = host_name.substr(dash + 1);
  const bool number =
      !digits.empty() && digits.size() < 6 &&
      std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
  if (!number) return std::nullopt;
  return Numbered{host_name.substr(0, dash), std::stoi(digits)};
}

// "train-0.job.default.svc" of "train-2.job.default.svc"; in a Job of a JobSet, the first pod of
// its first Job: "set-train-0-0.set" of "set-train-1-2.set". Empty where that is not known.
std::string first_pod(const std::string& full_host_name, std::optional<int> job) {
  const auto dot = full_host_name.find('.');
  if (dot == std::string::npos) return {};
  const std::string domain = full_host_name.substr(dot);
  const auto pod = numbered(full_host_name.substr(0, dot));
  if (!pod) return {};
  if (!job) return pod->stem + "-0" + domain;
  const auto in_set = numbered(pod->stem);
  // Where Jobs are replicas of several kinds, their indices differ from those in their names.
  if (!in_set || in_set->number != *job) return {};
  return in_set->stem + "-0-0" + domain;
}

std::optional<Claim> claim_of_torchrun(const LauncherEnvironment& environment) {
  if (!is_torchrun(environment)) return std::nullopt;
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
  if (!place.one_host && place.meeting_host.empty())
    place.meeting_host = host_of_prterun(environment.variable("PMIX_NAMESPACE"));
  place.meeting_port = port_of(place.run);
  return claim;
}

// MPICH and Intel MPI. Their processes under Slurm inherit the variables of the step that started
// mpiexec's own; a step that speaks PMI itself says the same as Slurm, which knows more.
std::optional<Claim> claim_of_pmi(const LauncherEnvironment& environment) {
  if (!environment.has("PMI_RANK") && !environment.has("PMI_SIZE")) return std::nullopt;
  const auto repeats = [&environment](const std::string& name, const std::string& of_slurm) {
    return !environment.has(name) || environment.variable(name) == environment.variable(of_slurm);
  };
  if (is_slurm_step(environment) && repeats("PMI_RANK", "SLURM_PROCID") &&
      repeats("PMI_SIZE", "SLURM_STEP_NUM_TASKS"))
    return std::nullopt;
  Claim claim =
      read_rank(environment, "MPICH", "mpiexec has started this process", "PMI_RANK", "PMI_SIZE");
  LaunchPlace& place = claim.place;
  place.local_rank = environment.number("MPI_LOCALRANKID", 0, most_ranks - 1).value_or(0);
  place.one_host = environment.number("MPI_LOCALNRANKS", 1, most_ranks) == place.size;
  const std::string starter = place.one_host ? environment.starter("PMI_RANK") : "";
  place.run = "pmi/" + starter;
  if (!starter.empty()) place.meeting_port = port_of(place.run);
  return claim;
}

std::optional<Claim> claim_of_slurm(const LauncherEnvironment& environment) {
  if (!is_slurm_step(environment)) return std::nullopt;
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

// The containers of a TrainJob of Kubeflow Trainer, where torchrun is not their command.
std::optional<Claim> claim_of_kubeflow(const LauncherEnvironment& environment) {
  if (!environment.has("PET_NNODES") || !environment.has("PET_NODE_RANK")) return std::nullopt;
  const std::string processes = environment.variable("PET_NPROC_PER_NODE");
  if (!processes.empty() && processes != "1") {
    environment.fail("PET_NPROC_PER_NODE",
                     config::shown(processes) +
                         " is for torchrun, which has not started this process; accepted: 1 "
                         "(numProcPerNode of the TrainJob), or torchrun as the command");
  }
  Claim claim = read_rank(environment, "Kubeflow", "this is a node of a TrainJob", "PET_NODE_RANK",
                          "PET_NNODES");
  LaunchPlace& place = claim.place;
  place.meeting_host = environment.variable("PET_MASTER_ADDR");
  place.meeting_port = static_cast<std::uint16_t>(
      environment.number("PET_MASTER_PORT", 1, most_ports).value_or(kubernetes_port));
  place.run = "kubeflow";
  return claim;
}

// A pod of a Job of Volcano with the plugins env and svc: the pods of its task are the nodes. The
// host name is that of the Job, the task and the pod, such as "job-worker-2".
std::optional<Claim> claim_of_volcano(const LauncherEnvironment& environment) {
  if (!environment.has("VC_TASK_INDEX") || environment.has("RANK")) return std::nullopt;
  const auto pod = numbered(environment.host_name);
  const std::string stem = pod ? pod->stem : "";
  for (auto dash = stem.find('-'); dash != std::string::npos; dash = stem.find('-', dash + 1)) {
    std::string task = stem.substr(dash + 1);
    std::ranges::transform(task, task.begin(), [](unsigned char letter) {
      return letter == '-' ? '_' : static_cast<char>(std::toupper(letter));
    });
    const std::string count = "VC_" + task + "_NUM";
    if (!environment.has(count)) continue;
    Claim claim =
        read_rank(environment, "Volcano", "this is a pod of a Job", "VC_TASK_INDEX", count);
    const std::string hosts = environment.variable("VC_" + task + "_HOSTS");
    claim.place.meeting_host = hosts.substr(0, hosts.find(','));
    claim.place.meeting_port = kubernetes_port;
    claim.place.run = "volcano";
    return claim;
  }
  return std::nullopt;
}

// Of the Jobs of a JobSet each counts its pods from 0. The manifest passes the index of the Job and
// the number of its pods, the same in all Jobs.
void count_jobs(const LauncherEnvironment& environment, Claim& claim, int job) {
  LaunchPlace& place = claim.place;
  const std::string because = "though DPWA_JOB_INDEX is set; accepted: the pods of each Job";
  const int pods = environment.need_number("DPWA_JOB_PODS", 1, most_ranks, because);
  if (place.size % pods != 0 || place.rank >= pods) {
    environment.fail("DPWA_JOB_PODS", std::to_string(pods) + " pods in each Job do not make " +
                                          std::to_string(place.size) +
                                          " (WORLD_SIZE); accepted: Jobs of equal size");
  }
  place.rank += job * pods;
  if (place.rank >= place.size) {
    environment.fail("DPWA_JOB_INDEX", "there is no Job " + std::to_string(job) + " among " +
                                           std::to_string(place.size / pods) + "; accepted: 0 to " +
                                           std::to_string(place.size / pods - 1));
  }
}

// A pod of an Indexed Job, also within a JobSet, or of a StatefulSet. None is told the number of
// pods.
std::optional<Claim> claim_of_kubernetes(const LauncherEnvironment& environment) {
  const bool indexed = environment.has("JOB_COMPLETION_INDEX");
  const auto pod = numbered(environment.host_name);
  const bool in_set = environment.has("KUBERNETES_SERVICE_HOST") && environment.has("WORLD_SIZE") &&
                      !environment.has("RANK") && pod;
  if (!indexed && !in_set) return std::nullopt;
  Claim claim;
  const auto job = environment.number("DPWA_JOB_INDEX", 0, most_ranks - 1);
  if (indexed) {
    if (!environment.has("WORLD_SIZE")) {
      environment.fail("WORLD_SIZE",
                       "not set, and a Job does not tell its pods how many they are; accepted: "
                       "spec.completions of the Job, in its manifest");
    }
    claim = read_rank(environment, "Kubernetes", "this is a pod of an Indexed Job",
                      "JOB_COMPLETION_INDEX", "WORLD_SIZE");
    if (job) count_jobs(environment, claim, *job);
  } else {
    claim = {"the host name " + environment.host_name, "WORLD_SIZE", {}};
    claim.place.launcher = "Kubernetes";
    claim.place.rank = pod->number;
    claim.place.size = environment.need_number("WORLD_SIZE", 1, most_ranks, "");
    if (pod->number >= claim.place.size)
      environment.fail("WORLD_SIZE", std::to_string(claim.place.size) +
                                         " does not count this pod, " + environment.host_name +
                                         "; accepted: spec.replicas of the StatefulSet");
  }
  claim.place.meeting_host = first_pod(environment.full_host_name(), job);
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

}  // namespace

const std::vector<ClaimOf>& claims_of_processes() {
  static const std::vector<ClaimOf>& claims =
      *new std::vector<ClaimOf>{claim_of_torchrun, claim_of_open_mpi, claim_of_pmi, claim_of_slurm};
  return claims;
}

const std::vector<ClaimOf>& claims_of_pods() {
  static const std::vector<ClaimOf>& claims = *new std::vector<ClaimOf>{
      claim_of_kubeflow, claim_of_volcano, claim_of_kubernetes, claim_of_variables};
  return claims;
}

std::optional<Claim> first_claim(const std::vector<ClaimOf>& claims,
                                 const LauncherEnvironment& environment) {
  for (const ClaimOf claim_of : claims)
    if (auto claim = claim_of(environment)) return claim;
  return std::nullopt;
}

}  // namespace dpwa::launch
