#!/usr/bin/env python3
"""Puts known defects back into a copy of the tree, one at a time, and runs the simulated clusters on each.

A schedule that never fails proves nothing: each rule of dpwa/members has a defect here that breaks it, and so have
the rules by which gossiping nodes begin, keep to one lineage, choose their peers, and end. Scenarios without random
schedules run once.

Exit codes: 0 each defect is found by some seed, or is listed as one that is not; 1 one is not found, or is found and
listed so, or its text is no longer in the file; 2 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
VIEWS = "at most one group goes on*"
STEPS = "a group that loses members between*"
GOSSIP = "nodes that gossip mix one origin*"
STORE = "a store counts each push once*"
LOSSES = "when servers end with the only values*"
SNAPSHOTS = "when servers end that keep snapshots*"
PULLS = ("*no round is wasted*,a stalled node*,*serves no peer in time*,*no storm of attempts,busy and rejecting*,"
         "*just before the deadline*,a slow link among*")
STARTS = ("nodes that arrive*,*never appears*,a dead first node*,a first node that joins*,resumed nodes at*,"
          "*clip and refuse a joiner*,*lineage of its own among*")
TALKS = "one that starts again under*,while one node in twenty*"
PACES = "*only each other can call*,a node that is too slow*,a node that sends NaN*,the halves of a healed*"
FIXED = {PULLS, STARTS, TALKS, PACES}  # without random schedules: all seeds are the same
LONGEST = 120  # seconds of one seed: then it hangs

VIEW = "dpwa/members/view.cpp"
VOTE = "dpwa/members/vote.cpp"
NEXT = "dpwa/members/next_view.cpp"
PROPOSER = "dpwa/members/proposer.cpp"
NEIGHBOURS = "dpwa/members/neighbours.cpp"
ENGINE = "dpwa/members/view_engine.cpp"
MEMBER = "test/world/group_member.cpp"
PROCESS = "test/world/group_process.cpp"
GROUPS = "dpwa/members/group_members.cpp"
HELD = "dpwa/members/held_state.cpp"
SYNC = "dpwa/members/sync_plan.cpp"
SYNC_H = "dpwa/members/sync_plan.h"
STEPPER = "test/world/step_trainer.cpp"
START = "dpwa/rules/start_rule.cpp"
START_UP = "dpwa/engine/start_up.cpp"
LINEAGE = "dpwa/rules/lineage.cpp"
PULL_ENGINE = "dpwa/engine/pull_engine.cpp"
FINAL = "dpwa/engine/final_average.cpp"
TRAINER = "dpwa/engine/trainer_state.cpp"
PEERS = "dpwa/rules/peer_table.cpp"
CHOICE = "dpwa/rules/peer_choice.cpp"
ROUND = "dpwa/rules/pull_round.cpp"
LEDGER = "dpwa/rules/pair_ledger.cpp"
MEMBERS = "dpwa/rules/membership.cpp"
EXCHANGE = "dpwa/rules/membership_exchange.cpp"
EPOCH = "dpwa/kvstore/epoch.cpp"
EPOCHS = "dpwa/kvstore/epoch_engine.cpp"
NEXT_EPOCH = "dpwa/kvstore/next_epoch.cpp"
SERVER = "dpwa/kvstore/server_engine.cpp"
WORKER = "dpwa/kvstore/worker_engine.cpp"
SHARD_ROUNDS = "dpwa/kvstore/shard_rounds.cpp"
REPLICAS = "dpwa/kvstore/shard_replicas.cpp"
PLAN = "dpwa/kvstore/snapshot_plan.cpp"


@dataclass(frozen=True)
class Defect:
    name: str
    file: str
    text: str
    replacement: str
    expected_unfound: str = ""  # why another rule covers it
    test: str = VIEWS


DEFECTS = (
    # Quorums.
    Defect("a third is a majority", VIEW, "2 * yes > all ||", "3 * yes > all ||"),
    Defect("any half is a majority", VIEW, "has_first |= in && all == 0;", "has_first |= in;"),
    Defect("half is no majority", VIEW, "(has_first && 2 * yes == all)", "false"),
    Defect("joining members count", VIEW, "    if (each.joining) continue;\n", ""),
    Defect("joining members vote", VIEW, "found != nullptr && !found->joining", "found != nullptr"),
    Defect("workers decide without a server", VIEW, "servers_yes > 0 && (majority", "(majority"),
    Defect("all servers do not suffice", VIEW, "(majority || servers_yes == servers)", "majority"),
    Defect("a run begins with one vote", NEXT, "names.size() >= facts.enough;", "!names.empty();"),
    Defect("a run begins with too few", NEXT, "next.members.size() < facts.enough || ", ""),
    Defect("a view has no server", NEXT, "!next.open() && next.quorum == Quorum::with_servers &&", "false &&"),
    # Ballots and votes.
    Defect("rounds alone are compared", VOTE,
           "question.ballot > promised,", "question.ballot.round >= promised.round,"),
    Defect("a promise does not bind", VOTE, "proposal.ballot < promised", "false"),
    Defect("a vote is no promise", VOTE, "promised = accepted = proposal.ballot;", "accepted = proposal.ballot;"),
    Defect("a promise is not kept on the disk", ENGINE, "    changed_ |= promise.granted;\n", ""),
    Defect("a vote is not kept on the disk", ENGINE, "  changed_ |= !given.empty();\n", ""),
    Defect("answers do not wait for the disk", PROCESS, "    if (!waiting_.front().keep) {",
           "    if (waiting_.front().keep)\n"
           "      environment_.write(votes_file, *waiting_.front().keep, [] {});\n    if (true) {"),
    Defect("accepted values are ignored", PROPOSER,
           "promises.accepted()) {", "promises.accepted(); accepted && false) {"),
    Defect("the lowest accepted value is taken", NEXT,
           "promise.accepted > highest->accepted", "promise.accepted < highest->accepted"),
    Defect("promises of older ballots count", PROPOSER, "promise.ballot != attempt_->ballot || ", "",
           "not covered, but rare: a promise comes one ballot late, and a view is decided between the two"),
    Defect("votes of older ballots count", PROPOSER, " || vote.ballot != attempt_->ballot", "",
           "a proposer votes for its values itself, so its later ballots lead to the same value"),
    Defect("votes outlive their view", ENGINE, "vote = {.owner = vote.owner, .value = {}};", "(void)vote;"),
    Defect("the vote of an open view is forgotten", VOTE, "    own = former->votes.front();\n", ""),
    Defect("values of other views are accepted", ENGINE, "  if (!message.value.follows(base())) return;\n", "",
           "a proposer of this base asks for values that follow it alone (Proposer::choose)"),
    Defect("promises of other views count", ENGINE,
           "  if (!at_base(from, message.base)) return;\n  proposer_.note(message);",
           "  at_base(from, message.base);\n  proposer_.note(message);",
           "the rounds of a process only grow, so a ballot of another view has another number"),
    # The votes of the dead.
    Defect("votes of former processes are dropped", VOTE,
           "if (open || kept.installed.member(vote.owner) != nullptr) kept.votes.push_back(std::move(vote));", ""),
    Defect("a new view drops votes of former processes", ENGINE,
           "return view.member(vote.owner) == nullptr; }", "return true; }"),
    Defect("successors vote without the file", ENGINE, "  std::vector<Vote*> votes;\n",
           "  std::vector<Vote*> votes;\n  if (const Member* const same = view().member(self_.name);\n"
           "      same != nullptr && std::ranges::find(kept_.votes, same->id, &Vote::owner) == kept_.votes.end())\n"
           "    kept_.votes.push_back({.owner = same->id, .value = {}});\n"),
    Defect("the dead count as living", ENGINE, "promise.lives = promise.voter == self_;", "promise.lives = true;"),
    Defect("a living name is not outnumbered", ENGINE, "  if (same != nullptr) renumber(same->id);\n}", "}"),
    Defect("a start keeps its low number", ENGINE,
           "  if (const Member* const same = view().member(self_.name)) renumber(same->id);\n", ""),
    # Operations in flight.
    Defect("a promise does not freeze", ENGINE, "if (frozen_ || number", "if (number"),
    Defect("operations of an older view complete", ENGINE, "if (frozen_ || number != view().number)", "if (frozen_)"),
    Defect("members stay without a promise", NEXT, "} else if (promise != nullptr) {", "} else {"),
    Defect("progress is not in the promise", NEXT, "if (promise != nullptr) member.done = promise->done;", ""),
    Defect("the progress of the first member counts", VIEW, "if (!each.joining) all.add(each.done);",
           "if (&each == &members.front()) all.add(each.done);"),
    Defect("completed operations are repeated", MEMBER,
           "if (!engine().progress().has(operation) && !done_before_.has(operation))\n      open", "open"),
    Defect("operations of others are repeated", MEMBER,
           "if (!engine().progress().has(operation) && !done_before_.has(operation))\n      open",
           "if (!engine().progress().has(operation)) open"),
    Defect("early contributions are dropped", MEMBER, "early_.emplace_back(from, contribution);", "return;"),
    # The steps of a group that loses members.
    Defect("the first state counts, not the furthest", SYNC, ": a.clock > b.clock;", ": false;", test=STEPS),
    Defect("those that train apart count as members", HELD, "if (!newcomer && holds_ == Holds::all)",
           "if (!newcomer && holds_ != Holds::nothing)", test=STEPS),
    Defect("a newcomer counts as a member", HELD, "if (!newcomer && holds_ == Holds::all)",
           "if (holds_ == Holds::all)", "its clock is behind, unless the others stand still", test=STEPS),
    Defect("weights without the optimizer are a whole state", HELD,
           "plan_.takes_optimizer(rank) ? Holds::all_but_optimizer : Holds::all", "Holds::all", test=STEPS),
    Defect("one that holds a part of a state keeps it", HELD, "if (takes) holds_ = Holds::nothing;", "", test=STEPS),
    Defect("the optimizer's state is not handed over", SYNC_H, "return any_behind() || is_resumed();",
           "return is_resumed();", test=STEPS),
    Defect("gradients that a result replaced are sent again", STEPPER, "if (spent) gradients_.clear();", "",
           "not covered, but rare: step_record_test.cpp has the rule", test=STEPS),
    Defect("one that took a state over makes the step as well", STEPPER, "if (behind) taken_over_ = true;", "",
           test=STEPS),
    # Joining.
    Defect("one joins before it has caught up", NEXT,
           "promises.caught_up(base, member.id))", "promises.living(member.id))"),
    Defect("a state of an older view counts", ENGINE,
           "  if (number != view().number) return false;\n  forget", "  forget",
           "not covered, but rare: view_test.cpp has a case for it"),
    Defect("one joins that lacks some operations", VIEW, "return through >= other.through &&",
           "return has(other.through) &&", "not covered, but rare: view_test.cpp has a case for it"),
    Defect("one joins with another state", ENGINE, "if (own->second == message.state)", "if (true)"),
    Defect("one that some do not hear joins", NEXT, "&& promises.hear(next, id))", ")"),
    Defect("a state outlives its giver", ENGINE, "giver() && giver() != giver_before;", "false;"),
    Defect("a member that joins again keeps its state", ENGINE, "giver() && giver() != giver_before;",
           "giver() && giver_before && giver() != giver_before;"),
    Defect("one that joined stays ready", NEIGHBOURS, "  facts_.ready.clear();\n", ""),
    Defect("other settings join", ENGINE, "if (view().open() || message.settings == view().settings)", "if (true)"),
    Defect("other settings apply before a run", ENGINE,
           "each.second.settings != settings;", "view().open() && each.second.settings != settings;"),
    # Reasons for a change.
    Defect("one that is heard stays suspected", NEIGHBOURS, "  facts_.gone.erase(from);\n", ""),
    Defect("members do not leave", NEXT, "    if (leave.contains(member.id)) {", "    if (false) {"),
    Defect("the last server leaves", NEXT, "if (some_stay && !server_stays) {", "if (false) {"),
    Defect("the last to leave waits for the dead", NEXT, "!all_leave && !one_leaves &&", "!all_leave &&"),
    Defect("lost messages do not lead to a view", ENGINE, "!frozen_long && !renews_", "!frozen_long"),
    Defect("the frozen wait for the proposer", ENGINE, "&& !frozen_long && !renews_", "&& !renews_",
           "a member that completes nothing for some time asks for a view as well, if later (renew)"),
    Defect("a run closes while one lives", ENGINE,
           "std::ranges::all_of(view().voters(),", "std::ranges::any_of(view().voters(),"),
    Defect("a run does not close", ENGINE, "facts.closes = !view().open() &&", "facts.closes = false &&"),
    Defect("all runs have one number", NEXT, "View next{.run = run,", "View next{.run = 1,"),
    Defect("older views are installed", ENGINE, "if (view.number <= this->view().number) return;",
           "if (view.number == this->view().number) return;"),
    Defect("those behind are not told", ENGINE, "if (its.number < view().number) send", "if (false) send"),
    # Gossip: the start.
    Defect("weights that wait are not taken", START, "if (pulls && waiting) return", "if (false) return", test=GOSSIP),
    Defect("those that train are not seen", START,
           "      if (nodes_[i].state == PeerStart::ready && counts(i)) return true;\n", "", test=GOSSIP),
    Defect("own weights come before those of others", START, "if (!own_) return true;", "if (!own_) return false;",
           test=GOSSIP),
    Defect("a clock is given up at once", START, "!over && survey.gives_up(*peer) && !survey.all_answered();", "false;",
           "needs two nodes of another lineage that answer before one of the own does", test=GOSSIP),
    Defect("a stop counts as waiting", START_UP, "  begun_ += now - *due_;\n", "", test=GOSSIP),
    # Lineages.
    Defect("another lineage is blended", PULL_ENGINE,
           "  if (spec_.exchange.blends() && peer.lineage != own_lineage) return PeerFailure::other_lineage;\n", "",
           test=GOSSIP),
    Defect("the smaller part does not yield", LINEAGE, "if (theirs != ours) return theirs > ours;",
           "if (theirs != ours) return false;", test=GOSSIP),
    Defect("none yields", LINEAGE, "if (own.lineage == 0) return true;", "if (own.lineage != 0) return false;",
           test=GOSSIP),
    Defect("two take over from each other", LINEAGE, "return now - given > lately || own.lineage > peer.lineage;",
           "return true;", "a node takes over the weights of one peer once a minute, which ends it", test=GOSSIP),
    # Members, and the end.
    Defect("those that are out stay out", PULL_ENGINE, "  table_.set_out(place, out);\n",
           "  if (out) table_.set_out(place, out);\n", test=GOSSIP),
    Defect("models are folded as they come", FINAL,
           "  std::ranges::sort(order_, {}, [](const Entry& entry) { return entry.node.name; });\n", "", test=GOSSIP),
    Defect("nobody is waited for at the end", FINAL,
           "other.awaited = !other.final && !gone && answer.vouched_for;", "other.awaited = false;", test=GOSSIP),
    Defect("one leaves before others have its model", FINAL,
           "      if (!late && std::ranges::any_of(others_, wants)) return Greet{};\n", "", test=GOSSIP),
    # Gossip: the choice of peers.
    Defect("a late peer does not rest", PEERS,
           "    if (rests) record.rests_until = now + rest_after(answer.took, lately);\n", "    (void)lately;\n",
           test=PULLS),
    Defect("one wins favour by its calls", PEERS, "&& !record.forgiven && !record.offended", "&& !record.offended",
           test=PULLS),
    Defect("one that fails is asked again at once", PEERS,
           "record.retry_at = now + (final ? longest : backoff_).delay(record.failures, random);",
           "(void)longest, (void)final, (void)random;", test=PULLS),
    Defect("one that declines is asked again at once", PEERS,
           "declined_delay = std::chrono::milliseconds(50);", "declined_delay = std::chrono::milliseconds(1);",
           test=PULLS),
    Defect("a node that is cut off does not pause", CHOICE,
           "return now >= record.failed_at + cut_off_delay(*record.last_failure);", "return now >= record.failed_at;",
           test=PULLS),
    Defect("a round outlasts its deadline", ROUND, "if (answered_ || now >= deadline_)", "if (answered_)", test=PULLS),
    # Gossip: a cluster that starts.
    Defect("a lone lineage is the source", START,
           "    if (one.state == PeerStart::ready && count != other_count) return count > other_count;\n",
           "    (void)count, (void)other_count;\n", test=STARTS),
    Defect("weights are taken over without a comparison", START_UP,
           "  if (others.values().size() < 2) return {};\n", "  return {};\n", test=STARTS),
    # Gossip: the pace.
    Defect("a pair that is silent is never forgotten", LEDGER,
           "  if (round_ - account->heard_in > lonely_rounds_) return 1;\n", "", test=PACES),
    Defect("what is stale is not accounted for", PULL_ENGINE,
           "if (failure == PeerFailure::stale || kept_out(failure)) account_for", "if (kept_out(failure)) account_for",
           test=PACES),
    Defect("pulls begin with the step", TRAINER, "  if (pace_.spread_pulls) {", "  if (false) {", test=PACES),
    # Gossip: who is in.
    Defect("a former process comes back", MEMBERS, "  if (claim.incarnation == member.replaced) return;\n", "",
           test=TALKS),
    Defect("tables are not compared", EXCHANGE,
           "  if (request.digest != digest()) add_part(exchange, request.part);\n", "  (void)request;\n", test=TALKS),
    # The store: members.
    Defect("an epoch of a third", EPOCH, "2 * votes > members ||", "3 * votes > members ||", test=STORE),
    Defect("an epoch of any half", EPOCH,
           "return first != epoch.servers.end() && std::ranges::count(voters, first->id) > 0;", "return true;",
           test=STORE),
    Defect("an epoch without a server", EPOCH, "  if (votes_of_servers == 0) return false;\n", "",
           "only servers of the epoch propose, and each votes for what it proposes", test=STORE),
    Defect("a new process votes for its former one", EPOCH,
           "votes = count([&](const MemberId& voter) { return epoch.has(voter); });",
           "votes = count([&](const MemberId& voter) { return epoch.has(voter) || epoch.has_successor(voter); });",
           "not covered, but rare: epoch_engine_test.cpp has a case for it", test=STORE),
    Defect("an accepted epoch is not completed", EPOCHS, "    proposer_->next = proposer_->accepted;\n",
           "    {}\n", test=STORE),
    Defect("an old ballot is voted for", EPOCHS, "message.ballot < promised_ ||", "",
           "not covered, but rare: epoch_engine_test.cpp has a case for it", test=STORE),
    Defect("one is admitted that not all servers hear", NEXT_EPOCH,
           "    if (!heard_by_servers(next, id, now)) continue;\n", "",
           "it is left out again: reachability_test.cpp has cases for it", test=STORE),
    Defect("a server votes as soon as it is started", SERVER,
           "epoch().has(self()) || has_listened(now);", "true;", test=LOSSES),
    Defect("a run is over as soon as a worker tells of it", SERVER,
           "if (member_ || !has_listened(now)) return {};", "if (member_) return {};",
           "not covered, but rare: lost_run_test.cpp has a case for it", test=STORE),
    Defect("those that wait are not told that the run is over", SERVER,
           "    if (auto answer = refusal(member, now))\n"
           "      outgoing_.push_back({member.name, 0, *std::move(answer)});\n", "",
           test=LOSSES),
    # The store: pushes, rounds, replicas.
    Defect("a push that is sent again counts again", SHARD_ROUNDS,
           "  if (message.step < next_of(held.clocks, from)) return answer_duplicate(entry, waiter);\n"
           "  if (message.step < held.round) {", "  if (message.step < held.round) {", test=STORE),
    Defect("a round does not wait for all", SHARD_ROUNDS, "    if (waits) break;\n",
           "    if (waits && held.rounds.size() < 2) break;\n",
           "two rounds are seldom open at once: shard_engine_test.cpp has cases for it", test=STORE),
    Defect("an update is acknowledged before the backup has it", REPLICAS,
           "  return epoch_.servers[*backup].state == ServerState::up || all_synced_ ||\n"
           "         held.backup != Backup::unsynced;\n", "  return false;\n", test=STORE),
    Defect("a slice that is copied is not kept up to date", REPLICAS,
           "ServerState::up || all_synced_ ||\n         held.backup != Backup::unsynced;", "ServerState::up;",
           test=STORE),
    Defect("requests are not sent to the new primary", WORKER,
           "  for (auto& [tag, request] : requests_) change(tag, request, State::queued);\n}", "}", test=STORE),
    Defect("a part of a snapshot is written before it is whole", PLAN,
           "captured_[number].size() != engine_.shard().primaries()", "captured_[number].empty()", test=SNAPSHOTS),
)


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=" ".join(__doc__.splitlines()[6:8]))
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="the defects whose names contain this; repeatable")
    parser.add_argument("--seeds", type=int, default=1000, help="of each defect, at most (default 1000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1,
                        help="seeds that run at once (default: processors)")
    parser.add_argument("--list", action="store_true", help="print the names of the defects, run nothing")
    chosen = parser.parse_args(arguments)
    if min(chosen.seeds, chosen.jobs) < 1:
        parser.error("--seeds, --jobs: at least 1")
    return chosen


def copy_tree(to: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY,
                            check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if (REPOSITORY / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, to / name)


class Copy:
    """A copy of the tree, in which what has not changed is not built again."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.jobs = jobs
        copy_tree(folder)
        subprocess.run(["cmake", "--preset", "core", "-DCMAKE_UNITY_BUILD=OFF"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)
        self.program = folder / "build/core/test/world/dpwa_world_tests"

    def build(self) -> str:
        """What the compiler says against it; empty: nothing."""
        built = subprocess.run(["cmake", "--build", "build/core", "--target", "dpwa_world_tests", "-j", str(self.jobs)],
                               cwd=self.folder, capture_output=True, text=True)
        return "" if built.returncode == 0 else built.stdout[-4000:]

    def fails(self, test: str, seed: int) -> bool:
        """A seed fails by a broken promise, a broken invariant or a hang."""
        environment = os.environ | {"DPWA_WORLD_SEED": str(seed), "DPWA_WORLD_SEEDS": "1"}
        try:
            return subprocess.run([self.program, f"--test-case={test}"], env=environment, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=LONGEST).returncode != 0
        except subprocess.TimeoutExpired:
            return True

    def found_at(self, test: str, seeds: int) -> int | None:
        with ThreadPoolExecutor(self.jobs) as pool:
            for first in range(1, seeds + 1, self.jobs):
                batch = range(first, min(first + self.jobs, seeds + 1))
                for seed, failed in zip(batch, pool.map(partial(self.fails, test), batch)):
                    if failed:
                        return seed
        return None


def try_one(copy: Copy, defect: Defect, seeds: int) -> tuple[bool, str]:
    """Whether all is as the list says, and what happened."""
    path = copy.folder / defect.file
    whole = path.read_text()
    if whole.count(defect.text) != 1:
        return False, f"its text is {whole.count(defect.text)} times in {defect.file}"
    path.write_text(whole.replace(defect.text, defect.replacement))
    try:
        if problem := copy.build():
            return False, "does not compile\n" + problem
        seed = copy.found_at(defect.test, 1 if defect.test in FIXED else seeds)
    finally:
        path.write_text(whole)
    if seed is not None:
        return not defect.expected_unfound, f"seed {seed}"
    if defect.expected_unfound:
        return True, f"not found: {defect.expected_unfound}"
    return False, "not found"


def main(arguments: list[str]) -> int:
    chosen = parse(arguments)
    defects = [each for each in DEFECTS if not chosen.only or any(part in each.name for part in chosen.only)]
    if chosen.list or not defects:
        print("\n".join(each.name for each in DEFECTS))
        return 0 if chosen.list else 2
    with tempfile.TemporaryDirectory(prefix="dpwa-defects-") as folder:
        copy = Copy(Path(folder), chosen.jobs)
        if problem := copy.build():
            print(problem)
            return 1
        for test in sorted({defect.test for defect in defects}):
            if (seed := copy.found_at(test, 1 if test in FIXED else min(chosen.seeds, 20))) is not None:
                print(f"{test}: seed {seed} fails without a defect")
                return 1
        wrong = 0
        print(f"{'defect':48} {'seconds':>7}  found at")
        for defect in defects:
            began = time.monotonic()
            right, outcome = try_one(copy, defect, chosen.seeds)
            wrong += not right
            seconds = time.monotonic() - began
            print(f"{defect.name:48} {seconds:7.1f}  {'' if right else 'WRONG: '}{outcome}", flush=True)
    print(f"{len(defects) - wrong} of {len(defects)} as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
