"""tools/check-tidy: which sources it finds, wherever checkout and build folder lie."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import ROOT

# Notes its arguments, and complains about a source, or one that it includes, with "bad" in it.
CLANG_TIDY = """#!/usr/bin/env bash
if [[ $1 == --version ]]; then echo "version 1"; exit; fi
echo "$*" >>"$NOTED"
cd "$CHECKOUT" && for file in "$2" $(sed -n 's/^#include "\\(.*\\)"/\\1/p' "$2"); do if grep -q bad "$file"; then exit 1; fi; done
"""


class CheckTidyTest(unittest.TestCase):
    """Has a checkout of three sources, two of them in a unit."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.checkout, self.link, self.noted = (self.folder / name for name in ("checkout", "link", "noted"))
        self.link.symlink_to(self.checkout)
        for name in "tools/check-tidy", "tools/versions.sh", ".clang-tidy", "tests/.clang-tidy":
            (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.checkout / name)
        for name in "engine/one.cpp", "engine/two.cpp", "tests/three.cpp":
            self.write(self.checkout / name, "int x;\n")
        clang_tidy = re.search(r"^CLANG_TIDY=(\S+)$", (ROOT / "tools/versions.sh").read_text(), re.M)[1]
        for name, text in (clang_tidy, CLANG_TIDY), ("ninja", "#!/bin/sh\n"):
            self.write(self.folder / "bin" / name, text).chmod(0o755)

    def write(self, file, text):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def build(self, checkout, build, sources=("tests/three.cpp",)):
        """A build folder as cmake names its files where it was called with these folders."""
        unit = self.write(build / "generated/units/engine_engine_0.cpp",
                          '#include "engine/one.cpp"\n#include "engine/two.cpp"\n')
        files = [unit, *(checkout / source for source in sources)]
        self.write(build / "compile_commands.json", json.dumps(
            [{"directory": str(build), "file": str(file), "command": f"c++ -o {file.name}.o -c {file}"} for file in files]))
        return build

    def tool(self, checkout, *words):
        self.noted.write_text("")
        done = subprocess.run([checkout / "tools/check-tidy", *words], text=True, capture_output=True, cwd=checkout, env=os.environ | {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "NOTED": str(self.noted), "CHECKOUT": str(self.checkout),
            "XDG_CACHE_HOME": str(self.folder / "cache")})
        return done, [line.split()[1] for line in self.noted.read_text().splitlines()]

    def test_finds_what_is_wrong_through_links_and_outside(self):
        self.write(self.checkout / "engine/two.cpp", "bad\n")
        for checkout, build in ((self.checkout, self.checkout / "build"), (self.link, self.link / "build"),
                                (self.checkout, self.folder / "outside"), (self.link, self.folder / "outside")):
            self.build(checkout, build)
            done, sources = self.tool(checkout, "--build", build)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("[tidy] 2 sources, 0 of them unchanged", done.stdout)
            self.assertIn("error: clang-tidy found something in engine_engine_0.cpp\n", done.stderr)
            self.assertEqual(sorted(map(os.path.basename, sources)), ["engine_engine_0.cpp", "three.cpp"])
            # Settings are looked for above a source, where those of the checkout need not be.
            self.assertIn(f"--config-file={self.checkout / '.clang-tidy'}", self.noted.read_text())

    def test_a_named_source_is_found_in_its_unit(self):
        build = self.build(self.checkout, self.checkout / "build")
        done, sources = self.tool(self.checkout, "engine/two.cpp")
        self.assertEqual((done.returncode, sources), (0, [str(build / "generated/units/engine_engine_0.cpp")]), done.stderr)
        done, sources = self.tool(self.checkout, "engine/two.cpp", "engine/none.h")
        self.assertEqual((done.returncode, sources), (1, []))
        self.assertIn(f"error: {self.checkout}/engine/none.h: no source that {build} compiles", done.stderr)

    def test_a_build_of_another_checkout_is_not_clean(self):
        build = self.folder / "other/build"
        self.write(build / "compile_commands.json", json.dumps(
            [{"directory": str(build), "file": str(self.folder / "other/engine/one.cpp"), "command": "c++"}]))
        done, sources = self.tool(self.checkout, "--build", build)
        self.assertEqual((done.returncode, sources), (1, []))
        self.assertIn(f"error: {build} compiles no source of {self.checkout}", done.stderr)


if __name__ == "__main__":
    unittest.main()
