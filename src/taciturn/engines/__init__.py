"""Tables in partitions, which answer with exact integer sums over their records."""

import lazy_loader

# The stub beside this file lists the public names; each is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
