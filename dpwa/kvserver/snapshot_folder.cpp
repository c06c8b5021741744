#include "dpwa/kvserver/snapshot_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <system_error>
#include <utility>

#include "dpwa/base/atomic_file.h"
#include "dpwa/base/file_descriptor.h"
#include "dpwa/base/numbers.h"

namespace dpwa::kvserver {
namespace {

namespace fs = std::filesystem;
using kvstore::SnapshotId;
using kvstore::SnapshotRetention;

constexpr std::string_view complete_ending = ".snapshot";
constexpr std::string_view ready_ending = ".snapshot.ready";
constexpr std::string_view unfinished_ending = ".snapshot.tmp";
constexpr std::string_view damaged_ending = ".damaged";

std::string reason() {
  return std::strerror(errno);
}

// The file as a source; the error is the end of a line that begins with its name.
class OpenFile {
 public:
  // O_NONBLOCK: open() does not wait for a writer when the path is a pipe.
  explicit OpenFile(const fs::path& path)
      : file_(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
    struct stat status {};
    if (!file_.valid() || ::fstat(file_.get(), &status) != 0) {
      problem_ = "cannot be read: " + reason();
    } else if (!S_ISREG(status.st_mode)) {
      problem_ = "is not a regular file";
    } else {
      source_.left = static_cast<std::uint64_t>(status.st_size);
    }
    source_.fill = [this](std::span<std::byte> into) {
      return read_all(file_.get(), into) == into.size();
    };
  }
  const std::string& problem() const { return problem_; }  // empty: none
  SnapshotSource& source() { return source_; }

 private:
  FileDescriptor file_;
  SnapshotSource source_;
  std::string problem_;
};

std::string line_of(const fs::path& file, const std::string& end) {
  return "snapshot " + file.string() + " " + end;
}

}  // namespace

SnapshotFolder::SnapshotFolder(fs::path folder, SnapshotHead own)
    : folder_(std::move(folder)), own_(std::move(own)) {}

std::optional<std::string> SnapshotFolder::problem() const {
  const std::string name = "'" + folder_.string() + "' ";
  std::error_code error;
  if (!fs::exists(folder_, error)) {
    fs::create_directories(folder_, error);
    if (error) return name + "cannot be made: " + error.message();
    fs::permissions(folder_, fs::perms::owner_all, error);
  }
  if (!fs::is_directory(folder_, error)) return name + "is not a directory";
  if (::access(folder_.c_str(), R_OK | W_OK | X_OK) != 0) {
    return name + "cannot be used: " + reason();
  }
  return std::nullopt;
}

std::string SnapshotFolder::name_of(const SnapshotId& id, std::string_view ending) const {
  return own_.server + "." + std::to_string(id.run) + "." + std::to_string(id.number) +
         std::string(ending);
}

std::vector<SnapshotFolder::File> SnapshotFolder::files(std::string_view ending) const {
  std::vector<File> found;
  const std::string prefix = own_.server + ".";
  std::error_code error;
  fs::directory_iterator entry(folder_, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(ending)) continue;
    if (name.size() <= prefix.size() + ending.size()) continue;
    const std::string_view middle =
        std::string_view(name).substr(prefix.size(), name.size() - prefix.size() - ending.size());
    const auto dot = middle.find('.');
    if (dot == std::string_view::npos) continue;
    const auto run = number_in<std::uint64_t>(middle.substr(0, dot));
    const auto number = number_in<std::uint64_t>(middle.substr(dot + 1));
    if (!run || !number || *number > UINT32_MAX) continue;
    found.push_back({{*run, static_cast<std::uint32_t>(*number)}, entry->path()});
  }
  std::ranges::sort(found, {}, &File::id);
  return found;
}

SnapshotFolder::Contents SnapshotFolder::look(const std::atomic<bool>& stop) {
  Contents contents;
  std::error_code ignored;  // a file that cannot be removed only takes space
  for (const File& file : files(unfinished_ending)) fs::remove(file.path, ignored);
  const std::string damaged_complete = std::string(complete_ending) + std::string(damaged_ending);
  contents.had_complete = !files(complete_ending).empty() || !files(damaged_complete).empty();
  for (const std::string_view ending : {complete_ending, ready_ending}) {
    for (const File& file : files(ending)) {
      if (stop) return contents;
      OpenFile open(file.path);
      if (!open.problem().empty()) {
        contents.damaged.push_back(line_of(file.path, open.problem()));
        continue;
      }
      const auto head = read_head(open.source());
      std::string problem = head ? "" : head.error();
      if (problem.starts_with("has version")) {
        contents.refusal = line_of(file.path, problem);
        return contents;
      }
      if (head) {
        if (const auto why = foreign(*head, own_)) {
          contents.refusal = line_of(file.path, *why);
          return contents;
        }
        const auto fault = read_slices(open.source(), *head, [](const auto&) {});
        if (fault) problem = *fault;
        if (problem.empty() && head->id != file.id) problem = "has the name of another one";
      }
      if (problem.empty()) {
        contents.held.push_back(file.id);
        continue;
      }
      std::error_code error;
      fs::rename(file.path, file.path.string() + std::string(damaged_ending), error);
      contents.damaged.push_back(
          line_of(file.path, problem) +
          (error ? "; it stays there: " + error.message() : "; set aside as *.damaged"));
    }
  }
  return contents;
}

std::optional<std::string> SnapshotFolder::write(const SnapshotHead& head, const Part& part,
                                                 const std::atomic<bool>& stop,
                                                 const SnapshotRetention& retention) {
  const fs::path unfinished = folder_ / name_of(head.id, unfinished_ending);
  const fs::path ready = folder_ / name_of(head.id, ready_ending);
  const auto failed = [&](const std::string& why) {
    return line_of(unfinished, "was not written: " + why);
  };
  constexpr ::mode_t owner_only = 0600;  // weights may be as secret as keys
  try {
    AtomicFile file(ready, unfinished, owner_only);
    file.write(encode_head(head));
    for (std::uint32_t place = 0; place < part.size(); ++place) {
      if (stop) return failed("the server ends");
      write_slice(part[place], place, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    }
    file.commit();
  } catch (const std::system_error& error) {
    return failed(error.code().message());
  }
  if (const auto error = sync_folder(folder_))
    return line_of(ready, "may not be on the disk: " + error.message());
  for (const File& file : files(ready_ending)) {
    std::error_code ignored;
    if (retention.gives_up(file.id, head.id)) fs::remove(file.path, ignored);
  }
  return std::nullopt;
}

std::optional<std::string> SnapshotFolder::complete(const SnapshotId& id,
                                                    const SnapshotRetention& retention) {
  const fs::path ready = folder_ / name_of(id, ready_ending);
  const fs::path complete = folder_ / name_of(id, complete_ending);
  if (::rename(ready.c_str(), complete.c_str()) != 0) {
    return line_of(ready, "cannot be renamed: " + reason());
  }
  if (const auto error = sync_folder(folder_))
    return line_of(complete, "may not be on the disk: " + error.message());
  std::set<SnapshotId> all_complete;
  for (const File& file : files(complete_ending)) all_complete.insert(file.id);
  const std::set<SnapshotId> kept = retention.kept(all_complete, id);
  std::error_code ignored;  // a file that cannot be removed does no harm
  for (const std::string_view ending : {complete_ending, ready_ending}) {
    for (const File& file : files(ending)) {
      if (file.id < id && !kept.contains(file.id)) fs::remove(file.path, ignored);
    }
  }
  remove_damaged(id);
  return std::nullopt;
}

// The newest one stays, for an inspection.
void SnapshotFolder::remove_damaged(const SnapshotId& before) {
  std::vector<File> damaged;
  for (const std::string_view ending : {complete_ending, ready_ending}) {
    for (File& file : files(std::string(ending) + std::string(damaged_ending)))
      damaged.push_back(std::move(file));
  }
  std::ranges::sort(damaged, {}, &File::id);
  if (!damaged.empty()) damaged.pop_back();
  std::error_code ignored;
  for (const File& file : damaged) {
    if (file.id < before) fs::remove(file.path, ignored);
  }
}

SnapshotResult<SnapshotFolder::Loaded> SnapshotFolder::load(const SnapshotId& id) const {
  for (const std::string_view ending : {complete_ending, ready_ending}) {
    const fs::path path = folder_ / name_of(id, ending);
    std::error_code error;
    if (!fs::exists(path, error)) continue;
    OpenFile file(path);
    if (!file.problem().empty()) return line_of(path, file.problem());
    auto head = read_head(file.source());
    if (!head) return line_of(path, head.error());
    Loaded loaded{*std::move(head), {}};
    const auto problem = read_slices(file.source(), loaded.head,
                                     [&](auto slice) { loaded.part.push_back(std::move(slice)); });
    if (problem) return line_of(path, *problem);
    return loaded;
  }
  return line_of(folder_ / name_of(id, complete_ending), "is gone");
}

}  // namespace dpwa::kvserver
