"""An input line with what is going on above it, below the terminal's own scrollback (prompt_toolkit).

What is over is printed once and belongs to the terminal: it scrolls, is searched and copied there. Only the lines at the
bottom are drawn again. The whole width is never filled, so that a terminal that becomes narrower has little to break.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, ConditionalContainer, FormattedTextControl, HSplit, Layout, VSplit, Window
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.renderer import print_formatted_text
from prompt_toolkit.styles import Style

from kernel_terminal.chooser import Asked
from kernel_terminal.lines import STYLES, Line, cut, cut_line, hung, width_of, wrapped
from kernel_terminal.questions import Given, Question
from kernel_terminal.safe import exact
from kernel_terminal.screen import Handlers
from kernel_terminal.typed import Suggestions, kept_history

Drawn = StyleAndTextTuples
MENU_ROWS = 8
INPUT_ROWS = 10
TICK_S = 0.1
TYPED_AHEAD_S = 0.3
TWICE_S = 2.0
PAUSE_S = 0.7
"""Without a key for so long, a person has stopped to type."""
BEGIN, END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know them show everything in between at once; others ignore them."""


class LiveScreen:
    """:param history: the file that keeps what was typed; ``None``: it is forgotten."""

    plain = False

    def __init__(self, history: Path | None = None) -> None:
        self.handlers = Handlers()
        self._asked: Asked | None = None
        self._asking = anyio.Lock()
        self._armed = self._last_key = -TWICE_S
        self._began = 0.0
        self._drawn = anyio.Event()
        self._hint = ""
        self._stopped = False
        self._style = Style.from_dict(STYLES)
        self._output = Vt100_Output(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace"), self._size,
                                    term=os.environ.get("TERM"), enable_cpr=False)
        self._depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else self._output.get_default_color_depth()
        self._buffer = Buffer(multiline=True, complete_while_typing=True, history=kept_history(history), completer=Suggestions(
            lambda before: self.handlers.complete(before), lambda: self._asked is None))
        self._app: Application[None] = Application(
            layout=Layout(self._layout()), key_bindings=self._keys(), style=self._style, full_screen=False, erase_when_done=True,
            mouse_support=False, output=self._output, color_depth=self._depth)
        self._app.ttimeoutlen, self._app.timeoutlen = 0.05, 0.3

    @property
    def columns(self) -> int:
        return max(shutil.get_terminal_size().columns, 20)

    @property
    def _rows(self) -> int:
        return max(shutil.get_terminal_size().lines, 6)

    def _size(self) -> Size:
        return Size(rows=self._rows, columns=self.columns)

    # -- out ----------------------------------------------------------------------------------------------------------------
    def show(self, lines: list[Line]) -> None:
        if not lines:
            return
        pieces: Drawn = [piece for line in lines for piece in (*((_class(style), text) for style, text in line), ("", "\n"))]
        with suppress(OSError, ValueError):
            running = self._app.is_running and not self._stopped
            if running:
                self._output.write_raw(BEGIN)
                self._app.renderer.erase(leave_alternate_screen=False)
            print_formatted_text(self._output, pieces, self._style, color_depth=self._depth)
            if running:
                self._app.render_counter += 1  # what is drawn is asked for anew
                with set_app(self._app):
                    self._app.renderer.render(self._app, self._app.layout)
                self._output.write_raw(END)
                self._output.flush()

    def write(self, sequence: str) -> None:
        with suppress(OSError, ValueError):
            self._output.write_raw(sequence)
            self._output.flush()

    def changed(self) -> None:
        self._app.invalidate()

    def ready(self) -> None:
        self.changed()

    async def started(self) -> None:
        await self._drawn.wait()

    async def run(self) -> None:
        async def tick() -> None:
            while True:
                await asyncio.sleep(TICK_S)
                if self.handlers.live(1):
                    self._app.invalidate()

        def drawn(app: Any) -> None:
            if not self._drawn.is_set():
                self._began = asyncio.get_running_loop().time()
                self._drawn.set()

        self._app.after_render += drawn
        ticking = asyncio.ensure_future(tick())
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):
            pass
        finally:
            ticking.cancel()
            self._stopped = True
            self._drawn.set()
            if self._asked is not None:
                self._asked.fail(EOFError("the terminal is gone"))
            self.handlers.leave()

    def stop(self) -> None:
        self._stopped = True
        if self._app.is_running:
            with suppress(Exception):  # it is about to end by itself
                self._app.exit()

    # -- questions -------------------------------------------------------------------------------------------------------------
    async def ask(self, question: Question) -> Given:
        async with self._asking:
            if self._stopped:
                raise EOFError("the terminal is gone")
            if question.body:
                self.show([[], *(part for line in question.body for part in hung(line, self.columns - 1))])
            typed, asked = self._buffer.text, Asked(question, typing=self._paused() < PAUSE_S)
            self._asked = asked
            self._buffer.reset(Document(question.default))
            self.write("\a")
            self.changed()
            try:
                return await asked.answer
            finally:
                self._asked = None
                self._buffer.reset(Document(typed))
                self.changed()

    # -- what is drawn ------------------------------------------------------------------------------------------------------
    def _layout(self) -> HSplit:
        choosing = Condition(lambda: self._asked is not None and self._asked.choosing)
        rows = _window(self._choices, wrap=True)
        field = VSplit([
            Window(FormattedTextControl(self._input_front), width=2, dont_extend_width=True),
            Window(BufferControl(self._buffer), wrap_lines=True, dont_extend_height=True, height=self._input_height)])
        return HSplit([
            _window(self._live),
            _window(self._waiting),
            ConditionalContainer(rows, choosing),
            ConditionalContainer(HSplit([_window(self._above_input), field, _window(self._menu)]), ~choosing),
            _window(self._status)])

    def _live(self) -> Drawn:
        if self._asked is not None:
            return []
        return _joined(self.handlers.live(max(self._rows - 8, 3)))

    def _waiting(self) -> Drawn:
        texts = [exact(" ".join(text.split())) for text in self.handlers.waiting()[-4:]]
        return _joined([[("dim", f"  waits: {cut(text, self.columns - 12)}")] for text in texts])

    def _above_input(self) -> Drawn:
        """What the words are for; without a question a blank line."""
        return _joined(wrapped([("bold", f"{self._asked.words_for}:")], self.columns - 1) if self._asked is not None else [[]])

    def _input_front(self) -> Drawn:
        return [(_class("accent"), "> ")]

    def _input_height(self) -> Any:
        from prompt_toolkit.layout import Dimension

        return Dimension(min=1, max=max(min(INPUT_ROWS, self._rows - 6), 1))

    def _choices(self) -> Drawn:
        return _joined([[], *self._asked.lines(self.columns - 1, self._rows)]) if self._asked is not None else []

    def _menu(self) -> Drawn:
        state = self._buffer.complete_state
        if state is None or not state.completions:
            return []
        at = state.complete_index if state.complete_index is not None else -1
        first = min(max(at - MENU_ROWS + 1, 0), max(len(state.completions) - MENU_ROWS, 0))
        shown = state.completions[first:first + MENU_ROWS]
        wide = min(max(width_of(c.display_text) for c in shown), max(self.columns // 2, 20))
        lines = []
        for number, completion in enumerate(shown, first):
            name = cut(completion.display_text, wide)
            mark, style = (">", "chosen") if number == at else (" ", "")
            lines.append(cut_line([(style, f"{mark} {name}{' ' * (wide - width_of(name))}"),
                                   ("dim", f"  {completion.display_meta_text}")], self.columns - 1))
        if len(state.completions) > first + MENU_ROWS:
            lines.append([("dim", f"  … {len(state.completions) - first - MENU_ROWS} more")])
        return _joined(lines)

    def _status(self) -> Drawn:
        line = [("warn", self._hint)] if self._hint else self.handlers.status()
        return _joined([cut_line(line, self.columns - 1)])

    # -- keys ---------------------------------------------------------------------------------------------------------------
    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        choosing = Condition(lambda: self._asked is not None and self._asked.choosing)
        asked = Condition(lambda: self._asked is not None)
        menu = Condition(lambda: self._buffer.complete_state is not None and bool(self._buffer.complete_state.completions))
        blank = Condition(lambda: not self._buffer.text)

        def on(*names: str, when: Any = True, eager: bool = False) -> Callable[[Callable[[], None]], None]:
            def bind(run: Callable[[], None]) -> None:
                @keys.add(*names, filter=when, eager=eager)
                def _(event: KeyPressEvent) -> None:
                    self._hint = ""
                    if not self._astray(names[0]):
                        run()
            return bind

        on("enter", when=~choosing)(self._enter)
        on("escape", "enter")(lambda: self._buffer.newline(copy_margin=False))
        on("c-j", when=~choosing)(self._control_j)
        on("escape", when=~menu)(self._escape)
        on("escape", when=menu)(self._buffer.cancel_completion)
        on("c-c")(self._control_c)
        on("c-d", when=blank & ~asked)(lambda: self.handlers.leave())
        on("s-tab", when=~asked)(lambda: self.handlers.mode())
        on("tab", when=~choosing)(self._tab)
        on("c-o", when=~asked)(lambda: self.handlers.whole())
        on("c-z")(self._app_suspend)
        on("c-l")(lambda: self._app.renderer.clear())
        on("up", when=blank & ~asked & ~menu)(self._up)
        on("up", when=menu)(lambda: self._buffer.complete_previous())
        on("down", when=menu)(lambda: self._buffer.complete_next())
        def choose(name: str, *args: Any) -> Callable[[], None]:
            def run() -> None:
                if self._asked is not None and getattr(self._asked, name)(*args):
                    self._buffer.reset()  # for the words
            return run

        for key, by in (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1)):
            on(key, when=choosing)(choose("move", by))
        on("enter", when=choosing)(choose("choose"))
        on("space", when=choosing)(choose("mark"))
        for digit in range(1, 10):
            on(str(digit), when=choosing)(choose("number", digit - 1))
        on("<any>", when=choosing)(lambda: None)
        self._buffer.on_text_changed += self._typed
        return keys

    def _typed(self, buffer: Buffer) -> None:
        with suppress(RuntimeError):  # no loop yet
            self._last_key = asyncio.get_running_loop().time()

    def _paused(self) -> float:
        """Seconds since something was typed into the input line."""
        return asyncio.get_running_loop().time() - self._last_key

    def _astray(self, key: str) -> bool:
        """Whether a key was typed before the person can have seen the question."""
        if self._asked is None or not self._asked.typing:
            return False
        self._asked.typing = self._paused() < PAUSE_S and key not in ("escape", "c-c")
        self._last_key = asyncio.get_running_loop().time()
        return self._asked.typing and self._asked.choosing

    def _enter(self) -> None:
        state = self._buffer.complete_state
        if state is not None and state.current_completion is not None:
            self._buffer.apply_completion(state.current_completion)
            if self._asked is not None or not re.fullmatch(r"\s*/\S+ ", self._buffer.text):
                return  # a file in a message, which goes on
        text = self._buffer.text
        if self._asked is not None:
            self._asked.words(text)
            return
        if text.endswith("\\"):  # as in a shell: the line goes on
            self._buffer.delete_before_cursor(1)
            self._buffer.newline(copy_margin=False)
            return
        if text.strip():
            self._buffer.append_to_history()
        self._buffer.reset()
        self.handlers.line(text)
        self._last_key = -TWICE_S  # who sends has done with typing

    def _control_j(self) -> None:
        """A new line. What was typed before we listened came through the terminal's line mode, where enter is this key."""
        if asyncio.get_running_loop().time() - self._began < TYPED_AHEAD_S:
            self._enter()
        else:
            self._buffer.newline(copy_margin=False)

    def _escape(self) -> None:
        if self._asked is not None:
            self._asked.back()
        else:
            self.handlers.interrupt()

    def _control_c(self) -> None:
        if self._asked is not None:
            self._asked.give(Given())
        elif self._buffer.text:
            self._buffer.reset()
        elif not self.handlers.interrupt():
            now = asyncio.get_running_loop().time()
            if now - self._armed < TWICE_S:
                self.handlers.leave()
            self._armed, self._hint = now, "ctrl-c once more leaves"

    def _tab(self) -> None:
        state = self._buffer.complete_state
        if state is None or not state.completions:
            self._buffer.start_completion(select_first=True)
        elif len(state.completions) == 1:
            self._buffer.apply_completion(state.completions[0])
        else:
            self._buffer.complete_next()

    def _up(self) -> None:
        if text := self.handlers.take_back():
            self._buffer.reset(Document(text))
        else:
            self._buffer.history_backward()

    def _app_suspend(self) -> None:
        self._app.suspend_to_background()


def _window(text: Callable[[], Drawn], *, wrap: bool = False) -> ConditionalContainer:
    """Lines that take as much room as they need, and none where there are none."""
    control = FormattedTextControl(text, show_cursor=False, get_cursor_position=lambda: Point(0, 0))
    return ConditionalContainer(Window(control, dont_extend_height=True, wrap_lines=wrap), Condition(lambda: bool(text())))


def _class(style: str) -> str:
    return f"class:{style}" if style else ""


def _joined(lines: list[Line]) -> Drawn:
    out: Drawn = []
    for number, line in enumerate(lines):
        if number:
            out.append(("", "\n"))
        out += [(_class(style), text) for style, text in line] or [("", " ")]
    return out
