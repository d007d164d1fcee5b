"""``kernel context show`` and ``kernel memory``."""
class ContextShow:
    name="context show"; summary="x"
    def run(self,args): return 0
class MemoryCommand:
    name="memory"; summary="x"
    def run(self,args): return 0
