#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

namespace dpwa::collective {

// Stands for another store until let_go(). LibTorch's groups keep the store that they were formed
// with as long as they live, and need it no more: without this its port would stay open. Any
// thread.
class PassingStore final : public c10d::Store {
 public:
  explicit PassingStore(c10::intrusive_ptr<c10d::Store> store);

  void let_go();  // every use after it throws

  c10::intrusive_ptr<c10d::Store> clone() override;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::uint8_t> compareSet(const std::string& key,
                                       const std::vector<std::uint8_t>& expected,
                                       const std::vector<std::uint8_t>& desired) override;
  std::vector<std::uint8_t> get(const std::string& key) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  std::int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const std::vector<std::uint8_t>& value) override;
  std::vector<std::vector<std::uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys,
                const std::vector<std::vector<std::uint8_t>>& values) override;
  bool hasExtendedApi() const override;

 private:
  struct Target;
  explicit PassingStore(std::shared_ptr<Target> target) : target_(std::move(target)) {}
  c10::intrusive_ptr<c10d::Store> target() const;

  std::shared_ptr<Target> target_;  // of all clones
};

}  // namespace dpwa::collective
