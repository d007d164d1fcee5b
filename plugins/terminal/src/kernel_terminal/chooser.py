"""A question on the screen: where the cursor is, what is marked, and what it looks like. Knows no terminal."""

from __future__ import annotations

import asyncio

from kernel_terminal.lines import Line, width_of, wrapped
from kernel_terminal.questions import Choice, Given, Question

ROWS = 10
"""Choices that are seen at once."""


class Asked:
    """:param typing: the person was typing when the question came. What was meant for the input line must not answer it, so keys
    do nothing until there was a pause; the front end sees to it."""

    def __init__(self, question: Question, *, typing: bool = False) -> None:
        self.question = question
        self.typing = typing
        self.answer: asyncio.Future[Given] = asyncio.get_running_loop().create_future()
        self._at = 0
        self._marked: set[int] = set()
        self._made: list[Choice] | None = [] if question.open else None
        """The choices that were made and want words."""

    @property
    def choosing(self) -> bool:
        """Whether a choice is to be made now; otherwise words are to be typed."""
        return self._made is None

    @property
    def words_for(self) -> str:
        return next((c.ask for c in self._made or () if c.ask), self.question.open)

    # -- keys: true where words are asked for next -----------------------------------------------------------------------------
    def move(self, by: int) -> bool:
        self._at = (self._at + by) % len(self.question.choices)
        return False

    def mark(self) -> bool:
        if self.question.many:
            self._marked ^= {self._at}
        return False

    def number(self, place: int) -> bool:
        if place >= len(self.question.choices):
            return False
        self._at = place
        return self.mark() if self.question.many else self.choose()

    def choose(self) -> bool:
        choices = self.question.choices
        made = [choices[n] for n in sorted(self._marked)] or [choices[self._at]]
        if any(choice.ask for choice in made):
            self._made = made
            return True
        self.give(Given(made))
        return False

    def words(self, text: str) -> None:
        self.give(Given(self._made or [], text))

    def back(self) -> None:
        """From the words back to the choices; from the choices: no answer."""
        if self._made:
            self._made = None
        else:
            self.give(Given())

    def give(self, given: Given) -> None:
        if not self.answer.done():
            self.answer.set_result(given)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)

    # -- what it looks like ----------------------------------------------------------------------------------------------------
    def lines(self, columns: int, rows: int) -> list[Line]:
        question = self.question
        lines: list[Line] = wrapped([("bold", question.title)], columns)
        count = len(question.choices)
        room = max(min(ROWS, rows - len(lines) - 4), 2)
        first = min(max(self._at - room // 2, 0), max(count - room, 0))
        if first:
            lines.append([("dim", f"    … {first} above")])
        for number in range(first, min(first + room, count)):
            choice, here = question.choices[number], number == self._at
            box = ("[x] " if number in self._marked else "[ ] ") if question.many else ""
            front = f"{'>' if here else ' '} {number + 1}. {box}"
            detail = [("dim", f"  {choice.detail}")] if choice.detail else []
            lines += wrapped([("chosen" if here else "", choice.label), *detail], columns, front, " " * width_of(front))
        if first + room < count:
            lines.append([("dim", f"    … {count - first - room} below")])
        keys = "space marks, enter answers" if question.many else "arrows and enter, or a number"
        return [*lines, [("dim", f"  {keys}; esc: no answer")]]
