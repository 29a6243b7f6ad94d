"""What tools/interrupt interrupts: commands that write, the state before them, and what must hold after them."""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess

from interruption.hub import Hub, REPOSITORY

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("HYDRASCOPE_PROGRAM", str(ROOT / "build/hydrascope"))
MODELS = ROOT / "tests/golden/models"
REASONS = "No space left on device|Read-only file system|no room for|has .* free, and|cannot be written to its end"
TEMPORARY = (".hydrascope-part", ".part", ".new", ".link", ".live")  # in names of what no run may leave


class Broken(Exception):
    """What must hold does not."""


def is_temporary(name):
    return any(part in name for part in TEMPORARY)


def tree(folder):
    """Every file below a folder, by its relative path; a link is what it leads to."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def write(file, content):
    file.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode()
    file.write_bytes(content)


class Case:
    """A command that writes below `out`. `continues`: what an interrupted run leaves is used by the next. `kept`: endings
    of files in `out` that are no result: locks, caches and what the next run goes on from."""
    continues = False
    kept = ()
    steps = True  # all changes are made by one process
    message = rf"error: .*/.*({REASONS}).*; ."  # the last line of an error's: file, reason, remedy

    def __init__(self, name, folder):
        self.name, self.folder, self.out = name, folder, folder / "out"
        self.old, self.whole = {}, {}

    def prepare(self):
        """Makes the input."""

    def prepared(self):
        """After the uninterrupted runs."""

    def fresh(self):
        """The state before the command."""
        self.clear()
        for name, content in self.old.items():
            write(self.out / name, content)

    def clear(self):
        self.out.mkdir(parents=True, exist_ok=True)
        for entry in self.out.iterdir():  # it may be a file system of its own
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def command(self):
        raise NotImplementedError

    @property
    def home(self):
        """What the program takes for the user's folders of caches, settings, data and state."""
        return self.folder / "home"

    def environment(self):
        return {}

    def close(self):
        pass

    def results(self):
        return {name: content for name, content in tree(self.out).items() if not name.endswith(self.kept)}

    @property
    def done(self):
        """Whether nothing is left for a next run to do."""
        return False

    def check(self):
        """After an interruption: every result is the old or the new one, whole."""
        for name, content in self.results().items():
            if is_temporary(name):
                continue
            if content not in (self.old.get(name), self.whole.get(name)):
                raise Broken(f"{name} is neither the old nor the new one: {len(content)} bytes")
        for name in self.old:
            if not (self.out / name).exists():
                raise Broken(f"{name} is gone")

    def check_whole(self):
        """After a run to the end: what an uninterrupted run leaves, and nothing else."""
        results = self.results()
        for name in sorted(results.keys() ^ self.whole.keys()):
            raise Broken(f"{name} is {'left over' if name in results else 'missing'}")
        for name, content in results.items():
            if content != self.whole[name]:
                raise Broken(f"{name} is another than that of an uninterrupted run")

    def check_all(self, kills, ended):
        """After many interruptions and `ended` runs to the end."""

    def told(self, last_line, refused):
        """After a run that ended with 0 and this last line on the standard error output, though a disk refused changes of
        these files: whether the line tells of an error. Else nothing may be missing."""
        return False

    def check_nothing_left(self):
        """After an error: no temporary file."""
        left = [name for name in tree(self.out) if is_temporary(name)]
        if left:
            raise Broken(f"left over after an error: {', '.join(left)}")


class Figure(Case):
    """A figure that replaces an older one."""

    def prepare(self):
        write(self.folder / "in.ppm", b"P6\n30 30\n255\n" + random.Random(7).randbytes(2700))
        names = [f"figure.{self.ending}"] + (["figure.npy.json"] if self.ending == "npy" else [])
        self.old = {name: b"an older figure\n" * 2000 for name in names}

    @property
    def ending(self):
        return self.name.removeprefix("figure-")

    def command(self):
        return [PROGRAM, "figure", "focus", "--model", str(MODELS / "dinov2"), "--image", str(self.folder / "in.ppm"),
                "--no-adapter", "--dpi", "100", "-o", str(self.out / f"figure.{self.ending}")]


class ExportFolder(Case):
    """All panels of a session, into a new folder."""

    def prepare(self):
        session = json.loads((ROOT / "docs/window-sentence.json").read_text())
        session.pop("arrangement", None)
        session["document"]["closed_panels"] += ["focus", "kl", "layers", "predictions"]
        write(self.folder / "session.json", json.dumps(session))

    def command(self):
        return [PROGRAM, "figure", "--session", str(self.folder / "session.json"), "-o", str(self.out / "export")]

    @property
    def done(self):
        return (self.out / "export").exists()

    def check(self):
        super().check()
        names = {name for name in self.results() if name.startswith("export/")}
        if names and names != self.whole.keys():
            raise Broken(f"the folder lacks {sorted(self.whole.keys() - names)}")


class Window(Case):
    """A screenshot or a recording of the window, without a display, in place of an older one."""

    def prepare(self):
        write(self.folder / "script.txt", "caption Two frames\nhold 1\n")
        self.old = {self.file: b"an older picture\n" * 2000}

    @property
    def file(self):
        return "window.png" if self.name == "screenshot" else "window.webp"

    def command(self):
        how = ["--screenshot", str(self.out / self.file)] if self.name == "screenshot" else [
            "--record", str(self.out / self.file), "--script", str(self.folder / "script.txt")]
        return [PROGRAM, *how, "--size", "640x480", "--model", str(MODELS / "bert"), "--text", "the cat"]

    def check(self):
        """The picture depends on the time of a frame: that it is whole is seen by its header and its end."""
        content = (self.out / self.file).read_bytes()
        if content != self.old[self.file] and not self.is_whole(content):
            raise Broken(f"{self.file} is no whole picture: {len(content)} bytes")

    def check_whole(self):
        self.check()
        if tree(self.out).keys() != {self.file}:
            raise Broken(f"left over: {sorted(tree(self.out).keys() - {self.file})}")

    @staticmethod
    def is_whole(content):
        if content.startswith(b"\x89PNG"):
            return content.endswith(b"IEND\xaeB`\x82")
        return content.startswith(b"RIFF") and int.from_bytes(content[4:8], "little") + 8 == len(content)


class Sessions(Case):
    """The window's settings, automatic copy and a session, saved over and over by tests/support/session_saver.cpp, two
    contents in turn."""
    saver = pathlib.Path(PROGRAM).parent / "session_saver"
    kept = (".lock",)
    files = ("autosave.json", "last-session.json", "session.json", "settings.json")

    def prepare(self):
        if not self.saver.exists():
            raise SystemExit(f"error: {self.saver}: is missing; build the target session_saver")
        self.contents = []
        for rounds in (1, 2):
            self.clear()
            subprocess.run([self.saver, self.out, str(rounds)], check=True, stdin=subprocess.DEVNULL)
            self.contents.append(tree(self.out))
        self.old = self.contents[0] | {"last-session.json": self.contents[0]["autosave.json"]}

    def command(self):
        return [str(self.saver), str(self.out), "6"]

    def check(self):
        found = tree(self.out)
        for name in self.files:
            of = name.replace("last-session", "autosave")
            if name in found and found[name] not in [content[of] for content in self.contents]:
                raise Broken(f"{name} is none of the two that were saved: {len(found[name])} bytes")
        for name in ("last-session.json", "session.json", "settings.json"):
            if name not in found:
                raise Broken(f"{name} is gone")


class OnDisplay(Case):
    """The window on a display of its own: keys switch between the picture and the sentence of a session, choose another
    layer and save it, over and over, and leave. A run begins with what a killed one left. Needs Xvfb and xdotool."""
    kept = (".lock",)
    server = None
    # Ends when the window does, and by the same status or signal. A busy machine may lose a key: the last is repeated.
    keys = """
        : >"$2"
        "$0" "$1" & window=$!
        runs() { kill -0 "$window" 2>/dev/null; }
        while runs && ! xdotool search --onlyvisible --name Hydrascope >/dev/null; do sleep 0.1; done
        for input in 1 2 1 2 1 2; do
          runs && xdotool key "ctrl+$input" sleep 0.2 key Up sleep 0.2 key ctrl+s sleep 0.2
        done
        runs && xdotool search --onlyvisible --name Hydrascope getwindowname >"$2"
        while runs; do xdotool key ctrl+q; sleep 0.5; done
        wait "$window"
        status=$?
        [ "$status" -le 128 ] || kill "-$((status - 128))" $$
        exit "$status"
    """

    def prepare(self):
        missing = [name for name in ("Xvfb", "xdotool") if not shutil.which(name)]
        if missing:
            raise SystemExit(f"error: {' and '.join(missing)} are missing; install Debian's xvfb and xdotool")
        session, picture = (json.loads((ROOT / f"docs/window-{name}.json").read_text()) for name in ("sentence", "hidden"))
        session["document"]["scenes"]["image"] = picture["document"]["scenes"]["image"]
        self.old = {"session.json": json.dumps(session).encode()}
        self.server = subprocess.Popen(["Xvfb", "-displayfd", "1", "-noreset", "-screen", "0", "1280x800x24"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.display = ":" + self.server.stdout.readline().strip()

    def close(self):
        if self.server:
            self.server.kill()
            self.server.wait()

    @property
    def home(self):
        return self.out

    def environment(self):
        # Mesa maps its cache into memory, where a full disk is a bus error that the program cannot catch.
        return {"DISPLAY": self.display, "WAYLAND_DISPLAY": "", "MESA_SHADER_CACHE_DISABLE": "true"}

    def command(self):
        return ["sh", "-c", self.keys, PROGRAM, str(self.out / "session.json"), str(self.title)]

    @property
    def title(self):
        """The file of the window's last title."""
        return self.folder / "title"

    def told(self, last_line, refused):
        """An error does not end a window. While a session is not saved, the title has a mark; what the window could not
        write when it closed, it told on the standard error output."""
        refused = [name for name in refused if ".json" in name]
        if any(name.startswith(f"{self.out}/session.json") for name in refused) and "•" not in self.title.read_text():
            raise Broken("the title calls the session saved")
        told = re.match(self.message, last_line) is not None
        if refused and not told:
            raise Broken(f"nothing is said of {refused[-1]}: {last_line}")
        return told

    def check(self):
        for name, content in self.results().items():
            if name.endswith(".json") and not is_temporary(name):
                try:
                    json.loads(content)
                except ValueError:
                    raise Broken(f"{name} is not whole: {len(content)} bytes") from None
        if not (self.out / "session.json").exists():
            raise Broken("session.json is gone")

    def check_whole(self):
        self.check()
        self.check_nothing_left()


class Download(Case):
    """A model from a hub, with what has arrived kept."""
    continues = True
    kept = (".lock",)
    seconds = 0.5

    def prepare(self):
        files = {name: (MODELS / "deit" / name).read_bytes() for name in ("config.json", "preprocessor_config.json")}
        files["model.safetensors"] = random.Random(3).randbytes(2_000_000)
        self.hub = Hub(files, self.seconds)

    def close(self):
        self.hub.close()

    def command(self):
        return [PROGRAM, "fetch", REPOSITORY]

    def environment(self):
        unset = {name: "" for name in ("HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE", "http_proxy", "HTTP_PROXY", "all_proxy")}
        return unset | {"HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.out), "NO_PROXY": "*"}

    def prepared(self):
        self.hub.sent = self.hub.ranges = 0

    def check_all(self, kills, ended):
        """What had arrived was not sent again, except for what was on the wire."""
        size = len(self.hub.files["model.safetensors"])
        most = ended * size + kills * size // 10
        if self.hub.sent > most or kills > 20 and self.hub.ranges == 0:
            raise Broken(f"{self.hub.sent} bytes were sent for {ended} downloads of {size}, {self.hub.ranges} from the middle on")

    def check(self):
        """What arrived in part is kept aside; the snapshot and the blobs are whole."""
        for name, content in tree(self.out).items():
            if name.endswith((".incomplete", ".lock")) or is_temporary(name):
                continue
            if content != self.whole.get(name):
                raise Broken(f"{name} is not whole: {len(content)} bytes")


CASES = {f"figure-{ending}": Figure for ending in ("svg", "pdf", "png", "csv", "json", "npy")} | {
    "export-folder": ExportFolder, "screenshot": Window, "recording": Window, "sessions": Sessions, "window": OnDisplay,
    "download": Download}
