#include <doctest/doctest.h>

#include <map>

#include "dpwa/config/config.h"
#include "dpwa/launch/nodes.h"
#include "dpwa/launch/place.h"
#include "dpwa/launch/preemption.h"

namespace dpwa::launch {
namespace {

using Variables = std::map<std::string, std::string>;

LauncherEnvironment of(const Variables& variables, const std::string& host = "node7",
                       const std::string& full_host = "") {
  return {[variables](const std::string& name) {
            const auto found = variables.find(name);
            return found == variables.end() ? std::string() : found->second;
          },
          host, [full_host] { return full_host; },
          [](const std::string& variable) { return "7@1 without " + variable; }};
}

LaunchPlace place_of(const LauncherEnvironment& environment) {
  const auto place = find_place(environment);
  REQUIRE(place.has_value());
  return *place;
}

std::string problem_of(const LauncherEnvironment& environment) {
  try {
    find_place(environment);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

// As the launchers set them, seen with torchrun 2.13, Open MPI 4.1 and Slurm 22.05.
const Variables torchrun{{"RANK", "3"},
                         {"WORLD_SIZE", "4"},
                         {"LOCAL_RANK", "1"},
                         {"LOCAL_WORLD_SIZE", "2"},
                         {"MASTER_ADDR", "head"},
                         {"MASTER_PORT", "35147"},
                         {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                         {"TORCHELASTIC_RUN_ID", "dd47"},
                         {"TORCHELASTIC_RESTART_COUNT", "2"}};
const Variables open_mpi{
    {"OMPI_COMM_WORLD_RANK", "1"},
    {"OMPI_COMM_WORLD_SIZE", "4"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"PMIX_NAMESPACE", "687669249"},
    {"OMPI_MCA_orte_hnp_uri", "687669248.0;tcp://192.0.2.2,10.0.0.1:53957;tcp6://[fd00::2]:54137"}};
const Variables slurm{{"SLURM_STEP_ID", "0"},
                      {"SLURM_JOB_ID", "17"},
                      {"SLURM_PROCID", "2"},
                      {"SLURM_STEP_NUM_TASKS", "3"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_STEP_NUM_NODES", "2"},
                      {"SLURM_STEP_NODELIST", "n[03-04]"}};
const Variables job{
    {"JOB_COMPLETION_INDEX", "2"}, {"WORLD_SIZE", "4"}, {"KUBERNETES_SERVICE_HOST", "10.96.0.1"}};
const Variables plain{
    {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "29500"}};

}  // namespace

TEST_CASE("without a launcher there is no place") {
  CHECK_FALSE(find_place(of({})));
  CHECK_FALSE(find_place(of({{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}})));
}

TEST_CASE("torchrun gives rank, size, and the store of its agent") {
  const auto place = place_of(of(torchrun));
  CHECK(place.launcher == "torchrun");
  CHECK(place.rank == 3);
  CHECK(place.size == 4);
  CHECK(place.local_rank == 1);
  CHECK_FALSE(place.one_host);
  CHECK(place.meeting_host == "head");
  CHECK(place.meeting_port == 35147);
  CHECK(place.hosted);
}

TEST_CASE("a restart by torchrun is a run of its own") {
  const auto before = place_of(of(torchrun));
  const auto after = place_of(of(with(torchrun, {{"TORCHELASTIC_RESTART_COUNT", "3"}})));
  CHECK(before.run != after.run);
}

TEST_CASE("without an agent's store rank 0 hosts the meeting") {
  CHECK_FALSE(place_of(of(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}}))).hosted);
}

TEST_CASE("mpirun on one host needs nothing more: a loopback address and a port of the job") {
  const auto place = place_of(of(open_mpi));
  CHECK(place.launcher == "Open MPI");
  CHECK(place.rank == 1);
  CHECK(place.size == 4);
  CHECK(place.local_rank == 1);
  CHECK(place.one_host);
  CHECK_FALSE(place.hosted);
  CHECK(place.meeting_host == "127.0.0.1");
  CHECK(place.meeting_port >= 12000);
  CHECK(place.meeting_port < 32000);
  const auto other = place_of(of(with(open_mpi, {{"PMIX_NAMESPACE", "687669250"}})));
  CHECK(other.run != place.run);
  CHECK(other.meeting_port != place.meeting_port);
}

TEST_CASE("mpirun on several hosts meets at its own host, or at MASTER_ADDR") {
  const auto several = with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  CHECK(place_of(of(several)).meeting_host == "192.0.2.2");
  const auto given =
      place_of(of(with(several, {{"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}})));
  CHECK(given.meeting_host == "head");
  CHECK(given.meeting_port == 29500);
  CHECK(problem_of(of(without(several, "OMPI_MCA_orte_hnp_uri"))) ==
        "environment: MASTER_ADDR: not set, and Open MPI has started 4 processes that have to find "
        "one another; accepted: the host of rank 0, as all reach it");
}

TEST_CASE("Open MPI 5 names the host of mpirun in its name space") {
  const auto several = without(with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                               {"PMIX_NAMESPACE", "prterun-login-1-11301@1"}}),
                               "OMPI_MCA_orte_hnp_uri");
  CHECK(place_of(of(several)).meeting_host == "login-1");
}

// As mpiexec of MPICH 5.0 sets them.
const Variables mpich{
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

TEST_CASE("MPICH on one host meets on a port that only its mpiexec gives") {
  const auto place = place_of(of(mpich));
  CHECK(place.launcher == "MPICH");
  CHECK(place.rank == 1);
  CHECK(place.local_rank == 1);
  CHECK(place.meeting_host == "127.0.0.1");
  auto beside = of(mpich);
  beside.starter = [](const std::string&) { return "8@1"; };
  CHECK(place_of(beside).meeting_port != place.meeting_port);
  auto hidden = of(mpich);
  hidden.starter = [](const std::string&) { return ""; };
  CHECK(problem_of(hidden).starts_with("environment: MASTER_PORT: not set, and MPICH has started"));
}

TEST_CASE("MPICH on several hosts needs MASTER_ADDR and MASTER_PORT") {
  const auto several = with(mpich, {{"MPI_LOCALNRANKS", "1"}});
  CHECK(problem_of(of(several)).starts_with("environment: MASTER_ADDR: not set, and MPICH has"));
  CHECK(place_of(of(with(several, {{"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}}))).rank == 1);
}

TEST_CASE("MPICH's own step of Slurm does not count, and a step that speaks PMI does") {
  const auto inside = with(slurm, mpich);
  CHECK(place_of(of(inside)).launcher == "MPICH");
  const auto same = with(inside, {{"PMI_RANK", "2"}, {"PMI_SIZE", "3"}});
  CHECK(place_of(of(same)).launcher == "Slurm");
  CHECK(place_of(of(without(same, "PMI_SIZE"))).launcher == "Slurm");
  CHECK(problem_of(of(without(inside, "PMI_SIZE"))).starts_with("environment: PMI_SIZE: not set"));
}

TEST_CASE("half of what mpiexec sets is refused") {
  CHECK(problem_of(of(without(mpich, "PMI_SIZE"))) ==
        "environment: PMI_SIZE: not set, though mpiexec has started this process; accepted: "
        "PMI_RANK and PMI_SIZE together");
  CHECK(problem_of(of(without(mpich, "PMI_RANK"))).starts_with("environment: PMI_RANK: not set"));
}

TEST_CASE("srun gives the first host of the step") {
  const auto place = place_of(of(slurm));
  CHECK(place.launcher == "Slurm");
  CHECK(place.rank == 2);
  CHECK(place.size == 3);
  CHECK(place.meeting_host == "n03");
  CHECK(place.run != place_of(of(with(slurm, {{"SLURM_STEP_ID", "1"}}))).run);
  CHECK(place_of(of(with(slurm, {{"SLURM_STEP_NUM_NODES", "1"}}))).meeting_host == "127.0.0.1");
}

TEST_CASE("a batch script of Slurm is no process of a step") {
  CHECK_FALSE(find_place(of(without(slurm, "SLURM_STEP_ID"))));
}

TEST_CASE("the first host of a list as Slurm writes it") {
  CHECK(first_host("n1") == "n1");
  CHECK(first_host("n1,n2") == "n1");
  CHECK(first_host("n[03-07,9],m1") == "n03");
  CHECK(first_host("rack[2,4]-n[10-11].site") == "rack2-n10.site");
  CHECK(first_host("m,n[1-2]") == "m");
  CHECK(first_host("n[5") == "n5");
  CHECK(first_host("") == "");
}

TEST_CASE("a pod of an Indexed Job meets the first pod of its service") {
  const auto place = place_of(of(job, "train-2", "train-2.train.default.svc.cluster.local"));
  CHECK(place.launcher == "Kubernetes");
  CHECK(place.rank == 2);
  CHECK(place.size == 4);
  CHECK(place.meeting_host == "train-0.train.default.svc.cluster.local");
  CHECK(place.meeting_port == 29500);
}

TEST_CASE("a pod of a JobSet counts the pods of the Jobs before its own") {
  const auto set =
      with(job, {{"WORLD_SIZE", "8"}, {"DPWA_JOB_INDEX", "1"}, {"DPWA_JOB_PODS", "4"}});
  const auto place = place_of(of(set, "run-node-1-2", "run-node-1-2.run.default.svc"));
  CHECK(place.rank == 6);
  CHECK(place.meeting_host == "run-node-0-0.run.default.svc");
  CHECK(problem_of(of(with(set, {{"DPWA_JOB_PODS", "3"}}), "run-node-1-2")) ==
        "environment: DPWA_JOB_PODS: 3 pods in each Job do not make 8 (WORLD_SIZE); accepted: Jobs "
        "of equal size");
  CHECK(problem_of(of(with(set, {{"DPWA_JOB_INDEX", "2"}}), "run-node-2-2"))
            .starts_with("environment: DPWA_JOB_INDEX: there is no Job 2 among 2; "));
  CHECK(problem_of(of(without(set, "DPWA_JOB_PODS"), "run-node-1-2"))
            .starts_with("environment: DPWA_JOB_PODS: not set, though DPWA_JOB_INDEX is set; "));
  // Job 1 of all is the first of its kind: the first pod of all has another name.
  CHECK(problem_of(of(set, "run-other-0-2", "run-other-0-2.run.default.svc"))
            .starts_with("environment: MASTER_ADDR: not set, and Kubernetes has started 8 "));
}

TEST_CASE("a node of a TrainJob without torchrun") {
  const Variables train_job{{"PET_NNODES", "4"},          {"PET_NPROC_PER_NODE", "1"},
                            {"PET_NODE_RANK", "2"},       {"PET_MASTER_ADDR", "run-node-0-0.run"},
                            {"PET_MASTER_PORT", "29400"}, {"JOB_COMPLETION_INDEX", "2"}};
  const auto place = place_of(of(train_job, "run-node-0-2"));
  CHECK(place.launcher == "Kubeflow");
  CHECK(place.rank == 2);
  CHECK(place.size == 4);
  CHECK(place.meeting_host == "run-node-0-0.run");
  CHECK(place.meeting_port == 29400);
  for (const char* processes : {"2", "auto", "gpu"})
    CHECK(problem_of(of(with(train_job, {{"PET_NPROC_PER_NODE", processes}}))) ==
          "environment: PET_NPROC_PER_NODE: '" + std::string(processes) +
              "' is for torchrun, which has not started this process; accepted: 1 (numProcPerNode "
              "of the TrainJob), or torchrun as the command");
  CHECK(place_of(of(with(train_job, torchrun))).launcher == "torchrun");
}

TEST_CASE("the pods of one task of a Job of Volcano") {
  const Variables volcano{{"VC_TASK_INDEX", "1"},
                          {"VC_BIG_NODE_NUM", "3"},
                          {"VC_BIG_NODE_HOSTS", "run-big-node-0.run,run-big-node-1.run"},
                          {"VC_OTHER_NUM", "9"}};
  const auto place = place_of(of(volcano, "run-big-node-1"));
  CHECK(place.launcher == "Volcano");
  CHECK(place.rank == 1);
  CHECK(place.size == 3);
  CHECK(place.meeting_host == "run-big-node-0.run");
  // The plugin pytorch counts the pods of all tasks.
  CHECK(place_of(of(with(volcano, plain), "run-big-node-1")).rank == 0);
}

TEST_CASE("a pod of a StatefulSet has its rank from its host name") {
  const Variables set{{"KUBERNETES_SERVICE_HOST", "10.96.0.1"}, {"WORLD_SIZE", "4"}};
  const auto place = place_of(of(set, "web-app-3", "web-app-3.web.ns.svc"));
  CHECK(place.rank == 3);
  CHECK(place.meeting_host == "web-app-0.web.ns.svc");
  CHECK(problem_of(of(set, "web-4", "web-4.web.ns.svc"))
            .starts_with("environment: WORLD_SIZE: 4 does not count this pod, web-4; accepted: "));
  // A pod by itself.
  CHECK_FALSE(find_place(of(without(set, "WORLD_SIZE"), "web-3")));
}

TEST_CASE("a pod says which of its settings are missing") {
  CHECK(problem_of(of(without(job, "WORLD_SIZE"), "train-2"))
            .starts_with("environment: WORLD_SIZE: not set, and a Job does not tell its pods "));
  CHECK(problem_of(of(job, "train-2", "train-2"))
            .starts_with("environment: MASTER_ADDR: not set, and Kubernetes has started 4 "));
}

TEST_CASE("RANK and WORLD_SIZE by themselves are a place with MASTER_ADDR and MASTER_PORT") {
  const auto place = place_of(of(plain));
  CHECK(place.rank == 0);
  CHECK(place.size == 2);
  CHECK(place.meeting_host == "10.0.0.1");
  CHECK(place.meeting_port == 29500);
  CHECK_FALSE(place.hosted);
  CHECK(problem_of(of(without(plain, "MASTER_PORT"))) ==
        "environment: MASTER_PORT: not set, and the environment has started 2 processes that have "
        "to find one another; accepted: a free TCP port of the host of rank 0");
  CHECK(place_of(of({{"RANK", "0"}, {"WORLD_SIZE", "1"}})).size == 1);  // nobody to meet
}

TEST_CASE("half a place is an error that names the other half") {
  CHECK(problem_of(of(without(plain, "RANK"))) ==
        "environment: RANK: not set, though WORLD_SIZE is set; accepted: RANK and WORLD_SIZE "
        "together");
  CHECK(problem_of(of(without(plain, "WORLD_SIZE"))) ==
        "environment: WORLD_SIZE: not set, though RANK is set; accepted: RANK and WORLD_SIZE "
        "together");
  CHECK(problem_of(of(without(torchrun, "RANK")))
            .starts_with("environment: RANK: not set, though TORCHELASTIC_RUN_ID is set; "));
  CHECK(problem_of(of(without(torchrun, "MASTER_ADDR")))
            .starts_with("environment: MASTER_ADDR: not set, though TORCHELASTIC_RUN_ID is set; "));
  CHECK(problem_of(of(without(open_mpi, "OMPI_COMM_WORLD_SIZE")))
            .starts_with("environment: OMPI_COMM_WORLD_SIZE: not set, though mpirun has started "));
}

TEST_CASE("a rank that does not exist, and words for numbers, are errors") {
  CHECK(problem_of(of(with(plain, {{"RANK", "2"}}))) ==
        "environment: RANK: there is no rank 2 among 2 (WORLD_SIZE); accepted: 0 to 1");
  CHECK(problem_of(of(with(plain, {{"RANK", "-1"}}))) ==
        "environment: RANK: '-1' is not accepted; accepted: a whole number from 0 to 65535");
  CHECK(problem_of(of(with(plain, {{"WORLD_SIZE", "2x"}})))
            .starts_with("environment: WORLD_SIZE: '2x' is not accepted; "));
  CHECK(problem_of(of(with(plain, {{"MASTER_PORT", "70000"}})))
            .starts_with("environment: MASTER_PORT: '70000' is not accepted; "));
}

TEST_CASE("RANK and WORLD_SIZE beside a launcher must say what it says") {
  CHECK(place_of(of(with(slurm, {{"RANK", "2"}, {"WORLD_SIZE", "3"}}))).rank == 2);
  CHECK(problem_of(of(with(slurm, {{"RANK", "1"}, {"WORLD_SIZE", "3"}}))) ==
        "environment: RANK: 1 contradicts Slurm, which has started this process as SLURM_PROCID 2 "
        "of SLURM_STEP_NUM_TASKS 3; accepted: the same, or no RANK");
  CHECK(problem_of(of(with(open_mpi, {{"WORLD_SIZE", "2"}})))
            .starts_with("environment: WORLD_SIZE: 2 contradicts Open MPI, "));
  CHECK(problem_of(of(with(job, {{"RANK", "0"}}), "train-2", "train-2.train"))
            .starts_with("environment: RANK: 0 contradicts Kubernetes, "));
}

TEST_CASE("a launcher that was started by another one counts") {
  CHECK(place_of(of(with(with(slurm, torchrun), job))).launcher == "torchrun");
  CHECK(place_of(of(with(slurm, open_mpi))).launcher == "Open MPI");
  CHECK(place_of(of(with(without(job, "WORLD_SIZE"), slurm))).launcher == "Slurm");
}

TEST_CASE("by seeds a process has the name of its rank, and a pod that of its host") {
  const auto ranked = seeded_place(of(torchrun));
  CHECK(ranked.name == "rank3");
  CHECK(ranked.local_rank == 1);
  REQUIRE(ranked.share);
  CHECK(ranked.share->index == 3);
  CHECK(ranked.share->of == 4);
  const auto pod = seeded_place(of(job, "train-2"));
  CHECK(pod.name.empty());
  REQUIRE(pod.share);
  CHECK(pod.share->index == 2);
  // A Job tells its pods their index, and not how many they are.
  CHECK_FALSE(seeded_place(of(without(job, "WORLD_SIZE"), "train-2")).share);
  CHECK_FALSE(seeded_place(of({})).share);
  const auto script = seeded_place(of({{"RANK", "5"}}));
  CHECK(script.name == "rank5");
  CHECK_FALSE(script.share);
  CHECK(seeded_place(of(torchrun), "job7-%r").name == "job7-3");
  CHECK_THROWS_WITH_AS(seeded_place(of(job, "train-2"), "job7-%r"),
                       "--name or DPWA_NAME: 'job7-%r' is for a process that has a rank; accepted: "
                       "a name, or torchrun, srun, mpirun, or RANK in the environment",
                       ConfigError);
}

TEST_CASE("processes of one host have ports in a row, where the first one is known") {
  CHECK(own_port(of({}), 3) == 0);
  CHECK(own_port(of({}), 3, 24000) == 24003);
  CHECK(own_port(of({{"DPWA_PORT", "7000"}}), 3, 24000) == 7003);
  CHECK_THROWS_WITH(own_port(of({{"DPWA_PORT", "65535"}}), 1),
                    "environment: DPWA_PORT: 65535 and local rank 1 make no port; accepted: a "
                    "smaller one");
}

TEST_CASE("a preempted process fails no run of its launcher, and is replaced elsewhere") {
  Config config;
  CHECK(preempted_code(config, of(job)) == 143);
  CHECK(preempted_code(config, of({})) == 143);
  CHECK(preempted_code(config, of(torchrun)) == 0);
  CHECK(preempted_code(config, of(slurm)) == 0);
  CHECK(preempted_code(config, of(open_mpi)) == 0);
  CHECK(preempted_code(config, of({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})) == 0);
  config.preempted_exit_code = 99;
  CHECK(preempted_code(config, of(torchrun)) == 99);
}

TEST_CASE("the grace before the engine kills a process") {
  CHECK_FALSE(grace_seconds(of({})));
  CHECK(grace_seconds(of({{"DPWA_GRACE_S", "30"}})) == 30);
  CHECK_THROWS_WITH_AS(grace_seconds(of({{"DPWA_GRACE_S", "30s"}})),
                       "environment: DPWA_GRACE_S: '30s' is not accepted; accepted: a whole number "
                       "from 1 to 86400",
                       ConfigError);
}

namespace {

Introduction at(const std::string& host, const std::string& meeting_point = "127.0.0.1",
                std::vector<int> processors = {0, 1}) {
  Introduction introduction;
  introduction.host = host;
  introduction.port = 20000;
  introduction.meeting_point = meeting_point;
  introduction.processors = std::move(processors);
  return introduction;
}

std::vector<std::string> hosts(const std::vector<NodeEntry>& nodes) {
  std::vector<std::string> names;
  for (const NodeEntry& node : nodes) names.push_back(node.host);
  return names;
}

using Hosts = std::vector<std::string>;

}  // namespace

TEST_CASE("processes of one host are nodes on its loopback address, named by their ranks") {
  const auto nodes = settle({at("127.0.0.1"), at("127.0.0.1")});
  CHECK(hosts(nodes) == Hosts{"127.0.0.1", "127.0.0.1"});
  CHECK(nodes[0].name == "rank0");
  CHECK(nodes[1].name == "rank1");
  CHECK(nodes[1].port == 20000);
}

TEST_CASE("a process beside the meeting point is where the others reached that point") {
  const auto nodes =
      settle({at("127.0.1.1", "0.0.0.0"), at("10.0.0.2", "10.0.0.1"), at("::1", "::1")});
  CHECK(hosts(nodes) == Hosts{"10.0.0.1", "10.0.0.2", "10.0.0.1"});
}

TEST_CASE("addresses that others reach stay as they are") {
  const auto nodes = settle({at("10.0.0.1", "10.0.0.1"), at("10.0.0.2", "10.0.0.1")});
  CHECK(hosts(nodes) == Hosts{"10.0.0.1", "10.0.0.2"});
}

TEST_CASE("a host that the user gave stays, and the listening address with it") {
  Introduction given = at("127.0.0.1", "127.0.0.1");
  given.host_given = true;
  given.bind = "0.0.0.0";
  const auto nodes = settle({given, at("10.0.0.2", "10.0.0.1")});
  CHECK(hosts(nodes) == Hosts{"127.0.0.1", "10.0.0.2"});
  CHECK(nodes[0].bind == "0.0.0.0");
}

TEST_CASE("an address that nobody else can know is an error that says what to set") {
  Introduction given = at("node9", "127.0.0.1");
  given.host_given = true;
  CHECK_THROWS_WITH(settle({at("127.0.0.1"), given}),
                    "no address is known at which the other processes reach rank0; accepted: "
                    "DPWA_HOST in its environment, or MASTER_ADDR as the address of its host");
}

TEST_CASE("processes that were bound to processors of their own have these as cores") {
  const std::string host = "127.0.0.1";
  const auto bound = settle({at(host, host, {0, 1}), at(host, host, {2, 3})});
  CHECK(bound[0].cores == std::vector<int>{0, 1});
  CHECK(bound[1].cores == std::vector<int>{2, 3});
  const auto shared = settle({at(host, host, {0, 1}), at(host, host, {1, 2})});
  CHECK(shared[0].cores.empty());
  const auto apart = settle({at("10.0.0.1", "10.0.0.1", {0}), at("10.0.0.2", "10.0.0.1", {1})});
  CHECK(apart[0].cores.empty());
}

TEST_CASE("what a process tells arrives as it was") {
  Introduction introduction = at("10.0.0.2", "10.0.0.1", {4, 5});
  introduction.host_given = true;
  introduction.bind = "0.0.0.0";
  const Introduction read = introduction_from(to_text(introduction));
  CHECK(read.host == introduction.host);
  CHECK(read.host_given);
  CHECK(read.bind == introduction.bind);
  CHECK(read.port == introduction.port);
  CHECK(read.meeting_point == introduction.meeting_point);
  CHECK(read.processors == introduction.processors);
  for (const char* text : {"", "{}", "[1]",
                           R"({"host":"","host_given":false,"bind":"","port":1,)"
                           R"("meeting_point":"","processors":[]})"})
    CHECK_THROWS_AS(introduction_from(text), std::runtime_error);
}

TEST_CASE("ranks count the nodes of a file that lists them") {
  Config config =
      parse_cluster("nodes: [{name: a, port: 1}, {name: b, port: 2}]\n", "cluster.yaml");
  LaunchPlace place;
  place.launcher = "Slurm";
  place.rank = 1;
  place.size = 2;
  CHECK(name_in_file(config, place) == "b");
  place.size = 3;
  CHECK_THROWS_WITH(name_in_file(config, place),
                    "cluster.yaml:1: nodes: the file lists 2, and Slurm has started 3 processes; "
                    "accepted: as many, no list (the processes are the nodes then), or --name, "
                    "which the launcher does not overrule");
  config.self = "w%r";
  CHECK(name_in_file(config, place) == "w1");
}

TEST_CASE(
    "a process has the number that its launcher gave it, and one of a script that of the file") {
  Config config = parse_cluster(
      "nodes: [{name: a, port: 1}, {name: b, port: 2}, {name: c, port: 3}]\n", "cluster.yaml");
  for (NodeEntry& node : config.nodes) node.addresses = {"127.0.0.1"};
  const Variables of_torchrun = with(torchrun, {{"RANK", "2"}, {"LOCAL_RANK", "1"}});
  config.self = "c";
  CHECK(local_rank(config, of(of_torchrun)) == 1);
  CHECK(local_rank(config, of({})) == 2);
  CHECK(local_rank(config, of({{"WORLD_SIZE", "2"}})) == 2);  // of something else
  config.self = "b";  // a script has given all its processes the variables of rank 2
  CHECK(local_rank(config, of(of_torchrun)) == 1);
  config.self = "a";
  CHECK(local_rank(config, of(of_torchrun)) == 0);
  config.nodes = {config.nodes[0]};  // as one that joins
  CHECK(local_rank(config, of(of_torchrun)) == 1);
  config.by_seeds = true;  // needs no meeting
  CHECK(local_rank(config, of({{"RANK", "3"}, {"LOCAL_RANK", "1"}})) == 1);
  CHECK(local_rank(config, of({{"JOB_COMPLETION_INDEX", "1"}})) == 0);
}

}  // namespace dpwa::launch
