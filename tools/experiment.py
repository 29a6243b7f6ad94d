"""What the tools that run experiments share: commands of hydrascope whose JSON is kept, trainings that go on where they
were stopped, the settings of a folder of results, the mean and deviation over seeds.

A result is a file NAME.json: the command that printed it, with every option and without folders, `outcome`, the JSON
that it printed, and the program's version, the checkout's commit, the date, the processor and, where models ran on it,
the GPU. A file that is there is complete.
"""
import datetime
import functools
import hashlib
import json
import os
import pathlib
import platform
import re
import shlex
import statistics
import subprocess
import sys
import threading

from whole_file import whole_file

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMED = os.environ.get("HYDRASCOPE_PROGRAM", str(ROOT / "build/hydrascope"))
PROGRAM = os.path.abspath(NAMED) if "/" in NAMED else NAMED  # commands run in other folders
LOOPS = ROOT / "build/cpu_loops"
MEASURED_BY = ("program", "commit", "date", "cpu", "gpu")
OTHER_OUT = "delete it, or name another OUT"


def write_json(file, document):
    """Replaces the file at once: it never holds a part."""
    with whole_file(file) as out:
        out.write((json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode())


def read_json(file, remedy):
    """What a file holds that the user named, or that lies in a folder of theirs."""
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SystemExit(f"error: {file}: cannot be read ({error.strerror}); {remedy}") from None
    except ValueError as error:  # no JSON, or no UTF-8
        raise SystemExit(f"error: {file}: is no JSON ({error}); {remedy}") from None


def cpu():
    """The processor's name, family and model, since a virtual machine's name tells no generation, and how many cores."""
    found = re.findall(r"^(model name|cpu family|model)\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    of = dict(reversed(found))
    generation = f", family {of['cpu family']}, model {of['model']}" if {"cpu family", "model"} <= of.keys() else ""
    return f"{of.get('model name', platform.processor())}{generation}, {os.cpu_count()} cores"


@functools.cache
def gpu():
    """The GPU of this machine, unless HYDRASCOPE_DEVICE keeps models off it."""
    device, _, index = os.environ.get("HYDRASCOPE_DEVICE", "auto").partition(":")
    if device not in ("auto", "cuda"):
        return {}
    try:  # which counts as CUDA_DEVICE_ORDER=PCI_BUS_ID does
        named = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader", f"--id={index or 0}"],
                               capture_output=True, text=True)
    except OSError:  # no driver
        return {}
    return {"gpu": named.stdout.strip()} if named.returncode == 0 else {}


@functools.cache
def program_and_commit():
    try:
        printed = subprocess.run([PROGRAM, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"error: {PROGRAM}: cannot be run ({error}); build it with tools/build, or name it in "
                         "HYDRASCOPE_PROGRAM") from None
    found = {"program": printed.split("\n")[0].strip()}
    try:
        described = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    except OSError:  # git is not installed
        return found
    return found | ({"commit": described.stdout.strip()} if described.returncode == 0 else {})


def measured_by():
    """Version, commit (where the checkout is one of git), date, processor and GPU of what is measured now."""
    return program_and_commit() | {"date": datetime.date.today().isoformat(), "cpu": cpu()} | gpu()


def printed_json(command, folder=None):
    """The JSON that a command printed."""
    print(shlex.join(command), file=sys.stderr, flush=True)
    try:
        ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        raise SystemExit(f"error: {command[0]}: cannot be run ({error})") from None
    if ended.returncode != 0:
        raise SystemExit(f"error: {shlex.join(command)}: exit status {ended.returncode}; its message is above")
    try:
        return json.loads(ended.stdout)
    except json.JSONDecodeError as error:
        raise SystemExit(f"error: {shlex.join(command)}: printed no JSON ({error}): {ended.stdout[:200]}") from None


def printed_by_loops(options):
    """The JSON of build/cpu_loops, as Google Benchmark prints it."""
    return printed_json([str(LOOPS), *options, "--benchmark_format=json"])


def command_text(words):
    """A command as it is kept: without folders, and without --resume, which changes no result."""
    return shlex.join(",".join(pathlib.Path(one).name if "/" in one else one for one in word.split(","))
                      for word in words if word != "--resume")


def without_threads(command):
    words = shlex.split(command)
    words = words[words.index("hydrascope"):] if "hydrascope" in words else words
    return [word for i, word in enumerate(words) if "--threads" not in words[max(0, i - 1):i + 1]]


def listed_kernels(text):
    """A comma list of kernels, whose own options have commas between them, too."""
    return re.split(r",(?![a-z_]+=)", text)


def file_name(text):
    """A kernel or a schedule as part of a file's name."""
    return re.sub(r"[^\w.-]+", "-", re.sub(r"=(?=\d)", "", text))


def first_classes(folder, count, out):
    """A folder in OUT with the first classes by name, which nothing has chosen. Refuses one with classes of other data."""
    if not folder.is_dir():
        raise SystemExit(f"error: {folder}: there is no such folder; name data that have it, with a folder for each class")
    some = out / f"{folder.name}-{count}-classes"
    some.mkdir(parents=True, exist_ok=True)
    classes = {one.name: one.resolve() for one in sorted(path for path in folder.iterdir() if path.is_dir())[:count]}
    for link in sorted(some.iterdir()):
        if link.is_symlink() and link.resolve() != classes.get(link.name):
            raise SystemExit(f"error: {link} leads to {link.resolve()}, which is none of the first {count} classes of "
                             f"{folder.resolve()}: name another OUT, or, if the same pictures have moved, delete {some}")
    for name, target in classes.items():
        if not (some / name).is_symlink():
            (some / name).symlink_to(target, target_is_directory=True)
    return some.resolve()


def fingerprint(path):
    """Of a file its content, of a folder the names and sizes of all files below it; None of what is not there."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    if not path.is_dir():
        return None
    files = (os.path.join(folder, name) for folder, _, names in os.walk(path, followlinks=True) for name in names)
    sizes = sorted((os.path.relpath(file, path), os.path.getsize(file)) for file in files if os.path.isfile(file))
    return hashlib.sha256(json.dumps(sizes).encode()).hexdigest()


def check_data(out, *paths):
    """Refuses a folder whose results were made from other data: a command is kept without folders, so that it does not
    tell. Files and folders are known by their names; what a folder does not know yet is added."""
    file = out / "data.json"
    known = read_json(file, OTHER_OUT) if file.exists() else {}
    found = {path.name: mark for path in paths if (mark := fingerprint(path))}
    other = [str(path) for path in paths if path.name in found and known.get(path.name, found[path.name]) != found[path.name]]
    if other:
        raise SystemExit(f"error: {out} was made from other data than {', '.join(other)}: give the same, or name another OUT")
    if found.keys() - known.keys():
        write_json(file, known | found)


def check_settings(out, settings):
    """Refuses a folder whose results were made with other settings: what all its files depend on without having it in
    their names. Keys are those of argparse."""
    file = out / "settings.json"
    known = read_json(file, OTHER_OUT) if file.exists() else settings
    other = [f"--{name.replace('_', '-')} {known.get(name, 'unknown')} in place of {settings[name]}"
             for name in settings if known.get(name) != settings[name]]
    if other:
        raise SystemExit(f"error: {out} was made with {', '.join(other)}: give the same, or name another OUT")
    write_json(file, known | settings)


class ResultFolder:
    """A folder of results, and of the models and adapters that their commands wrote. `launcher`: words before the
    program; `folder`: where commands run. Commands may run in several threads."""

    def __init__(self, out, launcher=(), folder=None):
        self.out, self.launcher, self.folder = out.resolve(), list(launcher), folder
        try:
            self.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SystemExit(f"error: {self.out}: cannot be made ({error.strerror}); name another OUT") from None
        self.used, self.lock = {}, threading.Lock()

    def run(self, name, arguments):
        """The outcome of a command: from its file if it ran before, which must have been the same command."""
        result = self.out / f"{name}.json"
        command = command_text([*self.launcher, "hydrascope", *arguments, "--json"])
        if not result.exists():
            by = measured_by()
            outcome = printed_json([*self.launcher, PROGRAM, *arguments, "--json"], self.folder)
            write_json(result, {"command": command, **by, "outcome": outcome})
        document = read_json(result, OTHER_OUT)
        if not isinstance(document, dict) or not {"command", "outcome"} <= document.keys():
            raise SystemExit(f"error: {result} has no command and outcome: an earlier form of this tool wrote it; "
                             f"{OTHER_OUT}")
        if without_threads(document["command"]) != without_threads(command):
            raise SystemExit(f"error: {result} was printed by another command: {document['command']}; now it is: "
                             f"{command}; {OTHER_OUT}")
        with self.lock:
            self.used[name] = document
        return document["outcome"]

    def trained(self, name, arguments, ending=".safetensors"):
        """Runs a command that trains, from its checkpoint if it was stopped: the path of what it wrote, its outcome."""
        output = self.out / f"{name}{ending}"
        resume = ["--resume"] if pathlib.Path(f"{output}.checkpoint").exists() else []
        return str(output), self.run(f"{name}-training", [*arguments, "-o", str(output), *resume])

    def known(self, experiment):
        """What earlier runs wrote of an experiment."""
        file = self.out / f"{experiment}.json"
        known = read_json(file, OTHER_OUT) if file.exists() else {"rows": {}, "commands": {}}
        if not isinstance(known.get("commands"), dict):
            raise SystemExit(f"error: {file}: an earlier form of this tool wrote it; {OTHER_OUT}")
        return known

    def write(self, experiment, rows, **more):
        """Adds to OUT/EXPERIMENT.json: rows of earlier runs stay. `commands`: of each result, by its name."""
        known = self.known(experiment)
        document = {"rows": known["rows"] | rows,
                    "commands": known["commands"] | {name: one["command"] for name, one in self.used.items()}}
        for key in MEASURED_BY:
            values = {*known.get(key, "").split("; "), *(one.get(key, "") for one in self.used.values())} - {""}
            if values:
                document[key] = "; ".join(sorted(values))
        write_json(self.out / f"{experiment}.json", document | more)


def paired_difference(own, others):
    """Of numbers of the same items, own − other: mean and its standard error."""
    differences = [one - other for one, other in zip(own, others, strict=True)]
    return {"mean": statistics.fmean(differences),
            "standard_error": statistics.stdev(differences) / len(differences) ** 0.5}


def spread(values):
    """Mean and, of several, standard deviation (n − 1); None where one of them is undefined."""
    if not values or None in values:
        return None
    return {"mean": statistics.fmean(values), "deviation": statistics.stdev(values) if len(values) > 1 else None,
            "values": values}


def spread_text(numbers, digits=1, factor=100):
    if numbers is None:
        return "–"
    deviation = "" if numbers["deviation"] is None else f" ± {factor * numbers['deviation']:.{digits}f}"
    return f"{factor * numbers['mean']:.{digits}f}{deviation}"
