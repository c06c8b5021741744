#include <algorithm>
#include <filesystem>

#include "dpwa/config/sections.h"
#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

const std::vector<std::string> keys = {"mode", "key_file", "ca", "cert", "key"};

std::vector<std::string> keys_of(const std::string& mode) {
  if (mode == "psk") return {"key_file"};
  if (mode == "mtls") return {"ca", "cert", "key"};
  return {};
}

// Relative paths start at the cluster file.
std::string read_path(const Field& field) {
  const std::string accepted = "the path of a file; {name} in it stands for the node's name";
  const std::string text = field.text(accepted);
  if (text.empty() || text.find('\0') != std::string::npos) field.fail_type("a path", accepted);
  const std::filesystem::path file(field.locations().file());
  return (std::filesystem::absolute(file).parent_path() / text).lexically_normal().string();
}

std::string* place_of(SecurityConfig& security, const std::string& key) {
  if (key == "key_file") return &security.key_file;
  if (key == "ca") return &security.ca;
  return key == "cert" ? &security.cert : &security.key;
}

}  // namespace

void read_security(const Section& section, SecurityConfig& security) {
  section.accept_only(keys);
  security.mode = section.need("mode", "insecure, psk, mtls").choice({"insecure", "psk", "mtls"});
  const std::vector<std::string> own = keys_of(security.mode);
  for (const std::string& key : keys) {
    const Field* field = section.find(key);
    const bool wanted = std::ranges::find(own, key) != own.end();
    if (key != "mode" && field != nullptr && !wanted) {
      field->fail("no setting of mode " + security.mode +
                  (own.empty() ? "" : "; accepted: " + joined(own)));
    }
    if (wanted) *place_of(security, key) = read_path(section.need(key, "the path of a file"));
  }
}

}  // namespace dpwa::config
