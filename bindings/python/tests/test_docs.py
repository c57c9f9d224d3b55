"""The page for Python: its programs run, and its recipes are those of the tests."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import leasehold
import pytest

from support import Redis, run

ROOT = Path(__file__).parent.parent.parent.parent
PAGE = ROOT / "docs" / "python.md"
RECIPES = ROOT / "bindings" / "python" / "recipes"


def blocks() -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def programs() -> list[tuple[str, str | None]]:
    """Returns each program of the page, and what the page says that it prints."""
    found = []
    page = [*blocks(), ("", "")]
    recipes = {path.read_text() for path in RECIPES.rglob("*.py")}
    for (language, text), (next_language, output) in zip(page, page[1:]):
        if language == "python" and text not in recipes:
            found.append((text, output if next_language == "text" else None))
    return found


@pytest.mark.parametrize(("text", "output"), programs())
def test_program_of_the_page_runs(
    text: str, output: str | None, redis: Redis, tmp_path: Path
) -> None:
    redis.command("FLUSHALL")
    text = text.replace("redis://localhost", redis.url).replace("/tmp/locks", str(tmp_path))
    printed = run(text)
    if output is None:
        assert re.fullmatch(r"I have the lock, with fence \d+\n", printed)
    else:
        assert printed == output


def test_readme_shows_the_first_program() -> None:
    first = next(text for language, text in blocks() if language == "python")
    assert f"```python\n{first}```" in (ROOT / "README.md").read_text()


def test_page_has_all_recipes() -> None:
    page = {text for language, text in blocks() if language == "python"}
    recipes = [path for path in RECIPES.rglob("*.py") if path.read_text()]
    assert len(recipes) == 6
    for path in recipes:
        assert path.read_text() in page, path


def test_page_quotes_the_warning(locks: leasehold.Client) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        locks.lock("report").acquire()
    assert f"RuntimeWarning: {caught[0].message}" in PAGE.read_text()


def test_page_names_every_exception_and_option() -> None:
    page = PAGE.read_text()
    for name in leasehold.errors.__all__:
        assert f"`{name}`" in page or name == "LeaseholdError"
    options = leasehold.Client.lock.__kwdefaults__
    assert options and all(f"| `{name}` |" in page for name in options)
