"""Hook implementations."""

from __future__ import annotations
