"""Make the links of a release absolute, as the package index needs them.

Usage: release_links.py REPOSITORY_URL REVISION

Run it in the checkout of a release, before the build; it changes two files. In README.md, links to files and headings become
links to REPOSITORY_URL at REVISION. pyproject.toml gets ``[project.urls]``. The release workflow knows the URL; no file has it.
"""

import re
import sys
from pathlib import Path

# Their targets are no URLs.
IMAGE = re.compile(r"(!\[[^]]*\]\()(?!https?:)([^)]+)\)")
LINK = re.compile(r"(?<!!)(\[[^]]*\]\()(?!https?:)([^)]+)\)")


def absolute(readme: str, url: str, revision: str) -> str:
    """README with absolute links. Images lead to the file itself, other links to the page that shows it."""
    readme = IMAGE.sub(rf"\g<1>{url}/raw/{revision}/\g<2>)", readme)
    return LINK.sub(rf"\g<1>{url}/blob/{revision}/\g<2>)", readme.replace("](#", "](README.md#"))


def with_urls(pyproject: str, url: str, revision: str) -> str:
    """pyproject.toml with ``[project.urls]``."""
    urls = f"""[project.urls]
Repository = "{url}"
Documentation = "{url}/tree/{revision}/docs"
Changelog = "{url}/blob/{revision}/CHANGELOG.md"
Issues = "{url}/issues"

"""
    return pyproject.replace("[project.scripts]\n", urls + "[project.scripts]\n", 1)


def main(url: str, revision: str) -> int:
    """Change both files of the working directory."""
    for name, change in (("README.md", absolute), ("pyproject.toml", with_urls)):
        path = Path(name)
        path.write_text(change(path.read_text(encoding="utf-8"), url, revision), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
