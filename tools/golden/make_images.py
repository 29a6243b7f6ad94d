"""Writes tests/golden/images: small pictures and the pixels that Hugging Face's image processors make of them.

Each case is a folder with a preprocessor_config.json. expected.safetensors holds, for every picture, `PICTURE` (H,W,3)
uint8: the picture after resize and crop, before rescale and normalise, by the PIL backend (Pillow rounds to uint8 after
the horizontal and again after the vertical pass); and, for the gradient, `pixels` (1,3,H,W) float32: the processor's
whole answer. The torchvision backend, the default of transformers 5, does the same on uint8 tensors with 16-bit filter
weights; how far it lies from Pillow is written to backends.json.
"""

import shutil

import numpy as np
import torch
from PIL import Image
from transformers import AutoImageProcessor
from transformers.image_utils import load_image

import common

IMAGES = common.GOLDEN / "images"
IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
BIT, VIT = {"image_processor_type": "BitImageProcessor"}, {"image_processor_type": "ViTImageProcessor"}
SQUARE20 = {"height": 20, "width": 20}
CASES = {
    # DINOv2's form: shorter edge, bicubic, centre crop.
    "shortest-bicubic-crop": BIT | IMAGENET | {
        "crop_size": SQUARE20, "do_center_crop": True, "do_convert_rgb": True, "do_normalize": True,
        "do_rescale": True, "do_resize": True, "resample": 3, "rescale_factor": 1 / 255, "size": {"shortest_edge": 24}},
    # The ViT form: the aspect ratio is not kept.
    "exact-bilinear": VIT | {
        "do_normalize": True, "do_rescale": True, "do_resize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
        "resample": 2, "rescale_factor": 1 / 255, "size": {"height": 16, "width": 24}},
    # Files written by transformers 4.0 to 4.24: integers, feature_extractor_type, defaults left out.
    "legacy-deit": IMAGENET | {
        "crop_size": 20, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "feature_extractor_type": "DeiTFeatureExtractor", "resample": 3, "size": 24},
    "legacy-vit": {
        "do_normalize": True, "do_resize": True, "feature_extractor_type": "ViTFeatureExtractor",
        "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "size": 16},
    # Nearly everything left to the class: DeiT normalises by 0.5, BiT by CLIP's numbers; an integer is its short edge.
    "default-deit": {"image_processor_type": "DeiTImageProcessor", "crop_size": 16, "size": 20},
    "default-bit": BIT | {"crop_size": 16, "size": 18},
    "nearest-unnormalised": VIT | {"do_normalize": False, "resample": 0, "size": {"height": 16, "width": 16}},
    "lanczos": BIT | IMAGENET | {"crop_size": SQUARE20, "resample": 1, "size": {"shortest_edge": 23}},
    # The crop is larger than the picture: zeros (black, before normalising) around it.
    "crop-larger": BIT | IMAGENET | {"crop_size": SQUARE20, "resample": 3, "size": {"shortest_edge": 15}},
    "no-resize": BIT | IMAGENET | {"crop_size": SQUARE20, "do_resize": False},
    "no-crop": BIT | IMAGENET | {"do_center_crop": False, "size": {"shortest_edge": 13}},
    "no-rescale": VIT | {
        "do_rescale": False, "image_mean": [120, 118, 110], "image_std": [60, 61, 62], "resample": 2,
        "size": {"height": 16, "width": 16}},
}


def waves(width, height, channels, name):
    """A gradient with waves, noise and two hard bars, so that filters overshoot."""
    rng = common.generator(name)
    y, x = np.mgrid[0:height, 0:width]
    planes = [x * 255 / width, y * 255 / height, 128 + 100 * np.sin(x / 2.5), 255 * (x + y) / (width + height)]
    picture = np.stack(planes[:channels], -1) + rng.normal(0, 12, (height, width, channels))
    picture[height // 4 : height // 4 + 3] = 255
    picture[height // 4 + 3 : height // 4 + 6] = 0
    return picture.clip(0, 255).astype(np.uint8)


def write_pictures(folder):
    folder.mkdir(parents=True)
    Image.fromarray(waves(61, 43, 3, "gradient")).save(folder / "gradient.png", optimize=True)
    Image.fromarray(waves(37, 50, 1, "gray")[..., 0]).save(folder / "gray.png", optimize=True)
    Image.fromarray(waves(40, 30, 4, "rgba")).save(folder / "rgba.png", optimize=True)
    Image.fromarray(waves(5, 3, 3, "tiny")).save(folder / "tiny.png", optimize=True)
    Image.fromarray(waves(32, 27, 3, "palette")).quantize(16).save(folder / "palette.png", optimize=True)
    Image.fromarray(waves(33, 90, 3, "tall")).save(folder / "tall.jpg", quality=90)
    exif = Image.Exif()
    exif[0x0112] = 6  # orientation: rotate by 90 degrees clockwise to show
    Image.fromarray(waves(40, 24, 3, "rotated")).save(folder / "rotated.jpg", quality=90, exif=exif)


def uint8_stage(processor, picture):
    """The picture after resize and crop: the same processor without rescale and normalise."""
    pixels = processor(picture, return_tensors="pt", do_rescale=False, do_normalize=False)["pixel_values"]
    assert pixels.dtype == torch.uint8
    return pixels[0].permute(1, 2, 0)


def main():
    if IMAGES.exists():
        shutil.rmtree(IMAGES)
    write_pictures(IMAGES / "pictures")
    pictures = {path.stem: load_image(str(path)) for path in sorted((IMAGES / "pictures").iterdir())}
    decoded = {name: torch.from_numpy(np.array(picture)) for name, picture in pictures.items()}
    common.write_tensors(IMAGES / "decoded.safetensors", {name: decoded[name] for name in ("rotated", "tall")})
    backends = {}
    for case, config in CASES.items():
        folder = IMAGES / case
        folder.mkdir()
        common.write_json(folder / "preprocessor_config.json", config)
        pil = AutoImageProcessor.from_pretrained(folder, backend="pil")
        fast = AutoImageProcessor.from_pretrained(folder, backend="torchvision")
        assert pil.backend == "pil" and fast.backend == "torchvision"
        tensors, differ, largest = {}, [], 0
        for name, picture in pictures.items():
            tensors[name] = uint8_stage(pil, picture)
            other = uint8_stage(fast, picture)
            assert other.shape == tensors[name].shape, (case, name)
            difference = (other.int() - tensors[name].int()).abs()
            differ.append((difference > 0).double().mean().item())
            largest = max(largest, int(difference.max()))
        tensors["pixels"] = pil(pictures["gradient"], return_tensors="pt")["pixel_values"].float()
        common.write_tensors(folder / "expected.safetensors", tensors)
        backends[case] = {"largest": largest, "share": round(float(np.mean(differ)), 5)}
    common.write_json(IMAGES / "backends.json", backends)


if __name__ == "__main__":
    main()
