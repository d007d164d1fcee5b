"""The manuals of the tools: when to use them, when not. They stand in the system prompt."""

ASK = """\
Asks the person when a decision is theirs: wishes that are not clear, or ways that differ in what they would notice. Do not ask
what you can find out yourself or what has a sensible default, and do not ask for permission or for approval of a plan.
- One to four questions in one call, each with two to four options that exclude each other, or multiSelect.
- Put the option that you would take first and add "(recommended)" to its label. Do not add "Other": it is always offered.
- Where nobody can be asked the call is refused. Then decide yourself and say what you decided."""

ENTER = """\
Use it before work that changes several files, can be done in several ways, or whose goal has to be found first. Do not use it
for small or fully described changes, nor for pure research. In plan mode nothing is changed until the person has approved a
plan."""

EXIT = """\
Only in plan mode, when the plan in the plan file is complete and every question about it is answered. It takes the plan from the
file, so do not repeat it. If it is refused, plan mode stays on: change the plan as the person says and call it again. Do not use
it for research that changes nothing."""

SEARCH = """\
Some tools are known by name only until they are looked up. Look up what you need before you call it:
- select:Name1,Name2 takes tools by their exact names.
- Words are searched in names and descriptions; +word must be there. The best five are shown with their schemas."""
