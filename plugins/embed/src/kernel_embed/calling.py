"""Functions of the program: coroutines are awaited, the others run in a thread, so that no loop waits for them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio.to_thread


def is_async(function: Callable[..., Any]) -> bool:
    inner = inspect.unwrap(function)
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(getattr(inner, "__call__", None))  # noqa: B004


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What it returns. A thread cannot be ended: an interrupted one runs to its end, and nobody sees what it returns."""
    if is_async(function):
        return await function(*args, **kwargs)
    value = await anyio.to_thread.run_sync(partial(function, *args, **kwargs), abandon_on_cancel=True)
    return await value if inspect.isawaitable(value) else value
