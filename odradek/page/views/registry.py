"""All views, by name."""

from typing import Final

from odradek.page.views import View
from odradek.page.views.overview import OVERVIEW

VIEWS: Final[dict[str, View]] = {view.name: view for view in (OVERVIEW,)}
