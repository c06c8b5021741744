#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "dpwa/base/time.h"
#include "dpwa/config/config.h"
#include "dpwa/net/local_process.h"
#include "dpwa/net/server_options.h"

namespace boost::asio {
class io_context;
}

namespace dpwa {

class Server;

// What the file says of serving, to a process that listens as `at` says.
ServerOptions server_options(const Config& config, const NodeEntry& at);

// A process of the cluster as the others reach it: listens at its address, admits callers, answers
// their requests, and reads its keys again. Its one I/O thread blocks all signals. Used by one
// thread, except for reload_security().
class Endpoint {
 public:
  // Of a process that no other node calls: observers get its status, and connections of nodes are
  // closed without an answer, so for its peers the node is absent. Throws ConfigError as below.
  Endpoint(const Config& config, std::uint64_t incarnation);
  // `at`: where it listens. `on_contact`: called on the I/O thread when a node has called. Before
  // it listens, serve_status() is called, and handlers of more requests are added to server().
  // Throws ConfigError when the files of the security section cannot be used.
  Endpoint(const Config& config, NodeEntry at, std::unique_ptr<LocalProcess> local,
           ServerOptions options, OnContact on_contact = {});
  ~Endpoint();  // stops
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  // How its status is found, on the I/O thread: a JSON object, for STATUS_REQUEST and, where the
  // file has a port for them, for its metrics.
  void serve_status(std::function<boost::asio::awaitable<std::string>()> describe);

  // When the address is in use, tries again until `patience` is over; when a process of this
  // cluster answers there, gives up after about a second. Throws std::runtime_error when it cannot
  // listen at the address.
  void listen(Duration patience);
  // Serves on this thread, which becomes the I/O thread, until the server has stopped.
  void run();
  // Listens, and runs on a thread of its own.
  void start(Duration patience = Duration::zero());
  void stop_serving();  // I/O thread: its sockets close, and run() returns
  void stop();          // ends that thread; from any state, in well under a second; idempotent

  // Reads the files of the security section again, if there are any, and logs the result. New
  // connections use them; existing connections continue. When they cannot be used, the old ones
  // stay in use. Any thread.
  void reload_security();

  std::uint16_t port() const;  // in use, once it listens
  LocalProcess& local();
  Server& server();
  boost::asio::io_context& io();  // of the I/O thread

 private:
  struct Parts;
  const std::unique_ptr<Parts> parts_;
};

}  // namespace dpwa
