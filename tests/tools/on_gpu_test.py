"""tools/on-gpu: what a run of some steps leaves of a page."""
import unittest

from support import ROOT, ToolTest, load

on_gpu = load("on-gpu")
PAGE = """# Measured on a device

By hand.

## Scaling

Old.

```sh
# a comment
```

## Remarks

These stay.

## Machine

Old, too.
"""


class PageTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.page = self.folder / "page.md"
        self.program.answer(["doctor"], "all is well")

    def run_tool(self, *steps):
        done = self.tool("on-gpu", *steps, "--quick", "--device", "fake", "--program", self.program.path, "--tests",
                         self.program.path, "--write", self.page)
        return done, on_gpu.sections_of(self.page.read_text())

    def test_steps_that_are_not_run_stay(self):
        self.page.write_text(PAGE)
        done, sections = self.run_tool("machine")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("all is well", sections["Machine"])
        self.assertEqual(self.page.read_text().partition("## Machine")[0], PAGE.partition("## Machine")[0])
        done, sections = self.run_tool("parity")  # of which the program knows nothing
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"parity: failed in \d+ s: .+")
        self.assertEqual(list(sections), ["", "Parity", "Scaling", "Remarks", "Machine"])
        self.assertRegex(sections["Parity"], r"(?s)Measured on fake, \d{4}-\d\d-\d\d, at the smallest sizes\.\n\n\*\*Failed\*\*.*```\Z")
        self.assertIn("all is well", sections["Machine"])

    def test_a_new_page_and_one_of_all_steps_have_a_head_of_their_own(self):
        self.assertEqual(list(self.run_tool("machine")[1]), ["", "Machine"])
        head = "# Measured on fake\n\nBy `tools/on-gpu`."
        self.assertTrue(self.page.read_text().startswith(f"{head}\n\n## Machine\n"))
        self.page.write_text(PAGE)
        self.assertEqual(self.run_tool()[1][""], head)

    def test_reads_the_pages_that_there_are(self):
        for page in (ROOT / "docs/measurements").glob("cuda-nvidia-*.md"):
            self.assertEqual("\n\n".join(on_gpu.sections_of(page.read_text()).values()) + "\n", page.read_text())


if __name__ == "__main__":
    unittest.main()
