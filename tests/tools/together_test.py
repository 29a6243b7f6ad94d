"""tools/together: output and exit status of several processes, and that none goes on once it is told to stop."""
import os
import signal
import subprocess
import sys
import time
import unittest

from support import ROOT, ToolTest

# Says that it runs, keeps its state when it is told to stop, and ends by itself after a while.
MEMBER = """
import os, pathlib, signal, sys, time
here, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
def keep(*_):
    time.sleep(0.1)
    (here / f"kept-{rank}").touch()
    sys.exit(3)
signal.signal(signal.SIGTERM, keep)
(here / f"runs-{rank}").touch()
time.sleep(30)
"""


class TogetherTest(ToolTest):
    def start(self, *command):
        # Bash cannot trap what was ignored when it started, as under nohup or in a script's background.
        return subprocess.Popen(["env", "--default-signal=INT,HUP", "bash", str(ROOT / "tools/together"), *map(str, command)],
                                text=True, stdout=subprocess.PIPE, env=os.environ | {"HYDRASCOPE_PROCESSES": "3"})

    def test_prints_what_the_first_prints_and_fails_as_the_last_that_failed(self):
        process = self.start("sh", "-c", "echo $RANK of $WORLD_SIZE; exit $((2 * (RANK == 1)))")
        self.assertEqual(process.communicate(timeout=20)[0], "0 of 3\n")
        self.assertEqual(process.returncode, 2)

    def test_stops_all_and_waits_until_they_have_kept_their_state(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            process = self.start(sys.executable, "-c", MEMBER, self.folder)
            while process.poll() is None and len(list(self.folder.glob("runs-*"))) < 3:
                time.sleep(0.01)
            process.send_signal(number)
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 3, number)
            for rank in range(3):
                (self.folder / f"kept-{rank}").unlink()
                (self.folder / f"runs-{rank}").unlink()


if __name__ == "__main__":
    unittest.main()
