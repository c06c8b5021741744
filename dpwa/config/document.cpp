#include "dpwa/config/document.h"

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

std::string read_bounded(const std::filesystem::path& file, const Locations& locations) {
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    locations.fail("", "is a directory; accepted: a cluster file");
  }
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) {
    locations.fail("", "cannot be read: " + std::generic_category().message(errno ? errno : EIO));
  }
  std::string text(max_file_bytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) locations.fail("", "cannot be read to its end");
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > max_file_bytes) {
    locations.fail("", "is too large for a cluster file; accepted: at most 4 MiB");
  }
  // A value missing at the very end is then told from an explicit null by its line (field.h).
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace

YAML::Node read_document(const std::filesystem::path& file, const Locations& locations) {
  const std::string text = read_bounded(file, locations);
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& exception) {
    locations.fail_at(exception.mark.line + 1, "", "YAML syntax: " + one_line(exception.msg));
  }
  if (documents.size() > 1) {
    locations.fail_at(documents[1].Mark().line + 1, "", "a second YAML document; accepted: one");
  }
  if (documents.empty() || documents.front().IsNull()) {
    locations.fail("", "is empty; accepted: a map with at least 'nodes'");
  }
  return documents.front();
}

}  // namespace dpwa::config
