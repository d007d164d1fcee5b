"""The manuals of the tools: when to use them, when not. They stand in the system prompt."""

CREATE = """\
Puts a task on the list that the person can see. Use the list for work of three or more steps, when the person gives several
things to do, or when new work turns up on the way. For one simple step do it without a task.
- subject: what is to be done, short and imperative ("Fix the login test"). activeForm: the same while it runs ("Fixing the
  login test").
- description: enough that another agent could do it, with the condition under which it is done.
- New tasks are pending and have no owner. Order them with TaskUpdate: addBlockedBy, addBlocks.
- A hook may refuse a task; the error says why."""

GET = """\
Gives one task with its description and what it blocks and waits for. Read it before you start on a task that you did not just
write; a task that waits for another one that is not completed is not ready."""

UPDATE = """\
Changes a task.
- Set in_progress when you start and completed as soon as it is done; work on one task at a time.
- Set completed only when all of it is done and checked. While tests fail, or a part is missing, it stays in_progress; put what
  stands in the way on the list as a task of its own.
- deleted removes a task that is not needed any more. metadata is merged; null removes a key.
- A hook may refuse the completion; the error says what is missing, and nothing of the update counts."""

LIST = """\
Lists all tasks: id, status, subject, owner and which unfinished tasks each waits for. Look at it when a task is done, to choose
the next one: pending, without owner, waiting for nothing; the lowest id first."""

TODO = """\
Keeps the list of what is to be done, which the person can see. Each call replaces the whole list.
- Use it for work of three or more steps or when several things are asked for; not for one simple step.
- content is imperative ("Run the tests"), activeForm is the same while it runs ("Running the tests").
- Mark an entry in_progress before you start it, one at a time, and completed as soon as it is done and checked. What is not
  needed any more is left out."""
