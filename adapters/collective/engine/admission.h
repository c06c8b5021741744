#pragma once

#include <c10/util/intrusive_ptr.h>

#include <stop_token>
#include <string>

#include "adapters/collective/engine/engine.h"

namespace dpwa::collective {

// Before any connection is made: waits in the store until every rank has come, exactly once, with
// the same size, epoch and engine. A member that does not fit fails all of them with one sentence,
// where an engine would wait or mix up its connections. Throws CollectiveError: usage for members
// that do not fit; timeout, with the ranks that have not come; lost when the store's host goes;
// cancelled when `stop` is requested.
void admit(const c10::intrusive_ptr<c10d::Store>& store, const GroupOptions& options,
           const std::string& engine, const std::stop_token& stop);

}  // namespace dpwa::collective
