"""tools/interrupt: finds programs that write half files, leave temporary ones, or fail without a message."""
import os
import random
import shutil
import subprocess
import sys
import unittest

from support import ToolTest, load

interrupt = load("interrupt")

WRITER = """
import os, sys, time
file, how = sys.argv[1:]
content = b"new" * 20000
def fail(error):
    sys.exit(f"error: {file}: cannot be written ({error.strerror}); free some space" if how != "silent" else 1)
try:
    if how == "in place":
        time.sleep(0.02)
        with open(file, "wb", buffering=0) as stream:
            for i in range(20):
                stream.write(content[3000 * i:3000 * (i + 1)])
                time.sleep(0.01)
    else:
        name = f"{file}.new-{os.getpid()}" if how == "leaves" else f"{file}.part"
        with open(name, "wb", buffering=0) as stream:
            if stream.write(content) < len(content):
                stream.write(b"?")  # which says why
        os.replace(name, file)
except OSError as error:
    if how in ("good", "silent"):
        if os.path.exists(name):
            os.unlink(name)
    fail(error)
"""


class InterruptTest(ToolTest):
    def trial(self, how, times=4):
        if shutil.which("cc") is None:
            self.skipTest("there is no C compiler")
        case = interrupt.PROGRAM_CASES["figure-svg"].__mro__[1](how, self.folder / "case")
        case.old = {"file": b"old" * 1000}
        case.command = lambda: [sys.executable, "-c", WRITER, str(case.out / "file"), how]
        trial = interrupt.Trial(case, interrupt.build_faults(self.folder), times, random.Random(5))
        trial.prepare()
        return trial

    def test_a_good_program_passes_every_way(self):
        trial = self.trial("good", times=10)
        self.assertIn("10 kills", trial.kill())
        self.assertRegex(trial.step(), "killed at 3 of 3 changes")
        self.assertRegex(trial.full(), "full from 3 of 3 changes on, 2 failures")
        self.assertIn("an error", trial.read_only())
        trial.disk()

    def test_a_single_time_is_enough(self):
        trial = self.trial("good", times=1)
        self.assertRegex(trial.step(), "killed at 1 of 3 changes")
        self.assertRegex(trial.full(), "full from 1 of 3 changes on")

    def test_finds_a_file_that_is_written_in_place(self):
        trial = self.trial("in place", times=40)
        for way in (trial.kill, trial.step, trial.full):
            with self.assertRaisesRegex(interrupt.Broken, "file is neither the old nor the new one"):
                way()

    def test_finds_temporary_files_that_pile_up(self):
        trial = self.trial("leaves")
        with self.assertRaisesRegex(interrupt.Broken, "killed at change 2 write .*is left over"):
            trial.step()
        with self.assertRaisesRegex(interrupt.Broken, "left over after an error: file.new-"):
            trial.full()

    def test_finds_errors_without_a_message(self):
        trial = self.trial("silent")
        with self.assertRaisesRegex(interrupt.Broken, "the message has no file, reason or remedy"):
            trial.full()
        with self.assertRaisesRegex(interrupt.Broken, "the message has no file, reason or remedy"):
            trial.read_only()

    def test_notes_which_changes_a_disk_refused(self):
        trial = self.trial("good")
        for how, refused in ((dict(mode="full", at=2), {"file.part"}), (dict(mode="read-only"), {"file.part"}),
                             (dict(mode="kill", at=2), set()), ({}, set())):
            trial.case.fresh()
            trial.runner.run(**how)
            self.assertEqual(set(trial.runner.refused()), {f"{trial.case.out}/{name}" for name in refused}, how)

    def test_leaves_no_process_when_it_is_stopped(self):
        trial = self.trial("good")
        trial.case.command = lambda: [sys.executable, "-c", "import time; time.sleep(60)"]
        process = trial.runner.start(preload=False)
        trial.runner.end()
        self.assertLess(process.returncode, 0)


class WindowTest(ToolTest):
    def window(self):
        case = interrupt.PROGRAM_CASES["window"]("window", self.folder / "case")
        case.folder.mkdir()
        return case

    def test_finds_a_window_that_does_not_tell_of_a_failed_save(self):
        case = self.window()
        message = "error: /it/autosave.json: cannot be written (No space left on device); free some space"
        session, settings = (f"{case.out}/{name}.hydrascope-part" for name in ("session.json", "hydrascope/settings.json"))
        case.title.write_text("• session – Hydrascope\n")
        self.assertTrue(case.told(message, [session, settings]))
        self.assertFalse(case.told("a warning", [f"{case.out}/mesa_shader_cache/0a"]))
        with self.assertRaisesRegex(interrupt.Broken, "nothing is said of .*settings.json.*: a warning"):
            case.told("a warning", [settings])
        case.title.write_text("session – Hydrascope\n")
        self.assertTrue(case.told(message, [settings]))
        with self.assertRaisesRegex(interrupt.Broken, "the title calls the session saved"):
            case.told(message, [session])

    def test_the_keys_end_as_the_window_does(self):
        case = self.window()
        commands = {"xdotool": "exit 1", "closed": "exit 3", "killed": "kill -9 $$"}  # no window is ever seen
        for name, command in commands.items():
            script = self.folder / name
            script.write_text(f"#!/bin/sh\n{command}\n")
            script.chmod(0o755)
        environment = os.environ | {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        for name, status in (("closed", 3), ("killed", -9)):
            words = ["sh", "-c", case.keys, self.folder / name, "session.json", case.title]
            self.assertEqual(subprocess.run(words, env=environment, timeout=60).returncode, status)


class HubTest(ToolTest):
    def test_finds_a_download_that_begins_anew_each_time(self):
        case = interrupt.PROGRAM_CASES["download"]("download", self.folder / "case")
        case.prepare()
        self.addCleanup(case.close)
        case.hub.sent, case.hub.ranges = 3_000_000, 1
        with self.assertRaisesRegex(interrupt.Broken, "3000000 bytes were sent for 1 downloads of 2000000, 1 from"):
            case.check_all(2, 1)
        case.hub.sent, case.hub.ranges = 20_000_000, 0
        with self.assertRaisesRegex(interrupt.Broken, "0 from the middle on"):
            case.check_all(200, 10)
        case.hub.sent, case.hub.ranges = 2_100_000, 2
        case.check_all(2, 1)


if __name__ == "__main__":
    unittest.main()
