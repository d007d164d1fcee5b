"""Instruction files, rules by path and auto memory."""
