#include "dpwa/attach/attached_gossip.h"

#include <unistd.h>

#include <chrono>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "dpwa/attach/protocol.h"
#include "dpwa/gossip/gossip_session.h"
#include "dpwa/log/log.h"
#include "dpwa/wire/messages.h"

namespace dpwa::attach {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

namespace {

// How long to poll for an answer before sleeping: longer than a node process takes to wake and to
// copy a small model. A trainer has nothing else to do until its answer comes.
constexpr auto answer_within = std::chrono::microseconds(200);

}  // namespace

std::shared_ptr<MemoryFile> allocate_parameters(std::size_t bytes) {
  auto memory = MemoryFile::create(bytes, MemoryFile::Access::write, "dpwa-parameters");
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

AttachedGossip::AttachedGossip(const Config& config, Manifest manifest,
                               std::shared_ptr<MemoryFile> parameters, unsigned threads)
    : config_(config),
      manifest_(std::move(manifest)),
      parameters_(std::move(parameters)),
      threads_(threads) {
  pull_blocks(config_, manifest_);  // the node process would refuse the same later
}

AttachedGossip::AttachedGossip(const Config& config, Parameters& parameters)
    : AttachedGossip(config, parameters.manifest(), nullptr, /*threads=*/1) {
  passes_ = std::make_unique<PassServer>(parameters);
}

void AttachedGossip::restore(const GossipState& state) {
  state_ = state;
  resumed_ = true;
}

GossipState AttachedGossip::resume_state() const {
  return state_;
}

void AttachedGossip::start() {
  const std::string name = socket_name(config_.cluster, config_.self, config_.self_node().port);
  const auto begun = SteadyClock::now();
  const auto deadline = begun + config_.gossip.start_wait;
  const auto connect = [this, &name] {
    auto socket = ipc::connect_to(name);
    if (socket) node_ = ipc::MessageSocket(std::move(*socket));
  };
  connect();
  if (!node_.is_open())
    log(LogLevel::info, "attach", "waiting for the node process of '" + config_.self + "'");
  while (!node_.is_open() && SteadyClock::now() < deadline) {
    if (broken_off_) throw std::runtime_error("the start was broken off");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    connect();
  }
  if (!node_.is_open()) {
    throw std::runtime_error("no node process of '" + config_.self +
                             "' runs here (gossip.daemon: true); start it: dpwa node --config " +
                             config_.file.string() + " --name " + config_.self);
  }
  const std::chrono::duration<double> waited = SteadyClock::now() - begun;
  json request{{"do", "start"}, {"resume", nullptr}, {"waited", waited.count()}};
  if (resumed_) request["resume"] = to_json(state_);
  attach();
  ask(request);
}

void AttachedGossip::attach() {
  json request{{"do", "attach"},       {"version", protocol_version}, {"cluster", config_.cluster},
               {"node", config_.self}, {"process", ::getpid()},       {"threads", threads_},
               {"seed", nullptr}};
  if (config_.gossip.seed) request["seed"] = *config_.gossip.seed;
  request["copies"] = passes_ ? passes_->parameters().copies_at_once() : 0;
  const json answer = ask(request, passes_ ? -1 : parameters_->descriptor());
  const auto problem = version_problem(answer, "the node process of '" + config_.self + "'");
  if (!problem.empty()) throw std::runtime_error(problem);
  const auto frame = wire::encode(manifest_, 0);
  if (!node_.send({reinterpret_cast<const char*>(frame.data()), frame.size()})) throw gone();
  answer_in(receive());
}

json AttachedGossip::ask(const json& request, int descriptor) {
  if (!node_.send(request.dump(), descriptor)) throw gone();
  return answer_in(receive([this] { return broken_off_.load(); }));
}

std::string AttachedGossip::receive(const std::function<bool()>& give_up) {
  while (true) {
    ipc::expect_soon(node_.descriptor(), answer_within);
    FileDescriptor file;
    auto message = node_.receive(&file, give_up);
    if (!message && give_up && give_up()) throw std::runtime_error("the call was broken off");
    if (!message) throw gone();
    const auto pass = passes_ ? pass_request_in(*message) : std::nullopt;
    if (!pass) return *std::move(message);
    if (!node_.send(encode(passes_->answer(*pass, std::move(file))))) throw gone();
  }
}

void AttachedGossip::close() {
  node_.close();
  if (passes_) passes_->end();
}

json AttachedGossip::answer_in(const std::string& message) {
  json answer = json::parse(message, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("error"))
    throw std::runtime_error(answer["error"].get<std::string>());
  state_ = resume_state_in(answer.at("state"));
  return answer;
}

std::runtime_error AttachedGossip::gone() const {
  return std::runtime_error("the node process of '" + config_.self + "' (dpwa node) has ended");
}

StepAnswer AttachedGossip::ask_half(const StepRequest& request) {
  if (!node_.send(encode(request))) throw gone();
  const std::string message = receive();
  if (auto answer = step_answer_in(message)) {
    state_ = answer->state;
    return *std::move(answer);
  }
  answer_in(message);  // throws its error
  throw std::runtime_error("the node process of '" + config_.self + "' did not answer the step");
}

void AttachedGossip::update_send(const std::function<double()>& loss) {
  StepRequest request{StepRequest::Half::send, std::nullopt};
  if (passes_) {
    passes_->add_loss(loss);
  } else {
    request.loss = loss();
  }
  ended_ = ask_half(request).report;
}

StepReport AttachedGossip::update_wait(const std::function<double()>& loss) {
  if (ended_) return *std::exchange(ended_, std::nullopt);
  StepRequest request{StepRequest::Half::wait, std::nullopt};
  if (loss) request.loss = loss();
  return ask_half(request).report.value();
}

void AttachedGossip::show(const std::string& name, double value) {
  ask({{"do", "show"}, {"name", name}, {"value", number(value)}});
}

void AttachedGossip::reload(const Config&) {
  ask({{"do", "reload"}});
}

FinishReport AttachedGossip::finish() {
  if (!node_.is_open()) return {};
  const auto report = finish_report_in(ask({{"do", "finish"}}).at("finished"));
  close();
  return report;
}

void AttachedGossip::leave() {
  if (!node_.is_open()) return;
  try {
    ask({{"do", "leave"}});
  } catch (const std::exception& error) {  // the node process has left
    log(LogLevel::warn, "attach", error.what());
  }
  close();
}

}  // namespace dpwa::attach
