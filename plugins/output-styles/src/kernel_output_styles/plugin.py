"""Hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel import hookimpl

if TYPE_CHECKING:
    from kernel import Extension, PromptPart, Registry


@hookimpl
def register_prompt_parts(register: Registry[PromptPart]) -> None:
    from kernel_output_styles.parts import CodingRules, StyleText

    register(CodingRules())
    register(StyleText())


@hookimpl
def register_extensions(register: Registry[Extension]) -> None:
    from kernel_output_styles.parts import StyleReminder

    register(StyleReminder())
