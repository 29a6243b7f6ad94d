"""What every table of docs/ is made with: the raw files in docs/measurements/raw, and the tables by name."""
import json

from experiment import ROOT

RAW = ROOT / "docs/measurements/raw"
TABLES = {}
NUMBERS = {}


def table(name, also=(), derived=lambda: {}):
    """A table's function. The text of its section may have the table's own numbers. Beyond them: those of `also`, raw files
    that the table does not read, and of `derived`, a function that computes numbers from raw files, by what they are."""
    def add(function):
        TABLES[name] = function, also, derived
        return function
    return add


def numbers_beside(name):
    """A function that computes further numbers for the text of the section that a table is in."""
    def add(function):
        NUMBERS.setdefault(name, []).append(function)
        return function
    return add


class RawFiles:
    """The raw files, and which of them were read."""

    def __init__(self):
        self.read = {}

    def __call__(self, name):
        if name not in self.read:
            file = RAW / f"{name}.json"
            if not file.exists():
                raise SystemExit(f"error: {file.relative_to(ROOT)} is missing; see tools/results --help for how it is made")
            self.read[name] = json.loads(file.read_text())
        return self.read[name]["output"]


raw = RawFiles()


def by(items, key, value):
    return next(item for item in items if item[key] == value)


def percent(share, digits=1):
    return f"{100 * share:.{digits}f} %"


def smallest_to_largest(values, text):
    """As written by text(value): one number where the two are the same."""
    first, last = text(min(values)), text(max(values))
    return first if first == last else f"{first} to {last}"


def with_error(found, digits=3, scale=1):
    """A mean ± its standard error."""
    mean, error = (f"{scale * found[name]:.{digits}f}" for name in ("mean", "standard_error"))
    return f"{mean} ± {error}".replace("-", "−")


def points(found):
    """A share's mean ± its standard error, in points."""
    return with_error(found, 1, 100)


PAPERS = json.loads((RAW / "papers.json").read_text())
HEDGEHOG = PAPERS["Zhang et al. 2024, The Hedgehog & the Porcupine"]
