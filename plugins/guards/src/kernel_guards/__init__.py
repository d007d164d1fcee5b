"""Limits of turns, time, money and tokens; repeated calls are told and stopped."""
