"""Lines in, lines out: for screen readers, dumb terminals and logs. Nothing is drawn twice, nothing moves."""

from __future__ import annotations

import asyncio
import os
import shutil
from contextlib import suppress

import anyio

from kernel_terminal.lines import Line, spoken, text_of
from kernel_terminal.questions import Choice, Given, Question
from kernel_terminal.safe import plain
from kernel_terminal.screen import Handlers

READ_AT_ONCE = 65_536
PROMPT = "> "


class PlainScreen:
    """The terminal stays in its own line mode, so its own editing works. A line that ends with a backslash goes on."""

    plain = True

    def __init__(self) -> None:
        self.handlers = Handlers()
        self._buffer = b""
        self._typed = ""
        self._answer: asyncio.Future[str] | None = None
        self._over = anyio.Event()
        self._asking = anyio.Lock()
        self._prompted = self._gone = False

    @property
    def columns(self) -> int:
        return shutil.get_terminal_size().columns

    # -- out -----------------------------------------------------------------------------------------------------------------
    def show(self, lines: list[Line]) -> None:
        texts = [text for line in lines if (text := text_of(line).rstrip())]
        if texts:
            self._put("".join(f"{text}\n" for text in texts))

    def _put(self, text: str) -> None:
        front = "\n" if self._prompted else ""
        self._prompted = False
        self.write(front + text)

    def write(self, sequence: str) -> None:
        with suppress(OSError, ValueError):
            view = memoryview(sequence.encode("utf-8", "replace"))
            while view:
                view = view[os.write(1, view):]

    def changed(self) -> None:
        """Nothing is live here."""

    def ready(self) -> None:
        """The next line may be typed."""
        if not self._prompted and self._answer is None:
            self._put(PROMPT)
            self._prompted = True

    async def started(self) -> None:
        """There is nothing to wait for."""

    # -- in ------------------------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        loop.add_reader(0, self._read)
        try:
            await self._over.wait()
        finally:
            loop.remove_reader(0)

    def stop(self) -> None:
        self._over.set()
        if self._prompted:
            self._put("")

    def _read(self) -> None:
        try:
            data = os.read(0, READ_AT_ONCE)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(0)
            self._gone = True
            if self._answer is not None and not self._answer.done():
                self._answer.set_exception(EOFError("the terminal is gone"))
            self.handlers.leave()
            return
        self._prompted = False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for raw in lines:
            self._line(raw.decode("utf-8", "replace").rstrip("\r"))

    def _line(self, text: str) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(text)
            return
        if text.endswith("\\"):
            self._typed += text[:-1] + "\n"
            return
        text, self._typed = self._typed + text, ""
        self.handlers.line(text)

    # -- questions -------------------------------------------------------------------------------------------------------------
    async def ask(self, question: Question) -> Given:
        async with self._asking:
            self._say(f"{question.kind}: {question.title}")
            for line in question.body:
                if text := spoken(line):
                    self._say(f"Detail: {text}")
            if question.open:
                return Given(text=await self._line_for(question.open) or question.default)
            for number, choice in enumerate(question.choices, 1):
                self._say(f"Choice {number}: {choice.label}{f' ({choice.detail})' if choice.detail else ''}")
            chosen = await self._chosen(question)
            asks = next((c.ask for c in chosen if c.ask), "")
            return Given(chosen, await self._line_for(asks) if asks else "")

    async def _chosen(self, question: Question) -> list[Choice]:
        count = len(question.choices)
        ask = f"Type {'numbers' if question.many else 'a number'} from 1 to {count}"
        while True:
            words = (await self._line_for(ask)).replace(",", " ").split()
            numbers = [int(word) for word in words if word.isdecimal() and 0 < int(word) <= count]
            if numbers and len(numbers) == len(words) and (question.many or len(numbers) == 1):
                return [question.choices[n - 1] for n in dict.fromkeys(numbers)]
            self._say("Note: that is no such number.")

    async def _line_for(self, ask: str) -> str:
        if self._gone:
            raise EOFError("the terminal is gone")
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._put(f"{plain(ask)}: ")
            self._prompted = True
            return await self._answer
        finally:
            self._answer = None

    def _say(self, text: str) -> None:
        self._put("".join(f"{part}\n" for part in plain(text).splitlines() or [""]))

