"""A harness as a file: ``harness.yaml`` says what a team wants, ``kernel.lock`` says which bytes that is.

``model`` and ``document`` read harness.yaml; ``lockfile`` is the lock; ``wheels`` and ``resolve`` find distributions;
``locking`` makes a lock out of a harness; ``sync`` puts the locked files in place; ``verify``, ``show``, ``export`` and
``starter`` read. The kernel itself reads the lock again, without this plugin, when a run names the harness (``--harness``).
"""
