#include <torch/types.h>

#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "adapters/adapter.h"
#include "test/adapters/contract.h"
#include "test/adapters/doctest_with_torch.h"
#include "test/adapters/small_net.h"

// What a training loop may rely on, whatever back end the cluster file names: how it begins and
// ends.
namespace dpwa {
namespace {

using test::BackEnd;
using test::backward;
using test::Circle;
using test::equal;
using test::finite;
using test::for_every_back_end;
using test::momentum_sgd;
using test::Net;
using test::Participant;
using test::run_nodes;

// A call at a wrong time, and how its error begins.
struct WrongCall {
  const char* words;
  std::function<void(Adapter&)> make;
};

void check_refused(Adapter& adapter, const std::vector<WrongCall>& calls) {
  for (const WrongCall& call : calls) {
    std::string words = "no std::logic_error";
    try {
      call.make(adapter);
    } catch (const std::logic_error& error) {
      words = error.what();
    }
    CHECK(words == call.words);
  }
}

}  // namespace

TEST_CASE("nodes begin with the first one's weights") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    const Net first(10, device);
    run_nodes(back_end, [&](Participant& node) {
      Net model(10 + node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      CHECK(equal(model, first));
      adapter->finish();
    });
  });
}

TEST_CASE("finish is idempotent, and a step after it trains on alone") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(node.index, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      adapter->start();
      node.wait_for_all();
      adapter->step(*optimizer, backward(*optimizer, model, circle));
      const FinishReport finished = adapter->finish();
      const auto weights = model.out->weight.detach().clone();
      const FinishReport again = adapter->finish();
      CHECK(again.averaged == finished.averaged);
      CHECK(again.participants == finished.participants);
      CHECK(torch::equal(model.out->weight, weights));
      const auto report = adapter->step(*optimizer, backward(*optimizer, model, circle));
      CHECK(report.outcome == Outcome::skipped);
      CHECK_FALSE(torch::equal(model.out->weight, weights));
      adapter->leave();
    });
  });
}

TEST_CASE("a node may leave at any moment, and its trainer goes on") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    for (int moment = 0; moment < 4; ++moment) {
      CAPTURE(moment);
      run_nodes(back_end, [&](Participant& node) {
        Net model(node.index, device);
        const auto optimizer = momentum_sgd(model);
        Circle circle(node.index, device);
        const auto adapter = make_adapter(node.config, model);
        if (moment == 0) return adapter->leave();
        adapter->start();
        node.wait_for_all();
        if (moment == 1) adapter->leave();
        auto loss = backward(*optimizer, model, circle);
        adapter->update_send(loss);
        node.wait_for_all();  // another may still be receiving the last part of an average
        if (moment == 2) adapter->leave();
        optimizer->step();
        adapter->update_wait(loss);
        node.wait_for_all();
        adapter->leave();
        adapter->leave();
        const auto weights = model.out->weight.detach().clone();
        adapter->step(*optimizer, backward(*optimizer, model, circle));
        CHECK_FALSE(torch::equal(model.out->weight, weights));
        CHECK_FALSE(adapter->finish().averaged);
      });
    }
  });
}

TEST_CASE("an adapter may be destroyed in any state, and the model outlives it") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    for (int moment = 0; moment < 4; ++moment) {
      CAPTURE(moment);
      run_nodes(back_end, [&](Participant& node) {
        Net model(node.index, device);
        const auto optimizer = momentum_sgd(model);
        Circle circle(node.index, device);
        auto adapter = make_adapter(node.config, model);
        if (moment >= 1) adapter->start();
        node.wait_for_all();
        if (moment >= 2) adapter->update_send(backward(*optimizer, model, circle));
        if (moment >= 3) adapter->update_wait(torch::Tensor());
        node.wait_for_all();  // where all step together, those that wait would lose this one
        adapter.reset();
        const auto loss = backward(*optimizer, model, circle);
        optimizer->step();
        CHECK(std::isfinite(loss.item<double>()));
        CHECK(finite(model));
      });
    }
  });
}

TEST_CASE("a checkpoint's state comes back") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(3, device);
      const auto adapter = make_adapter(node.config, model);
      const ResumeState fresh = adapter->resume_state();
      adapter->restore({17, {{"of another back end", 99}}});
      CHECK(adapter->resume_state().clock == 17);
      adapter->restore({17, fresh.own});
      CHECK(adapter->resume_state().clock == 17);
      adapter->start();
      node.wait_for_all();
      CHECK(equal(model, Net(3, device)));
      const auto optimizer = momentum_sgd(model);
      Circle circle(1, device);
      if (back_end.nodes == 1) {
        CHECK(adapter->step(*optimizer, backward(*optimizer, model, circle)).clock == 18);
        CHECK(adapter->resume_state().clock == 18);
      }
      adapter->finish();
    });
  });
}

TEST_CASE("a call at a wrong time is one error for all back ends, and changes nothing") {
  for_every_back_end([](const BackEnd& back_end, at::Device device) {
    run_nodes(back_end, [&](Participant& node) {
      Net model(node.index, device);
      const auto optimizer = momentum_sgd(model);
      Circle circle(node.index, device);
      const auto adapter = make_adapter(node.config, model);
      const torch::Tensor none;
      const auto step = [&](Adapter& a) { a.step(*optimizer, none); };
      const auto skip = [&](Adapter& a) { a.skip_step(*optimizer, none); };
      const auto send = [&](Adapter& a) { a.update_send(none); };
      const auto wait = [&](Adapter& a) { a.update_wait(none); };
      const auto average = [](Adapter& a) { a.average_gradients(); };

      check_refused(
          *adapter,
          {{"step() before start()", step},
           {"skip_step() before start()", skip},
           {"update_send() before start()", send},
           {"update_wait() before start()", wait},
           {"average_gradients() before start()", average},
           {"accumulate() before start()", [](Adapter& a) { (void)a.accumulate(); }},
           {"set_batch_size() before start()", [](Adapter& a) { a.set_batch_size(1); }},
           {"show() before start()", [](Adapter& a) { a.show("accuracy", 1); }},
           {"set_optimizer() before start()", [&](Adapter& a) { a.set_optimizer(*optimizer); }}});
      adapter->start();
      node.wait_for_all();
      const std::vector<WrongCall> outside = {
          {"start() was called twice on one adapter", [](Adapter& a) { a.start(); }},
          {"share() belongs before start()", [](Adapter& a) { a.share(torch::zeros({1})); }},
          {"require_same() belongs before start()", [](Adapter& a) { a.require_same("a", "b"); }},
          {"mark_model() belongs before start()", [](Adapter& a) { a.mark_model("a", "b"); }},
          {"restore() belongs before start()", [](Adapter& a) { a.restore({}); }},
          {"show() of a number with a name that is not accepted; accepted: 1 to 40 letters, "
           "digits, "
           "spaces and _ - . /",
           [](Adapter& a) { a.show("line\n", 1); }},
          {"update_wait() without update_send() before it", wait}};
      check_refused(*adapter, outside);

      backward(*optimizer, model, circle);
      adapter->average_gradients();
      check_refused(*adapter, {{"average_gradients() was called twice in one step", average}});
      adapter->update_send(none);
      check_refused(*adapter,
                    {{"update_send() was called twice in one step", send},
                     {"step() between update_send() and update_wait()", step},
                     {"skip_step() between update_send() and update_wait()", skip},
                     {"show() between update_send() and update_wait()",
                      [](Adapter& a) { a.show("accuracy", 1); }},
                     {"average_gradients() between update_send() and update_wait()", average}});
      optimizer->step();
      adapter->update_wait(none);
      check_refused(*adapter, outside);

      adapter->step(*optimizer, backward(*optimizer, model, circle));
      check_refused(*adapter, outside);
      node.wait_for_all();
      CHECK(adapter->finish().participants == back_end.nodes);
      for (const auto& call : {average, average}) CHECK_NOTHROW(call(*adapter));
      CHECK_NOTHROW(wait(*adapter));
      check_refused(*adapter,
                    {{"start() after finish() or leave()", [](Adapter& a) { a.start(); }}});
    });
  });
}

TEST_CASE("a back end without what it needs is refused by name") {
  Net model(3);
  Config config;
  config.backend = Backend::kvstore;
  CHECK_THROWS_WITH_AS(make_adapter(config, model), doctest::Contains("kvstore"), ConfigError);
}

}  // namespace dpwa
