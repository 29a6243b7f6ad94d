"""tools/on-gpu: which GPU the page is named after."""
import types
import unittest

from support import ToolTest, load

on_gpu = load("on-gpu")


class DeviceNameTest(ToolTest):
    def name(self, device, entry):
        self.program.answer(["bench", "kernels"], [entry])
        arguments = types.SimpleNamespace(device=device, quick=True, program=self.program.path)
        return on_gpu.device_name(on_gpu.Bench(arguments, self.folder))

    def test_is_that_of_the_device_that_the_program_runs_on(self):
        self.assertEqual(self.name("cuda:1", {"device_state": "NVIDIA H200, 1755 of 1980 MHz, 61 °C"}), "NVIDIA H200")
        (words,) = self.program.calls()
        self.assertEqual(words[words.index("--device") + 1], "cuda:1")

    def test_is_the_devices_number_where_the_driver_says_nothing(self):
        self.assertEqual(self.name("cuda:1", {"device_state": ""}), "cuda:1")
        self.assertEqual(self.name("cuda:1", {"skipped": "out of memory"}), "cuda:1")

    def test_needs_no_gpu_for_the_fake_device(self):
        self.assertEqual(self.name("fake", {}), "fake")
        self.assertEqual(self.program.calls(), [])


if __name__ == "__main__":
    unittest.main()
