#include "dpwa/config/document.h"

#include <yaml-cpp/eventhandler.h>

#include <sstream>
#include <string>

#include "dpwa/config/text.h"

namespace dpwa::config {
namespace {

// Listens for the start of documents and nothing else.
class DocumentStart : public YAML::EventHandler {
 public:
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int line_ = 0;
};

// Not by YAML::LoadAll: it never ends, and takes all memory, on a document that begins with ','.
void refuse_second_document(const std::string& text, const Locations& locations) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (parser.HandleNextDocument(start) && parser.HandleNextDocument(start)) {
    locations.fail_at(start.line(), "", "a second YAML document; accepted: one");
  }
}

}  // namespace

YAML::Node read_document(const std::filesystem::path& file, const Locations& locations,
                         const PipePatience& patience) {
  return parse_document(read_cluster_text(file, locations, patience), locations);
}

YAML::Node parse_document(std::string text, const Locations& locations) {
  if (text.size() > max_file_bytes) {
    locations.fail("", "is too large for a cluster file; accepted: at most 4 MiB");
  }
  // A value missing at the very end is then told from an explicit null by its line (field.h).
  if (!text.ends_with('\n')) text += '\n';
  YAML::Node document;
  try {
    document = YAML::Load(text);
    refuse_second_document(text, locations);
  } catch (const YAML::Exception& exception) {
    locations.fail_at(exception.mark.line + 1, "", "YAML syntax: " + one_line(exception.msg));
  }
  if (document.IsNull()) locations.fail("", "is empty; accepted: a map with at least 'nodes'");
  return document;
}

}  // namespace dpwa::config
