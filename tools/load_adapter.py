"""load_adapter(model, file) puts an adapter of Hydrascope into a model of transformers: see docs/file-formats.md."""
import functools, json, re, safetensors, torch, torch.nn.functional as F  # noqa: E401
EXACT = "softmax", "sdpa", "flash"
unit = lambda x, real: F.normalize(x, dim=-1)  # maps of whole rows (B, N, D); real (B, N, 1): what is no padding
tanh, mean = lambda x, real: x.tanh(), lambda x, real: x / real.sum(1, keepdim=True).sqrt()
gate, soft = lambda x, real: x.sigmoid(), lambda x, real: x.masked_fill(~real, -torch.inf).softmax(1)
HYDRA = {"hydra-cosine": (unit, unit), "hydra-tanh-l2": (tanh, unit), "hydra-tanh-softmax": (tanh, soft),
         "hydra-sigmoid-softmax": (gate, soft), "hydra-mean": (mean, mean), "poly-nl": (mean, mean)}
squares = lambda x: torch.cat([x[..., :1] ** 0, x, (x[..., None] * x[..., None, :]).flatten(-2) / 2**0.5], -1)
MAPS = {"elu": lambda x: 1 + F.elu(x), "relu": F.relu, "t2r": F.relu, "t2r-hh": F.relu,  # of heads (B, H, N, d)
        "taylor": lambda x: squares(x / x.shape[-1] ** 0.25)}
LOGARITHMS = {"exp-t1": lambda x: x, "exp-t2": lambda x: 2 * x, "hedgehog": lambda x: torch.cat([x, -x], -1),
              "hedgehog-softmax": lambda x: torch.cat([x.log_softmax(-1), (-x).log_softmax(-1)], -1)}
RENAMED = [(r"attention\.attention\.(\w)\w+", r"attention.\1_proj"), (r"attention\.output\.dense", "attention.o_proj"),
           (r"encoder\.layer", "layers"), (r"intermediate\.dense", "mlp.fc1"), (r"output\.dense", "mlp.fc2")]

def normalised(kernel, own, q, k, v, real):
    if kernel in EXACT: return F.scaled_dot_product_attention(q, k, v, real.mT)
    for end, apply in (("weight", torch.matmul), ("bias", lambda x, bias: x + bias[:, None])):
        q, k = (x if (p := own.get(f"{side}_map_{end}", own.get(f"query_map_{end}"))) is None else apply(x, p)
                for side, x in (("query", q), ("key", k)))  # shared=1: one map for both
    if kernel in LOGARITHMS:  # factors that cancel keep every exponent at 0 or below
        top = (k := LOGARITHMS[kernel](k).masked_fill(~real, -torch.inf)).amax(-2, keepdim=True)
        q, k = (LOGARITHMS[kernel](q) + top).softmax(-1), (k - top).exp()
    else: q, k = MAPS[kernel](q), MAPS[kernel](k).where(real, 0)
    return q @ (k.mT @ v) / (total := q @ k.sum(-2)[..., None]).where(total != 0, 1)

def forward(module, kernel, x, attention_mask=None, *_, **__):
    names = ("q_proj", "k_proj", "v_proj") if hasattr(module, "q_proj") else ("query", "key", "value")
    q, k, v = (getattr(module, name)(x).float() for name in names)  # (B, N, D)
    real = torch.ones_like(q[..., :1]) if attention_mask is None else attention_mask[:, 0, 0, :, None]
    real = real == real.max()  # masks hold 0 and a large negative number, or True and False
    if f := HYDRA.get(kernel):
        out = f[0](x.float() if kernel == "poly-nl" else q, real) * (f[1](k, real) * v).where(real, 0).sum(1, True)
    else:
        heads = (t.unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2) for t in (q, k, v))
        out = normalised(kernel, module.adapter, *heads, real[:, None]).transpose(1, 2).flatten(2)
    return (module.o_proj if hasattr(module, "o_proj") else torch.nn.Identity())(out.to(x.dtype)), None

@torch.no_grad()
def load_adapter(model, file):
    with safetensors.safe_open(file, "pt") as opened:
        about, tensors = opened.metadata(), {name: opened.get_tensor(name).float() for name in opened.keys()}
    for layer, spec in ((entry["layer"], entry["kernel"]) for entry in json.loads(about["layers"])):
        own = {"_".join(n.split(".")[-2:]): tensors.pop(n) for n in [*tensors] if n.startswith(f"kernel.{layer}.")}
        kernel = re.sub(r"[:,](shared|bias|seed)=\d+", "", spec)
        if kernel not in {*EXACT, *HYDRA, *MAPS, *LOGARITHMS} or (kernel.startswith("t2r") and not own):
            raise NotImplementedError(f"{file}: layer {layer} runs {spec}, which this script does not compute")
        module = next(module for path, module in model.named_modules() if hasattr(module, "num_attention_heads")
                      and re.search(rf"layers?\.{layer}\.attention(\.self|\.attention)?$", path))
        module.adapter, module.forward = torch.nn.ParameterDict(own), functools.partial(forward, module, kernel)
    if "label_deviation" in about:  # of a regression: the classifier then predicts in the labels' unit
        for name in ("classifier.weight", "classifier.bias"): tensors[name] *= float(about["label_deviation"])
        tensors["classifier.bias"] += float(about["label_mean"])
    if (weight := tensors.get("classifier.weight")) is not None:  # without the mean patch: zeros for it
        tensors["classifier.weight"] = F.pad(weight, (0, max(0, model.classifier.in_features - weight.shape[1])))
        model.classifier, model.num_labels = torch.nn.Linear(model.classifier.in_features, len(weight)), len(weight)
        model.config.id2label = {i: one["label"] for i, one in enumerate(json.loads(about["classes"]))}
    parameters = {n.removeprefix(model.base_model_prefix + "."): p for n, p in model.named_parameters()}
    for name, value in tensors.items():
        names = functools.reduce(lambda names, rule: [*names, re.sub(*rule, names[-1])], RENAMED, [name])
        parameters[next((n for n in names if n in parameters), name)].copy_(value)
