#include "dpwa/attach/pass_server.h"

#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "dpwa/log/log.h"
#include "dpwa/snapshot/landing.h"
#include "dpwa/snapshot/memory_file.h"

namespace dpwa::attach {

PassAnswer PassServer::answer(const PassRequest& request, FileDescriptor file) {
  try {
    return {make(request, std::move(file)), {}};
  } catch (const std::exception& failed) {
    const std::string why = failed.what();
    return {0, why.empty() ? "a pass over the parameters failed" : why};
  }
}

double PassServer::make(const PassRequest& request, FileDescriptor file) {
  using Kind = PassRequest::Kind;
  switch (request.kind) {
    case Kind::memory:
      map(request.range.length, std::move(file));
      return 0;
    case Kind::release:
      memory_.at(request.memory) = {};
      return 0;
    case Kind::copy_out:
      parameters_.copy_out(memory_.at(request.memory).bytes());
      return 0;
    case Kind::fetch:
      parameters_.fetch(landing_in(request));
      return 0;
    case Kind::blend:
      parameters_.blend(landing_in(request), request.factor);
      return 0;
    case Kind::assign:
      parameters_.assign(memory_.at(request.memory).bytes());
      return 0;
    case Kind::fetched:
      return parameters_.fetched() ? 1 : 0;
    case Kind::settled:
      return parameters_.settled() ? 1 : 0;
    case Kind::unfinished_copies:
      return static_cast<double>(parameters_.unfinished_copies());
    case Kind::landing_is_free:
      return parameters_.landing_is_free() ? 1 : 0;
    case Kind::loss: {
      const double loss = losses_.at(request.send)();
      losses_.erase(losses_.begin(), losses_.upper_bound(request.send));
      return loss;
    }
  }
  throw std::runtime_error("an unknown pass");
}

Landing PassServer::landing_in(const PassRequest& request) const {
  const AlignedBuffer& landed = memory_.at(request.memory);
  Landing landing(parameters_.manifest(), [&landed](std::size_t) { return landed; });
  landing.begin(request.mode, nullptr, request.range);
  return landing;
}

void PassServer::map(std::size_t bytes, FileDescriptor file) {
  if (bytes != parameters_.manifest().total_bytes())
    throw std::runtime_error("the node process sent memory for another model");
  auto mapped = MemoryFile::open(std::move(file), bytes, MemoryFile::Access::write);
  if (!mapped) throw std::runtime_error("the node process " + mapped.error());
  std::byte* const data = (*mapped)->data();
  AlignedBuffer buffer(std::shared_ptr<std::byte>(std::move(*mapped), data), bytes);
  parameters_.lock(buffer);
  memory_.push_back(std::move(buffer));
}

void PassServer::end() noexcept {
  try {
    while (!memory_.empty() && !parameters_.settled()) std::this_thread::yield();
  } catch (const std::exception& failed) {  // a device that has failed copies no more
    log(LogLevel::warn, "attach", failed.what());
  }
  memory_.clear();
  losses_.clear();
  sends_ = 0;
}

}  // namespace dpwa::attach
