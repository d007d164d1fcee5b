"""No hook implementations: what a program brings is registered for its own agents alone (``agent.py``), never for other runs."""
