"""Records a run and replays it, step by step."""
