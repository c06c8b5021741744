#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <utility>

namespace dpwa::net {

// Why a frame could not be read or written.
struct IoFailure {
  IoFailure() = default;
  IoFailure(bool is_protocol, bool is_version_mismatch, std::string what)
      : protocol(is_protocol), version_mismatch(is_version_mismatch), detail(std::move(what)) {}

  bool protocol =
      false;  // bytes arrived that are no valid frame; otherwise the stream broke or ended
  bool version_mismatch = false;  // a frame of another protocol version
  bool security = false;          // one end does not accept how the other proves who it is
  std::string detail;
};
template <typename T>
using IoResult = boost::system::result<T, IoFailure>;

}  // namespace dpwa::net
