#include "dpwa/config/sections.h"

namespace dpwa::config {

// An unquoted `backend: null` is YAML's null, and here the name of a back end.
Backend read_backend(const Field& field) {
  if (field.is_explicit_null()) return Backend::null;
  const std::string name = field.choice({"gossip", "collective", "kvstore", "null"});
  if (name == "collective") return Backend::collective;
  if (name == "kvstore") return Backend::kvstore;
  return name == "null" ? Backend::null : Backend::gossip;
}

}  // namespace dpwa::config
