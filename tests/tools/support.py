"""What the tests of tools/ share: a program that prints given JSON in place of hydrascope, and tools without an ending
as modules."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

PROGRAM = """#!/usr/bin/env python3
import json, pathlib, sys
here, words = pathlib.Path(__file__).parent, sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("hydrascope 9.8.7\\nof a test"))
with open(here / "calls", "a") as calls:
    calls.write(json.dumps(words) + "\\n")
for needed, printed, status in reversed(json.loads((here / "answers").read_text())):
    if set(needed) <= set(words):
        print(printed)
        if "-o" in words and status == 0:
            pathlib.Path(words[words.index("-o") + 1]).touch()
        sys.exit(status)
sys.exit(f"no answer to {words}")
"""


class FakeProgram:
    """Answers calls that have all the given words, by the answer added last; notes the words of each call."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self.answers, self.noted = folder / "hydrascope", folder / "answers", folder / "calls"
        self.path.write_text(PROGRAM)
        self.path.chmod(0o755)
        self.answers.write_text("[]")

    def answer(self, words, value, status=0):
        printed = value if isinstance(value, str) else json.dumps(value)
        self.answers.write_text(json.dumps([*json.loads(self.answers.read_text()), [words, printed, status]]))

    def calls(self):
        return [json.loads(line) for line in self.noted.read_text().splitlines()] if self.noted.exists() else []


class ToolTest(unittest.TestCase):
    """Has an empty folder and a fake program in it."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.out = self.folder / "out"
        self.program = FakeProgram(self.folder / "program")

    def tool(self, *words, root=ROOT, **environment):
        """Runs a tool with the fake program."""
        return subprocess.run([sys.executable, str(root / "tools" / words[0]), *map(str, words[1:])], text=True,
                              capture_output=True, env=os.environ | {"HYDRASCOPE_PROGRAM": str(self.program.path),
                                                                     "HYDRASCOPE_PROCESSES": "1"} | environment)

    def json(self, name):
        return json.loads((self.out / f"{name}.json").read_text())


def load(name):
    """A tool without an ending as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "tools" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
