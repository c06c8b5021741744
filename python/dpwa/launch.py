"""How the processes of one launcher find one another where no file lists them: through a TCPStore of torch, with the
keys of adapters/launch/meeting.cpp."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

BETWEEN_LOOKS = 0.01
FAREWELL = 5.0
PATIENCE = 300.0  # for the last process to come


def addresses_of(host: str, until: float) -> list[str]:
    """Numeric ones. Waits for a host that gets its name while it starts."""
    while True:
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(str(address[0]) for *_, address in found))
        except OSError as error:
            if time.monotonic() > until:
                raise RuntimeError(f"no address is known for '{host}' ({error})") from None
            time.sleep(1)


def connect(place: Any, until: float) -> tuple[Any, str]:
    """The store, and the numeric address at which this process reaches it."""
    from torch.distributed import TCPStore

    hosts_it = place.rank == 0 and not place.hosted
    failure: Exception = RuntimeError("no address")
    while True:
        for address in addresses_of(place.host, until):
            try:
                if not hosts_it:  # the store itself would wait at the first address
                    socket.create_connection((address, place.port), timeout=1).close()
                left = timedelta(seconds=max(1, until - time.monotonic()))
                return TCPStore(address, place.port, is_master=hosts_it, wait_for_workers=False, timeout=left), address
            except (OSError, RuntimeError) as error:  # those of c10d are kinds of RuntimeError
                failure = error
        if hosts_it or time.monotonic() > until:
            raise failure
        time.sleep(BETWEEN_LOOKS)


def meet(place: Any, cluster: str, introduce: Callable[[str], str]) -> list[str]:
    """What each process says of itself, in the order of ranks."""
    try:
        return meet_others(place, cluster, introduce)
    except (OSError, RuntimeError, ImportError) as error:
        reason = str(error).strip().partition("\n")[0]
        where = f"{place.host}:{place.port}"
        raise RuntimeError(f"the processes of {place.launcher} do not meet at {where}: {reason}") from None


def meet_others(place: Any, cluster: str, introduce: Callable[[str], str]) -> list[str]:
    until = time.monotonic() + PATIENCE
    store, address = connect(place, until)
    prefix = f"dpwa/launch/{place.run}/"
    if place.hosted:  # the launcher's store outlives a meeting
        prefix += f"{place.size}/"
        prefix += f"{store.add(f'{prefix}rank/{place.rank}/meetings', 1)}/"
    keys = [f"{prefix}rank/{rank}" for rank in range(place.size)]

    def say(outcome: str) -> None:  # the first word stands
        store.compare_set(f"{prefix}outcome", "", outcome)

    store.add(f"{prefix}present", 1)
    terms = f"cluster '{cluster}' of {place.size} processes"
    agreed = store.compare_set(f"{prefix}terms", "", terms).decode()
    if agreed != terms:
        say(f"rank {place.rank} came for {terms}, the others for {agreed}")
    elif store.add(f"{keys[place.rank]}/came", 1) > 1:
        say(f"two processes joined as rank {place.rank}")
    else:
        store.set(keys[place.rank], introduce(address))
        if store.add(f"{prefix}arrived", 1) == place.size:
            say("ok")
    while not store.check([f"{prefix}outcome"]):
        if time.monotonic() > until:
            missing = ", ".join(str(rank) for rank, key in enumerate(keys) if not store.check([key]))
            say(f"not come within {PATIENCE:.0f} s: rank {missing}")
        time.sleep(BETWEEN_LOOKS)
    outcome = store.get(f"{prefix}outcome").decode()
    all_well = outcome == "ok"
    texts = [store.get(key).decode() for key in keys] if all_well else []
    if not place.hosted:
        leave(store, place.rank == 0, store.add(f"{prefix}present", 0) - 1)
    if not all_well:
        raise RuntimeError(outcome)
    return texts


def leave(store: Any, hosts_it: bool, others: int) -> None:
    """The process that hosts the store goes last."""
    if not hosts_it:
        store.add("dpwa/left", 1)
    until = time.monotonic() + FAREWELL
    while hosts_it and store.add("dpwa/left", 0) < others and time.monotonic() < until:
        time.sleep(BETWEEN_LOOKS)
