"""tests/golden/captures: what tools/capture.py records of six small models of random weights.

    python make_captures.py            # writes the captures, and compares every recorded output with the models' own
    python make_captures.py --check    # compares alone

For each model, eager and fused: softmax(scale · q kᵀ + mask) v in float64 is the recorded output within 1e-5, and W_o of
it is what the model's attention module returned.
"""
import argparse
import json
import pathlib
import socket
import sys
import tempfile
import threading
import types
import warnings

import timm
import torch
import transformers
from safetensors import safe_open

from common import GOLDEN, generator, randomise

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import capture  # noqa: E402
from capture import Grid, Watch, hydrascope_capture, hydrascope_show  # noqa: E402

LIMIT = 1e-5
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48)


def ids(name, *shape, most=60):
    return torch.from_numpy(generator(name).integers(4, most, shape))


def bert(attention):
    config = transformers.BertConfig(vocab_size=64, max_position_embeddings=32, attn_implementation=attention, **SIZES)
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    return transformers.BertModel(config), dict(input_ids=ids("bert", 2, 9), attention_mask=mask), dict(
        texts=["[CLS]", "the", "cat", "that", "chased", "mice", "was", "asleep", "[SEP]"])


def vit(attention):
    config = transformers.ViTConfig(image_size=16, patch_size=4, attn_implementation=attention, **SIZES)
    pixels = torch.from_numpy(generator("vit").standard_normal((1, 3, 16, 16))).float()
    return transformers.ViTModel(config), dict(pixel_values=pixels), dict(
        texts=Grid(4, 4, prefix=1, image=str(GOLDEN / "images" / "pictures" / "gradient.png")))


def gpt2(attention):
    config = transformers.GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4, bos_token_id=1,
                                     eos_token_id=2, attn_implementation=attention)
    return transformers.GPT2Model(config), dict(input_ids=ids("gpt2", 1, 8)), dict(
        texts="The bank raised its rates after rain".split() + ["."])


def llama(attention):
    config = transformers.LlamaConfig(vocab_size=64, max_position_embeddings=32, num_key_value_heads=2,
                                      attn_implementation=attention, **SIZES)
    return transformers.LlamaModel(config), dict(input_ids=ids("llama", 1, 10)), dict(
        texts="<s> She poured water from the jug until full .".split())


def whisper(attention):
    config = transformers.WhisperConfig(
        vocab_size=64, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=12,
        max_target_positions=16, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
        attn_implementation=attention)
    sound = torch.from_numpy(generator("whisper").standard_normal((1, 8, 24))).float()
    return transformers.WhisperModel(config), dict(input_features=sound, decoder_input_ids=ids("whisper", 1, 5)), dict(
        texts=["<s> a b c d".split(), [f"{20 * i} ms" for i in range(12)]])


def timm_vit(attention):
    timm.layers.set_fused_attn(attention == "sdpa")
    model = timm.create_model("vit_tiny_patch16_224", img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=4,
                              num_classes=3)
    pixels = torch.from_numpy(generator("timm").standard_normal((1, 3, 16, 16))).float()
    return model, dict(x=pixels), dict(texts=Grid(4, 4, prefix=1))


MODELS = {"bert": bert, "vit": vit, "gpt2": gpt2, "llama": llama, "whisper": whisper, "timm-vit": timm_vit}


def read(file):
    with safe_open(file, "pt") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys()}, opened.metadata()


def attention_of(q, k, v, scale, causal, mask):
    """softmax(scale · q kᵀ) v in float64; mask (B,M) of keys; rows of padding are not compared."""
    q, k, v = (x.double() for x in (q, k, v))
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = scale * q @ k.transpose(2, 3)
    if causal: scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    if mask is not None: scores = scores.masked_fill(~mask[:, None, None], -torch.inf)
    return scores.softmax(-1) @ v


def compare(file, seen):
    """The largest difference from the recorded outputs and from what the modules returned."""
    tensors, about = read(file)
    names, causal, scale = (json.loads(about[key]) for key in ("layers", "causal", "scale"))
    own = module = 0.0
    for i, name in enumerate(names):
        part = {key: tensors.get(f"layers.{i}.{key}") for key in ("q", "k", "v", "out", "mask", "wo")}
        assert part["mask"] is None or part["mask"].dim() == 2, (file, name, "its mask is more than keys and causality")
        out = attention_of(part["q"], part["k"], part["v"], scale[i], causal[i], part["mask"])
        real = torch.ones(1) if part["mask"] is None else part["mask"][:, None, :, None].double()
        own = max(own, float(((out - part["out"].double()) * real).abs().max()))
        rows = part["out"].transpose(1, 2).flatten(2)
        last, returned = seen[name]
        if last is not None:  # in BERT W_o belongs to another module
            rows = rows @ part["wo"].t() + (0 if last.bias is None else last.bias.detach())
        module = max(module, float((rows - returned).abs().max()))
    return len(names), own, module


def record(name, attention, file, texts=True):
    model, inputs, how = MODELS[name](attention)
    model = randomise(model, name).eval()
    seen, hooks = {}, []

    def see(path, last):
        def hook(module, args, out):
            first = out[0] if isinstance(out, tuple) else out
            if torch.is_tensor(first): seen[path] = (last, first.detach())
        return hook
    for path, module in model.named_modules():
        last = next((getattr(module, key) for key in ("o_proj", "out_proj", "proj", "c_proj") if hasattr(module, key)), None)
        hooks.append(module.register_forward_hook(see(path, last)))
    with torch.no_grad(), hydrascope_capture(file, source=f"{type(model).__name__}, random weights", **how if texts else {}):
        model(**inputs)
    for hook in hooks: hook.remove()
    return seen


def check_steps(folder):
    """A model that is called three times makes three captures; limits leave calls out, with a warning."""
    model, inputs, _ = gpt2("sdpa")
    with torch.no_grad(), hydrascope_capture(folder / "steps.safetensors", layers=1):
        for _ in range(3): model(**inputs)
    files = sorted(path.name for path in folder.glob("steps*"))
    assert files == [f"steps-000{i}.safetensors" for i in (1, 2, 3)], files
    assert all(len(json.loads(read(folder / file)[1]["layers"])) == 1 for file in files)
    for limit, reason in ((dict(tokens=7), "7 tokens"), (dict(bytes=100), "100 bytes")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                with hydrascope_capture(folder / "none.safetensors", **limit): model(**inputs)
                raise AssertionError("nothing to record, and no error")
            except RuntimeError as error: assert "no attention" in str(error), error
        assert any(reason in str(each.message) for each in said), said
    assert not (folder / "none.safetensors").exists() and not list(folder.glob("*.part"))


class Written(torch.nn.Module):
    """Attention as people write it, in four ways."""

    def __init__(self, way):
        super().__init__()
        self.way, self.qkv = way, torch.nn.Linear(24, 72)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        if self.way == "einsum":
            scores = torch.einsum("bhid,bhjd->bhij", q, k) / 8**0.5
            return torch.einsum("bhij,bhjd->bhid", scores.softmax(-1), v)
        if self.way == "causal":
            scores = q @ k.mT * 8**-0.5
            return torch.nn.functional.softmax(scores.masked_fill(later, float("-inf")), dim=-1) @ v
        if self.way == "bmm":
            q, k, v = (t.flatten(0, 1) for t in (q, k, v))
            scores = torch.bmm(q * 8**-0.5, k.transpose(1, 2))
            scores += torch.zeros(1, 1, x.shape[1])
            return torch.bmm(torch.softmax(scores, -1), v).unflatten(0, (-1, 3))
        scores = torch.baddbmm(torch.zeros(()), q.flatten(0, 1), k.flatten(0, 1).mT, beta=0, alpha=8**-0.5)
        scores = torch.where(later, torch.finfo(torch.float32).min, scores.view(x.shape[0], 3, x.shape[1], -1))
        return torch.matmul(scores.softmax(dim=-1).to(v.dtype), v)


def check_written(folder):
    x = torch.from_numpy(generator("written").standard_normal((2, 6, 24))).float()
    for way in ("einsum", "causal", "bmm", "where"):
        module, seen = Written(way), {}
        with torch.no_grad(), hydrascope_capture(folder / "written.safetensors"): returned = module(x)
        tensors, about = read(folder / "written.safetensors")
        q, k, v, out = (tensors[f"layers.0.{key}"] for key in ("q", "k", "v", "out"))
        causal = json.loads(about["causal"])[0]
        assert causal == (way in ("causal", "where")) and "layers.0.mask" not in tensors, way
        own = attention_of(q, k, v, json.loads(about["scale"])[0], causal, None)
        assert float((own.reshape(returned.shape) - returned).abs().max()) < LIMIT, way
    with hydrascope_capture(folder / "bare.safetensors"):  # without a module
        out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    assert torch.equal(read(folder / "bare.safetensors")[0]["layers.0.out"], out)
    multi_head = torch.nn.MultiheadAttention(24, 3, batch_first=True).eval()
    for weights in (True, False):
        with hydrascope_capture(folder / "multi.safetensors"): multi_head(x, x, x, need_weights=weights)
        tensors, _ = read(folder / "multi.safetensors")
        rows = tensors["layers.0.out"].transpose(1, 2).flatten(2) @ multi_head.out_proj.weight.t() + multi_head.out_proj.bias
        assert float((rows - multi_head(x, x, x)[0]).abs().max()) < LIMIT
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(24, 3, 48, batch_first=True), 2).eval()
    with torch.no_grad(), hydrascope_capture(folder / "encoder.safetensors"): encoder(x)
    assert len(json.loads(read(folder / "encoder.safetensors")[1]["layers"])) == 2

    class Linear(torch.nn.Module):
        def forward(self, q, k, v): return (q.exp() @ (k.exp().mT @ v)) / (q.exp() @ k.exp().sum(2)[..., None])
    model = torch.nn.Module()
    model.linear = Linear()
    model.forward = lambda x: model.linear(x, x, x)
    with hydrascope_capture(folder / "linear.safetensors", modules="linear$"): model(torch.rand(1, 2, 5, 4))
    assert read(folder / "linear.safetensors")[0]["layers.0.q"].shape == (1, 2, 5, 4)


def recorded_of(function, file):
    """What the function returns while it is recorded, as without, and the tensors and metadata; none: nothing was."""
    alone = function()
    returned = None
    try:
        with warnings.catch_warnings(), hydrascope_capture(file):
            warnings.simplefilter("ignore")
            returned = function()
    except RuntimeError as error:
        assert returned is not None and "no attention" in str(error), error
        tensors, about = None, None
    else: tensors, about = read(file)
    assert torch.equal(returned, alone), "recording changed the result"
    return returned, tensors, about


def check_not_disturbed(folder):
    """Functions called by keywords, keys that broadcast, and scores that are not followed: the model goes on as without."""
    file = folder / "undisturbed.safetensors"
    q, k, v = (torch.from_numpy(generator(f"undisturbed {i}").standard_normal((2, 3, 6, 8))).float() for i in range(3))
    flat = [x.flatten(0, 1) for x in (q, k, v)]
    slopes = torch.arange(36, dtype=torch.float32).reshape(6, 1, 6) / 9

    def alibi():  # as Bloom has it
        scores = slopes.baddbmm(batch1=flat[0], batch2=flat[1].mT, beta=1.0, alpha=8**-0.5).view(2, 3, 6, 6)
        later = torch.ones(6, 6, dtype=torch.bool).triu(1)
        return torch.bmm(torch.masked_fill(scores, mask=later, value=-torch.inf).softmax(-1).view(6, 6, 6), flat[2])
    out, tensors, about = recorded_of(alibi, file)
    weights = (torch.einsum("bhnd,bhmd->bhnm", *(tensors[f"layers.0.{x}"] for x in "qk")) * json.loads(about["scale"])[0] +
               tensors["layers.0.mask"]).softmax(-1)
    assert float((weights @ tensors["layers.0.v"] - out.reshape(tensors["layers.0.q"].shape)).abs().max()) < LIMIT
    bloom = transformers.BloomModel(transformers.BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=4)).eval()
    with torch.no_grad(): recorded_of(lambda: bloom(input_ids=ids("bloom", 2, 7))[0], file)

    def multi_query():
        scores = torch.matmul(q, other=k[:, :1].mT).view(6, 6, 6) / 8**0.5
        return scores.softmax(-1).view(2, 3, 6, 6) @ v[:, :1]
    out, tensors, about = recorded_of(multi_query, file)
    own = attention_of(*(tensors[f"layers.0.{key}"] for key in "qkv"), json.loads(about["scale"])[0], False, None)
    assert float((own - out).abs().max()) < LIMIT

    def fails(*_): raise ValueError("not as expected")
    kept = hydrascope_capture.keep, Watch.product
    module, x = Written("causal").requires_grad_(False), torch.ones(1, 6, 24)
    for owner, name in ((hydrascope_capture, "keep"), (Watch, "product")):
        setattr(owner, name, fails)
        try:
            assert recorded_of(lambda: module(x), file)[1] is None
        finally: hydrascope_capture.keep, Watch.product = kept


def check_written_to(folder):
    """Scores that are written to in place: as the mask that it is, else not recorded as if nothing had been."""
    file = folder / "place.safetensors"
    q, k, v = (torch.from_numpy(generator(f"place {i}").standard_normal((2, 3, 6, 8))).float() for i in range(3))
    later = torch.ones(6, 6, dtype=torch.bool).triu(1)

    def attended(change, factor=8**-0.5):
        def function():
            scores = q @ k.mT * factor
            change(scores)
            return scores.softmax(-1) @ v
        return function

    def masked(scores): scores[later.expand_as(scores)] = -torch.inf
    def row(scores): scores[..., 1] = -torch.inf
    def first_sequence(scores): scores[torch.tensor([True, False])] = 0.0
    def through_a_view(scores): scores.view(6, 6, 6)[:, :, 2].zero_()
    def scaled_sum(scores): scores.mul_(0.5).add_(torch.zeros(6, 6)).masked_fill_(later, -torch.inf)
    def clipped(scores): scores.clamp_(-0.5, 0.5)
    def squashed(scores): scores.tanh_()
    def into(scores): torch.tanh(scores, out=scores)
    def rectified(scores): torch.nn.functional.relu(scores, inplace=True)
    def chosen(scores): scores.copy_(torch.where(later, scores, 2 * scores))
    for inference in (False, True):
        with torch.inference_mode(inference):
            for change in (masked, scaled_sum):
                out, tensors, about = recorded_of(attended(change), file)
                assert json.loads(about["causal"]) == [True], (change.__name__, inference)
                own = attention_of(*(tensors[f"layers.0.{x}"] for x in "qkv"), json.loads(about["scale"])[0], True, None)
                assert float((own - out).abs().max()) < LIMIT, (change.__name__, inference)
            for change in (row, first_sequence, through_a_view, clipped, squashed, into, rectified, chosen):
                assert recorded_of(attended(change), file)[1] is None, (change.__name__, inference)
    unmasked = lambda: torch.where(later, q @ k.mT, 0.5 * (q @ k.mT)).softmax(-1) @ v  # noqa: E731
    assert recorded_of(unmasked, file)[1] is None


def check_pictures(folder):
    """A picture lies in the capture's folder afterwards, wherever it was."""
    inside, x = folder / "below" / "inside.png", torch.ones(1, 2, 17, 4)
    inside.parent.mkdir()
    outside = GOLDEN / "images" / "pictures" / "gradient.png"
    inside.write_bytes(outside.read_bytes())

    class Picture:  # as one of PIL
        def save(self, path): pathlib.Path(path).write_bytes(outside.read_bytes())
    grids = [Grid(4, 4, prefix=1, image=image) for image in (inside, outside, Picture(), "no such/file.png")]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with hydrascope_capture(folder / "pictures.safetensors", texts=grids):
            torch.nn.functional.scaled_dot_product_attention(x, x, x)
    images = [grid.get("image") for grid in json.loads(read(folder / "pictures.safetensors")[1]["tokens"])]
    assert images == ["below/inside.png", "pictures-1.png", "pictures-2.png", None], images
    assert all((folder / image).read_bytes() == outside.read_bytes() for image in images[:3])
    assert "no such/file.png cannot be copied" in str(said[-1].message), said


def check_packages(folder):
    """Stand-ins for packages that need a GPU, with the arguments of flash_attn and xformers, and flex_attention itself."""
    fused = torch.nn.functional.scaled_dot_product_attention
    x = [torch.from_numpy(generator(f"packages {i}").standard_normal((1, 6, 3, 8))).float() for i in range(3)]
    package, user = types.ModuleType("flash_attn"), types.ModuleType("user")

    def flash_attn_func(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1)):
        return fused(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=causal, scale=softmax_scale).transpose(1, 2)
    package.flash_attn_func = user.kernel = flash_attn_func
    sys.modules |= {"flash_attn": package, "user": user}
    with hydrascope_capture(folder / "flash.safetensors", layers=[0]): out = user.kernel(*x, causal=True, softmax_scale=0.3)
    del sys.modules["flash_attn"], sys.modules["user"]
    assert user.kernel is flash_attn_func
    tensors, about = read(folder / "flash.safetensors")
    assert json.loads(about["causal"]) == [True] and json.loads(about["scale"]) == [0.3]
    assert torch.equal(tensors["layers.0.out"], out.transpose(1, 2)) and torch.equal(tensors["layers.0.k"], x[1].transpose(1, 2))

    import torch.nn.attention.flex_attention as flex
    block = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 6, 6, device="cpu")
    with warnings.catch_warnings(), hydrascope_capture(folder / "flex.safetensors", layers=[0]):
        warnings.simplefilter("ignore")  # that it is slow without compiling
        out = flex.flex_attention(*(t.transpose(1, 2) for t in x), block_mask=block)
    tensors, about = read(folder / "flex.safetensors")
    assert json.loads(about["causal"]) == [True], about
    own = attention_of(*(tensors[f"layers.0.{key}"] for key in "qkv"), json.loads(about["scale"])[0], True, None)
    assert float((own - out).abs().max()) < LIMIT


def check_show(folder):
    """What is sent to a window, and how each of its answers, or none, is taken."""
    path, q = str(folder / "socket"), torch.ones(1, 2, 6, 4)

    def shown(window, **how):
        """What hydrascope_show returns or raises, and its warnings, where `window` has the connection."""
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
            listening.listen()

            def serve():
                with listening.accept()[0] as connection: window(connection)
            thread = threading.Thread(target=serve)
            thread.start()
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                try: result = hydrascope_show(q, q, q, path=path, **how)
                except ValueError as error: result = str(error)
            thread.join()
        pathlib.Path(path).unlink()
        return result, " ".join(str(each.message) for each in said)
    received = {}

    def takes(connection):
        stream = connection.makefile("rb")
        assert stream.readline() == b"HYDRASCOPE\n"
        content = stream.read(int.from_bytes(stream.read(8), "little"))
        (folder / "received.safetensors").write_bytes(content)
        received["tensors"], received["about"] = read(folder / "received.safetensors")
        connection.sendall(b"ok\n")

    def refuses(connection):  # with bytes that it has not read
        connection.recv(4)
        connection.sendall(b"error: too large\n")

    def silent(connection):
        while connection.recv(1 << 16): pass
    assert shown(takes, texts=list("abcdef"), causal=True) == (True, "")
    assert torch.equal(received["tensors"]["layers.0.q"], q) and json.loads(received["about"]["tokens"]) == list("abcdef")
    picture = types.SimpleNamespace(save=None)  # as one of PIL
    for image in ("cat.png", picture):
        result, said = shown(takes, texts=[Grid(2, 3, image=image)])
        assert result is True and "picture is not sent" in said, said
        assert json.loads(received["about"]["tokens"]) == [{"rows": 2, "columns": 3, "prefix": 0}], received["about"]
    assert shown(refuses) == ("hydrascope_show: error: too large", "")
    result, said = shown(lambda connection: connection.recv(4))
    assert result is False and "closed before it answered" in said, (result, said)
    capture.PATIENCE, patience = 0.2, capture.PATIENCE
    result, said = shown(silent)
    capture.PATIENCE = patience
    assert result is False and "does not answer" in said, (result, said)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert hydrascope_show(q, q, q, path=path) is False
    assert "no window listens" in str(said[0].message), said


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name in MODELS:
            for attention in ("eager", "sdpa"):
                seen = record(name, attention, folder / f"{name}.safetensors", texts=False)
                layers, own, module = compare(folder / f"{name}.safetensors", seen)
                print(f"{name:9} {attention:5} {layers} layers; softmax(q kᵀ) v against the recorded output {own:.1e}, its W_o "
                      f"against the module's {module:.1e}")
                assert own < LIMIT and module < LIMIT, name
        check_steps(folder)
        check_written(folder)
        check_not_disturbed(folder)
        check_written_to(folder)
        check_pictures(folder)
        check_packages(folder)
        check_show(folder)
    if check: return
    captures = GOLDEN / "captures"
    captures.mkdir(exist_ok=True)
    for name in MODELS: record(name, "sdpa", captures / f"{name}.safetensors")


if __name__ == "__main__":
    main()
