#pragma once

#include <memory>

#include "dpwa/config/config.h"
#include "dpwa/kvclient/store_client.h"

namespace dpwa {
class Security;
}

namespace dpwa::kvclient {

// The options of the worker `config.self`, as a new incarnation. `security`: of make_security().
StoreClientOptions client_options(const Config& config, std::shared_ptr<Security> security);

}  // namespace dpwa::kvclient
