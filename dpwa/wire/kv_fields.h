#pragma once

#include <variant>

#include "dpwa/kvstore/messages.h"
#include "dpwa/wire/fields.h"

namespace dpwa::wire {

// In the order of the types that they have on the wire.
using InOrder =
    std::variant<kvstore::Init, kvstore::Push, kvstore::Pull, kvstore::Answer, kvstore::Forward,
                 kvstore::Sync, kvstore::Copy, kvstore::Stored, kvstore::Want, kvstore::Beat,
                 kvstore::Ballot, kvstore::Promise, kvstore::Proposal, kvstore::Vote,
                 kvstore::EpochNews, kvstore::AskEpoch, kvstore::StateMessage, kvstore::Barrier>;

// The fields of a message of the store, in the order of the layouts in kv_fields.cpp.
void write_fields(Writer& out, const kvstore::Message& message);
// `type`: one of those of the store (is_kv_type()).
kvstore::Message read_fields(Reader& in, MessageType type);

}  // namespace dpwa::wire
