#include "dpwa/wire/kv_routes.h"

#include <array>
#include <cstddef>

#include "dpwa/wire/kv_messages.h"

namespace dpwa::wire {
namespace {

struct Row {
  MessageType type;
  bool worker_to_server;
  bool server_to_server;
  bool server_to_worker;
};

constexpr bool yes = true;
constexpr bool no = false;

using enum MessageType;
constexpr std::array<Row, 21> rows{{
    // type            worker to server, server to server, server to worker
    {kv_init, yes, no, no},        {kv_push, yes, no, no},          {kv_pull, yes, no, no},
    {kv_answer, no, yes, yes},     {kv_forward, no, yes, no},       {kv_sync, no, yes, no},
    {kv_copy, no, yes, no},        {kv_stored, no, yes, no},        {kv_want, no, yes, no},
    {kv_beat, yes, yes, no},       {kv_ballot, no, yes, yes},       {kv_promise, yes, yes, no},
    {kv_proposal, no, yes, yes},   {kv_vote, yes, yes, no},         {kv_epoch, yes, yes, yes},
    {kv_ask_epoch, yes, yes, yes}, {kv_state, yes, no, yes},        {kv_barrier, yes, no, yes},
    {kv_push_mapped, yes, no, no}, {kv_answer_mapped, no, no, yes}, {kv_read, yes, no, no},
}};

// Every number from the first type to the last has its row.
constexpr bool is_whole() {
  for (std::size_t place = 0; place < rows.size(); ++place) {
    if (static_cast<std::size_t>(rows[place].type) !=
        static_cast<std::size_t>(first_kv_type) + place)
      return false;
  }
  return rows.back().type == kv_read;
}
static_assert(is_whole());

std::vector<TypeBound> bounds(bool Row::*route) {
  std::vector<TypeBound> result;
  for (const Row& row : rows) {
    if (!(row.*route)) continue;
    const bool is_read = row.type == kv_read;
    result.push_back({row.type, is_read ? kv_read_bytes : max_kv_body_bytes(row.type)});
  }
  return result;
}

}  // namespace

const std::vector<TypeBound>& kv_types(KvRoute route) {
  static const auto& from_worker = *new auto(bounds(&Row::worker_to_server));
  static const auto& from_server = *new auto(bounds(&Row::server_to_server));
  static const auto& to_worker = *new auto(bounds(&Row::server_to_worker));
  switch (route) {
    case KvRoute::worker_to_server:
      return from_worker;
    case KvRoute::server_to_server:
      return from_server;
    case KvRoute::server_to_worker:
      break;
  }
  return to_worker;
}

}  // namespace dpwa::wire
