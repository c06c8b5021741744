#include "dpwa/config/sections.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

bool is_planned(const std::string& mode) {
  return mode == "psk" || mode == "mtls";
}

}  // namespace

// psk and mtls are names of the format that this version cannot serve: refused, never ignored.
void read_security(const Section& section, SecurityConfig& security) {
  for (const char* mode : {"psk", "mtls"}) {
    if (const Field* field = section.find(mode)) {
      field->fail("not available in this version; accepted: mode: insecure");
    }
  }
  const Field& mode = section.need("mode", "insecure");
  if (mode.is_scalar() && is_planned(mode.text())) {
    mode.fail(shown(mode.text()) + " is not available in this version; accepted: insecure");
  }
  security.mode = mode.choice({"insecure"});
  section.accept_only({"mode"});
}

}  // namespace dpwa::config
