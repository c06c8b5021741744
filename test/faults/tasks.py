"""Ends asyncio tasks for certain."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


async def end_all(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancels until all are done: before Python 3.12 wait_for loses a cancellation that meets its result."""
    tasks = [*tasks]
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.2)
    await asyncio.gather(*tasks, return_exceptions=True)  # whatever they failed with has been looked at
