"""The provider through the real loop."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kernel import UsageError
from kernel.testing import Kit, assert_end


def kit_for(kernel_kit: Callable[..., Kit], model: str) -> Kit:
    return kernel_kit(installed=["sample-plugin"], model=f"sample-plugin:{model}")


def test_it_answers(kernel_kit: Callable[..., Kit]) -> None:
    run = kit_for(kernel_kit, "echo").play("hello there")
    assert_end(run, text="You said: hello there")
    assert run.result.usage.output_tokens > 0


def test_a_refusal_of_the_server_ends_the_run_and_is_told(kernel_kit: Callable[..., Kit]) -> None:
    run = kit_for(kernel_kit, "echo").play("x" * 100_001)
    assert run.result.is_error and "too long to repeat" in str(run.result)


def test_a_model_that_is_not_served_is_refused_by_name(kernel_kit: Callable[..., Kit]) -> None:
    with pytest.raises(UsageError, match="does not serve the model 'other'"):
        kit_for(kernel_kit, "other").play("hello")
