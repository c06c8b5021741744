#include <CLI/App.hpp>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "dpwa/cli/app.h"
#include "dpwa/security/key_file.h"

namespace dpwa::cli {
namespace {

struct KeygenOptions {
  std::string output = "cluster.key";
  std::string add;
  std::string promote;
  std::string retire;
};

Keys keys_in(const std::string& file) {
  auto keys = read_key_file(file);
  if (!keys) throw std::runtime_error(keys.error());
  return std::move(*keys);
}

Keys two_keys_in(const std::string& file) {
  Keys keys = keys_in(file);
  if (keys.size() != most_keys)
    throw std::runtime_error(file + ": holds only one key; add a second with dpwa keygen --add");
  return keys;
}

void create(const std::string& file, CommandContext& context) {
  if (file == "-")  // standard output in dpwa init; here it would show the key
    throw CLI::ValidationError("-o", "'-': a key is never shown; accepted: a file");
  try {
    create_private_file(file, key_file_text({new_key()}));
  } catch (const FileExists&) {
    throw CLI::ValidationError("-o", "'" + file +
                                         "' exists and is never replaced; accepted: another file "
                                         "(or --add, to change the key of this one)");
  }
  context.err << "wrote " << file << ": the key of a cluster, only for its nodes (mode 0600)\n";
}

void add(const std::string& file, CommandContext& context) {
  Keys keys = keys_in(file);
  if (keys.size() == most_keys)
    throw std::runtime_error(file +
                             ": holds two keys already; continue with --promote or --retire");
  keys.push_back(new_key());
  replace_private_file(file, key_file_text(keys));
  context.err << "added a second key to " << file
              << ": give the file to every node and let it reload, then dpwa keygen --promote\n";
}

void promote(const std::string& file, CommandContext& context) {
  Keys keys = two_keys_in(file);
  std::swap(keys.front(), keys.back());
  replace_private_file(file, key_file_text(keys));
  context.err
      << "the second key of " << file
      << " is now the first: give the file to every node and let it reload, then dpwa keygen "
         "--retire\n";
}

void retire(const std::string& file, CommandContext& context) {
  Keys keys = two_keys_in(file);
  keys.pop_back();
  replace_private_file(file, key_file_text(keys));
  context.err << "the second key of " << file
              << " is removed: give the file to every node and let it reload\n";
}

// Throws ConfigError where a file is not as it has to be, or cannot be made.
void keygen(const KeygenOptions& options, CommandContext& context) try {
  if (!options.add.empty()) return add(options.add, context);
  if (!options.promote.empty()) return promote(options.promote, context);
  if (!options.retire.empty()) return retire(options.retire, context);
  create(options.output, context);
} catch (const CLI::Error&) {
  throw;
} catch (const std::runtime_error& error) {
  throw ConfigError(error.what());
}

}  // namespace

void add_keygen_command(CLI::App& parent, CommandContext& context) {
  auto options = std::make_shared<KeygenOptions>();
  CLI::App* command = parent.add_subcommand(
      "keygen", "Make the key file of a cluster (security: {mode: psk}), or change its key");
  CLI::Option* output =
      command->add_option("-o,--output", options->output, "The key file to make; it must not exist")
          ->capture_default_str();
  CLI::Option* add =
      command->add_option("--add", options->add, "Put a new key second: accepted, not yet used");
  CLI::Option* promote = command->add_option("--promote", options->promote,
                                             "Make the second key of this file the first");
  CLI::Option* retire =
      command->add_option("--retire", options->retire, "Remove the second key of this file");
  for (CLI::Option* one : {add, promote, retire}) one->type_name("FILE");
  add->excludes(output)->excludes(promote)->excludes(retire);
  promote->excludes(output)->excludes(retire);
  retire->excludes(output);
  command->callback([options, &context] { keygen(*options, context); });
}

}  // namespace dpwa::cli
