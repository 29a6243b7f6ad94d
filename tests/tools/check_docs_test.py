"""tools/check-docs: what it refuses before it looks at any page."""
import unittest

from support import ROOT, ToolTest


class CheckDocsTest(ToolTest):
    def test_names_pages_that_are_not_there(self):
        done = self.tool("check-docs", "--parse", ROOT / "README.md", self.folder / "none.md")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"error: {self.folder / 'none.md'}: there is no such page", done.stderr)


if __name__ == "__main__":
    unittest.main()
