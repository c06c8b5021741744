#include "dpwa/attach/node_service.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <utility>

#include "dpwa/attach/attached_gossip.h"
#include "dpwa/attach/protocol.h"
#include "dpwa/attach/remote_parameters.h"
#include "dpwa/base/on_exit.h"
#include "dpwa/config/open_log.h"
#include "dpwa/gossip/gossip.h"
#include "dpwa/gossip/gossip_node.h"
#include "dpwa/gossip/host_parameters.h"
#include "dpwa/ipc/unix_socket.h"
#include "dpwa/log/log.h"
#include "dpwa/node/endpoint.h"
#include "dpwa/security/security.h"
#include "dpwa/wire/frame.h"
#include "dpwa/wire/messages.h"

namespace dpwa::attach {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

namespace {

constexpr auto introduction = std::chrono::seconds(5);  // for the first messages of a caller
// How long to poll for the second half of a step, after the answer to its first, before sleeping.
// The optimizer of a small model takes less; to be woken would take longer than to answer.
constexpr auto soon = std::chrono::microseconds(200);

std::string text_of(const json& reply) {
  return reply.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

}  // namespace

NodeService::NodeService(Config config, std::function<Config()> reload, Signals signals)
    : reload_(std::move(reload)), signals_(std::move(signals)), config_(std::move(config)) {}

NodeService::~NodeService() = default;

void NodeService::run() {
  FileDescriptor listener;
  try {
    listener =
        listen_for_trainers(socket_name(config_.cluster, config_.self, config_.self_node().port));
  } catch (const std::runtime_error& error) {
    throw std::runtime_error("node '" + config_.self + "': " + error.what());
  }
  make_security(config_);  // throws ConfigError when its files cannot be used
  log(LogLevel::info, "node", "waiting for a trainer of '" + config_.self + "'");
  while (!signals_.stop()) {
    stay_visible();
    std::vector<int> sockets{listener.get()};
    if (trainer_.is_open()) {
      sockets.push_back(trainer_.descriptor());
      if (second_half_.due_since && second_half_.comes_soon)
        ipc::expect_soon(trainer_.descriptor(), soon);
    }
    ipc::wait_for_any(sockets, ipc::look_every);
    if (signals_.take_reload()) reload_.begin();
    reload_.poll([this](Config fresh) { take_up(std::move(fresh)); });
    // A caller may come after the last trainer has gone, which is noticed first then.
    const bool has_caller = ipc::is_readable(listener.get());
    if (trainer_.is_open() && ipc::is_readable(trainer_.descriptor())) serve();
    if (has_caller) admit(ipc::MessageSocket(ipc::accept_from(listener.get())));
  }
  leave();
  ipc::stop_listening(listener.get());
}

void NodeService::admit(ipc::MessageSocket caller) {
  if (!caller.is_open()) return;
  const auto deadline = SteadyClock::now() + (trainer_.is_open() ? ipc::look_every : introduction);
  const auto late = [&] { return SteadyClock::now() >= deadline || signals_.stop(); };
  FileDescriptor file;
  const auto request = caller.receive(&file, late);
  if (!request) return;
  try {
    if (trainer_.is_open())
      throw std::runtime_error("node '" + config_.self + "' has a trainer: " + trainer_name_);
    const json told = json::parse(*request);
    check(told);
    if (told.contains("tensors")) {
      next_ = plain_model_in(told);
    } else {
      caller.send(text_of({{"state", to_json(state_)}, {"version", protocol_version}}));
      const auto frame = caller.receive(nullptr, late);
      if (!frame) return;
      next_ = model_in(told, *frame, std::move(file));
    }
    trainer_name_ = "process " + std::to_string(told.at("process").get<int>());
  } catch (const std::exception& error) {
    log(LogLevel::warn, "node", std::string("refused a trainer: ") + error.what());
    caller.send(text_of({{"error", error.what()}}));
    return;
  }
  trainer_ = std::move(caller);
  json reply{{"state", to_json(state_)}};
  const auto& memory = next_->parameters;
  const int descriptor = memory ? memory->descriptor() : -1;  // of memory of this process
  if (descriptor >= 0) {
    const Manifest& manifest = next_->manifest;
    reply["bytes"] = manifest.total_bytes();
    for (std::size_t i = 0; i < manifest.tensors().size(); ++i)
      reply["offsets"].push_back(manifest.offset_of(i));
  }
  if (!trainer_.send(text_of(reply), descriptor)) trainer_is_gone();
}

void NodeService::check(const json& told) const {
  const auto problem = version_problem(told, "the trainer");
  if (!problem.empty()) throw std::runtime_error(problem);
  const auto cluster = told.at("cluster").get<std::string>();
  const auto node = told.at("node").get<std::string>();
  if (told.at("do") == "attach" && cluster == config_.cluster && node == config_.self) return;
  throw std::runtime_error("this is node '" + config_.self + "' of cluster '" + config_.cluster +
                           "'");
}

NodeService::Model NodeService::model_in(const json& told, const std::string& frame,
                                         FileDescriptor file) {
  const auto bytes = std::as_bytes(std::span(frame));
  if (bytes.size() < wire::header_bytes) throw std::runtime_error("its model is cut short");
  auto manifest = wire::decode_manifest(bytes.subspan(wire::header_bytes));
  if (!manifest) throw std::runtime_error("its model: " + manifest.error().detail);
  Model model;
  model.manifest = std::move(*manifest);
  model.threads = told.at("threads").get<unsigned>();
  if (!told.at("seed").is_null()) model.seed = told.at("seed").get<std::uint64_t>();
  model.copies_at_once = told.at("copies").get<std::size_t>();
  if (model.copies_at_once > 0) return model;
  auto parameters =
      MemoryFile::open(std::move(file), model.manifest.total_bytes(), MemoryFile::Access::write);
  if (!parameters) throw std::runtime_error("it " + parameters.error());
  model.parameters = std::move(*parameters);
  return model;
}

NodeService::Model NodeService::plain_model_in(const json& told) {
  Model model;
  model.manifest = manifest_in(told.at("tensors"));
  model.threads = std::max(1U, told.value("threads", 1U));
  model.parameters = allocate_parameters(model.manifest.total_bytes());
  return model;
}

void NodeService::serve() {
  const auto message = trainer_.receive(nullptr, signals_.stop);
  if (!message) return trainer_is_gone();
  if (const auto since = std::exchange(second_half_.due_since, std::nullopt))
    second_half_.comes_soon = SteadyClock::now() - *since < soon;
  std::string reply;
  try {
    if (const auto step = step_request_in(*message)) {
      reply = encode(answer(*step));
    } else {
      json told = answer(json::parse(*message));
      told["state"] = to_json(state_);
      reply = text_of(told);
    }
  } catch (const TrainerGone&) {
    if (!step_request_in(*message)) leave();  // a start or an end that is half done
    return trainer_is_gone();
  } catch (const std::exception& error) {
    reply = text_of({{"error", error.what()}});
    leave();
  }
  if (trainer_.send(reply)) return;
  if (!step_request_in(*message)) leave();  // nobody waits for that start or end any more
  trainer_is_gone();
}

json NodeService::answer(const json& request) {
  const auto wanted = request.at("do").get<std::string>();
  json reply = json::object();
  if (wanted == "start") {
    at_any_time(
        [&] { start(request.value("resume", json(nullptr)), request.value("waited", 0.0)); });
  } else if (wanted == "reload") {
    reload_.begin();
  } else if (wanted == "leave") {
    leave();
  } else if (gossip_ == nullptr) {
    throw std::runtime_error("the node is not on the network");
  } else if (wanted == "send" || wanted == "wait") {
    StepRequest step{wanted == "send" ? StepRequest::Half::send : StepRequest::Half::wait, {}};
    if (wanted == "send" || request.contains("loss")) step.loss = number_in(request.at("loss"));
    const StepAnswer made = answer(step);
    reply["report"] = made.report ? to_json(*made.report) : json(nullptr);
  } else if (wanted == "show") {
    try {
      gossip_->show(request.at("name").get<std::string>(), number_in(request.at("value")));
    } catch (const std::logic_error& refused) {  // a name; the run goes on
      reply["error"] = refused.what();
    }
  } else if (wanted == "finish") {
    at_any_time([&] { reply["finished"] = to_json(gossip_->finish()); });
    leave();
  } else {
    throw std::runtime_error("unknown request");
  }
  if (gossip_) state_ = gossip_->resume_state();
  return reply;
}

StepAnswer NodeService::answer(const StepRequest& request) {
  if (gossip_ == nullptr) throw std::runtime_error("the node is not on the network");
  StepAnswer reply;
  if (request.half == StepRequest::Half::wait) {
    reply.report = gossip_->update_wait(loss_in(request));
  } else {
    if (!request.loss && !remote_) throw std::runtime_error("a step without a loss");
    ++sends_;
    gossip_->update_send(loss_in(request));
    if (gossip_->has_blended() || config_.gossip.step_budget == Duration::zero()) {
      reply.report = gossip_->update_wait();
    } else {
      second_half_.due_since = SteadyClock::now();
    }
  }
  reply.state = state_ = gossip_->resume_state();
  return reply;
}

// That of a device is there with the snapshot, and asked for then.
std::function<double()> NodeService::loss_in(const StepRequest& request) {
  if (request.loss) return [loss = *request.loss] { return loss; };
  if (request.half == StepRequest::Half::wait) return {};
  return [remote = remote_, send = sends_] { return remote->loss(send); };
}

void NodeService::at_any_time(const std::function<void()>& lasting) {
  signals_.defer(false);
  const OnExit over([this] { signals_.defer(true); });
  if (signals_.stop()) throw std::runtime_error("the node process is told to stop");
  lasting();
}

void NodeService::start(const json& resume, double waited) {
  if (!next_) throw std::runtime_error("started twice");
  Model model = *std::exchange(next_, std::nullopt);
  std::optional<GossipState> state;
  if (!resume.is_null()) state = resume_state_in(resume);
  if (state && !(std::isfinite(state->clock) && state->clock >= 0))
    throw std::runtime_error("resume: a clock that is no number from 0 on");
  std::shared_ptr<const Snapshot> continued;
  if (gossip_) {
    // The last trainer has died. Its memory may hold half a step, but its last snapshot is
    // complete.
    const auto last = gossip_->node().local().store.latest();
    const auto descent = gossip_->resume_state();
    const bool same = parameters_->manifest().fingerprint() == model.manifest.fingerprint();
    leave();
    if (!state && last && same && descent.lineage != 0) {
      continued = last;
      state = descent;
    }
  }
  trainer_seed_ = model.seed;
  memory_ = std::move(model.parameters);
  sends_ = 0;
  if (memory_) {
    const std::span values(memory_->data(), model.manifest.total_bytes());
    parameters_ =
        std::make_unique<HostParameters>(std::move(model.manifest), values, model.threads);
  } else {
    auto remote = std::make_unique<RemoteParameters>(std::move(model.manifest),
                                                     model.copies_at_once, trainer_, signals_.stop);
    remote_ = remote.get();
    parameters_ = std::move(remote);
  }
  if (continued) parameters_->assign(continued->bytes());
  waiting_.reset();
  gossip_ = std::make_unique<Gossip>(with_trainers_seed(config_), *parameters_);
  if (state) gossip_->restore(*state);
  const std::chrono::duration<double> seconds(waited);
  gossip_->start_after(std::chrono::duration_cast<Duration>(seconds));
}

Config NodeService::with_trainers_seed(Config config) const {
  if (trainer_seed_) config.gossip.seed = trainer_seed_;
  return config;
}

void NodeService::take_up(Config fresh) {
  if (gossip_) {
    gossip_->reload(with_trainers_seed(fresh));
  } else {
    make_security(fresh);
    open_log(fresh).use();
    waiting_.reset();  // stay_visible() makes a new one from the new file
  }
  config_ = std::move(fresh);
}

// The process keeps running although the address is in use: it may be free long before a trainer
// comes.
void NodeService::stay_visible() {
  if (gossip_ || waiting_) return;
  try {
    auto waiting = std::make_unique<Endpoint>(config_, /*incarnation=*/0);
    waiting->local().notes.set("state", R"("waiting")");
    waiting->start();
    waiting_ = std::move(waiting);
    not_visible_.clear();
  } catch (const std::exception& error) {
    if (not_visible_ != error.what())
      log(LogLevel::warn, "node",
          std::string("this node does not answer dpwa status yet: ") + error.what());
    not_visible_ = error.what();
  }
}

void NodeService::leave() {
  gossip_.reset();  // leaves the network
  parameters_.reset();
  remote_ = nullptr;
  memory_.reset();
}

void NodeService::trainer_is_gone() {
  trainer_.close();
  next_.reset();
  second_half_.due_since.reset();
  if (gossip_ == nullptr) return;
  LocalNode& local = gossip_->node().local();
  local.stale = true;
  log(LogLevel::warn, "node",
      "the trainer (" + trainer_name_ + ") is gone: serving its snapshot of clock " +
          std::to_string(local.store.progress().clock) + " until it is back");
}

}  // namespace dpwa::attach
