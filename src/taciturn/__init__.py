"""Sparse linear models and feature selection under differential privacy.

*Few coefficients, and a proven limit on what they reveal about any one person.*

Every name in this namespace carries a guarantee that is proved. Fitted objects have a ``certificate_`` that
says what was released, at what cost, and under which assumptions.
"""

import lazy_loader

from taciturn._version import __version__

# The stub beside this file lists the public names; each is imported on first use.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
