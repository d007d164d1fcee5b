"""Hook implementations, a few lines each; the work is in the modules beside this one, imported when it is needed."""

from __future__ import annotations

from kernel import Registry, Tool, hookimpl


@hookimpl
def register_tools(register: Registry[Tool]) -> None:
    from kernel_word_count.tool import WordCountTool

    register(WordCountTool())
