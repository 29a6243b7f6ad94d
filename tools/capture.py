"""Records the attention of any PyTorch model in a file that Hydrascope opens.

    from capture import hydrascope_capture

    with hydrascope_capture("out.safetensors"):
        model(**inputs)

    hydrascope out.safetensors

Needs torch alone. Every call of scaled_dot_product_attention, of flash_attn, xformers and flex_attention where they are
installed, and every attention written out as softmax(q kᵀ) v is recorded: q, k, v, the output, the mask, causality, the
scale, and W_o where it is found. The format is in docs/captures.md. No code of the model changes, and nothing is left
patched. Record a model as it is, without torch.compile.
"""
import contextlib, ctypes, functools, io, json, math, os, re, shutil, socket, sys, warnings, weakref  # noqa: E401

import torch
import torch.nn.functional as F

__all__ = ["hydrascope_capture", "hydrascope_show", "Grid"]
TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.bool: "BOOL",
         torch.uint8: "U8"}
FAR = -1e4  # what is added to a score that must not count is at least as low


class Grid(dict):
    """Tokens that are patches of a picture: `prefix` tokens (class, registers), then rows × columns patches. `image`, a
    file or a picture of PIL, is copied beside the capture if it lies outside the capture's folder."""

    def __init__(self, rows, columns, prefix=0, image=None):
        super().__init__(rows=rows, columns=columns, prefix=prefix, **({} if image is None else {"image": image}))


class hydrascope_capture(contextlib.AbstractContextManager):  # noqa: N801
    """Records while it is entered and writes `file` at the end; several calls of the model become FILE-0001, -0002, …

    layers   which calls of attention: a number (the first n), a list of numbers (in the order of the calls), or a
             regular expression that the name of the calling module matches
    tokens   calls with more tokens are left out
    bytes    what the files hold together at most; what goes beyond is left out
    texts    the tokens as texts (a list of strings), a Grid, or a list of these where there are several sequences,
             which are told apart by their lengths (cross-attention)
    modules  modules that take q, k and v as their first three arguments, (B,H,N,d), and return the output, such as
             linear attention: a regular expression for their names, or {expression: layout}, layout "bhnd", "bnhd"
    outputs  also the output and W_o of each layer, by which the program checks itself
    source   a line about the model; by default its class
    """

    def __init__(self, file, *, layers=None, tokens=None, bytes=4 << 30, texts=None, modules=None, outputs=True,
                 source=None):
        self.file, self.layers, self.tokens, self.bytes = os.fspath(file), layers, tokens, bytes
        self.texts, self.outputs, self.source = texts, outputs, source
        self.modules = {modules: "bhnd"} if isinstance(modules, str) else dict(modules or {})
        self.records, self.files, self.skipped = [], [], {}
        self.calls = self.used = self.written = 0
        self.stack, self.names, self.roots = [], weakref.WeakKeyDictionary(), weakref.WeakSet()

    # ---- What is recorded

    def record(self, q, k, v, out, *, bias=None, causal=False, scale=None, name=None):
        """One call of attention: out = softmax(scale · q kᵀ + bias) v, tensors (B,H,N,d), k and v (B,h,M,d)."""
        module = self.stack[-1] if self.stack else None
        name = name or ("attention" if module is None else self.names.get(module, type(module).__name__))
        call, self.calls = self.calls, self.calls + 1
        if not self.wanted(call, name): return
        try:
            self.keep(name, module, *(four(x.detach()) for x in (q, k, v)), out.detach(), bias, causal, scale)
        except Exception as reason:  # whatever it is, the model goes on
            self.leave_out(why(reason), name)

    def wanted(self, call, name):
        if self.layers is None: return True
        if isinstance(self.layers, int): return call < self.layers
        if isinstance(self.layers, str): return re.search(self.layers, name) is not None
        return call in self.layers

    def leave_out(self, reason, name):
        self.skipped.setdefault(reason, []).append(name)

    def keep(self, name, module, q, k, v, out, bias, causal, scale):
        batch, heads, queries, width = q.shape
        if k.shape[1] != v.shape[1]:  # one of them has been repeated to q's heads
            k, v = (x.expand(-1, max(k.shape[1], v.shape[1]), -1, -1) for x in (k, v))
        if k.shape[0] != batch: k, v = (x.expand(batch, *x.shape[1:]) for x in (k, v))
        groups = getattr(module, "num_key_value_groups", 1)  # transformers repeats k and v to q's heads
        if isinstance(groups, int) and groups > 1 and k.shape[1] == heads: k, v = k[:, ::groups], v[:, ::groups]
        if causal and k.shape[2] > queries: k, v = k[:, :, :queries], v[:, :, :queries]  # no query sees the rest
        keys = k.shape[2]
        if self.tokens is not None and max(queries, keys) > self.tokens:
            raise LeftOut(f"more than {self.tokens} tokens")
        mask = None
        if bias is not None: causal, mask = reduced(bias.detach(), causal, batch, queries, keys)
        tensors = {"q": q, "k": k, "v": v}
        if mask is not None: tensors["mask"] = mask
        if self.outputs:
            out = out if out.shape[:3] == q.shape[:3] else four(out)
            if out.shape[:3] == q.shape[:3]: tensors["out"] = out
            wo = output_weight(module, self.stack[-2:-1], heads * v.shape[3])
            if wo is not None: tensors["wo"] = wo.detach()
        size = sum(x.numel() * x.element_size() for x in tensors.values())
        if self.used + size > self.bytes: raise LeftOut(f"more than {self.bytes} bytes in all")
        self.used += size
        stored = {key: x.to("cpu", copy=True).contiguous() for key, x in tensors.items()}
        self.records.append((name, causal and queries > 1, 1 / math.sqrt(width) if scale is None else float(scale), stored))

    # ---- Files

    def finish_step(self):
        if self.records: self.files.append(self.records)
        self.records = []
        if len(self.files) > 1:  # there is more than one: each goes into a file of its own
            for step in self.files[self.written:]:
                self.written += 1
                stem = self.file.removesuffix(".safetensors")
                self.write(f"{stem}-{self.written:04d}.safetensors", step)
                step.clear()

    def write(self, file, records):
        tensors = {f"layers.{i}.{key}": x for i, (*_, stored) in enumerate(records) for key, x in stored.items()}
        metadata = {"hydrascope_capture": "1", "layers": [name for name, *_ in records],
                    "causal": [causal for _, causal, *_ in records], "scale": [scale for _, _, scale, _ in records],
                    "source": self.source or "attention"}
        if self.texts is not None: metadata["tokens"] = self.tokens_beside(file)
        write_safetensors(file, tensors, {key: value if isinstance(value, str) else json.dumps(value)
                                          for key, value in metadata.items()})

    def tokens_beside(self, file):
        """The tokens with the path of a picture as it is seen from the capture; the program opens none outside its folder."""
        folder, stem = os.path.dirname(os.path.abspath(file)), file.removesuffix(".safetensors")

        def placed(tokens, number=""):
            if not isinstance(tokens, dict): return list(tokens)
            tokens = dict(tokens)
            image = tokens.pop("image", None)
            if image is None: return tokens
            if hasattr(image, "save"):  # a picture of PIL
                image.save(path := f"{stem}{number}.png")
            else:
                path = os.fspath(image)
                if os.path.relpath(path, folder).split(os.sep)[0] == os.pardir:
                    path = f"{stem}{number}{os.path.splitext(path)[1]}"
                    try: shutil.copyfile(image, path)
                    except OSError as error:
                        warnings.warn(f"hydrascope_capture: the picture {image} cannot be copied: {error.strerror}", stacklevel=4)
                        return tokens
            return {**tokens, "image": os.path.relpath(path, folder)}
        several = isinstance(self.texts, (list, tuple)) and any(not isinstance(one, str) for one in self.texts)
        if not several: return placed(self.texts)
        return [placed(one, f"-{i}" if i else "") for i, one in enumerate(self.texts)]

    # ---- Entering and leaving

    def __enter__(self):
        self.leaving = contextlib.ExitStack()
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # it computes attention where no one sees it
        self.leaving.callback(torch.backends.mha.set_fastpath_enabled, fast)
        before = torch.nn.modules.module.register_module_forward_pre_hook(self.enter_module)
        after = torch.nn.modules.module.register_module_forward_hook(self.leave_module, always_call=True)
        self.leaving.callback(before.remove)
        self.leaving.callback(after.remove)
        for original, wrapper in other_kernels(self): self.leaving.enter_context(replaced(original, wrapper))
        self.leaving.enter_context(Watch(self))
        return self

    def __exit__(self, kind, error, trace):
        self.leaving.close()
        if kind is not None: return
        self.finish_step()
        for reason, names in self.skipped.items():
            warnings.warn(f"hydrascope_capture left out {len(names)} calls of attention: {reason} ({names[0]}"
                          f"{', …' if len(names) > 1 else ''})", stacklevel=2)
        if not self.files:
            raise RuntimeError("hydrascope_capture: no attention was recorded; name the modules that take q, k and v, as in"
                               " modules=r'attention$', and leave out torch.compile")
        if len(self.files) == 1: self.write(self.file, self.files[0])

    def enter_module(self, module, args):
        if not self.stack:
            if module in self.roots:  # called again: a step of its own
                self.finish_step()
                self.roots.clear()
                self.calls = 0
            self.roots.add(module)
            self.names.update((each, name or type(module).__name__) for name, each in module.named_modules())
            self.source = self.source or type(module).__name__
        self.stack.append(module)

    def leave_module(self, module, args, out):
        if module in self.stack:  # an exception may have left others above it
            while self.stack.pop() is not module: pass
        name = self.names.get(module, "")
        for pattern, layout in self.modules.items():
            if not re.search(pattern, name) or len(args) < 3 or not all(torch.is_tensor(x) for x in args[:3]): continue
            q, k, v = (heads_first(x, layout) for x in args[:3])
            out = out[0] if isinstance(out, tuple) else out
            if not torch.is_tensor(out):
                self.leave_out("its output is no tensor", name)
                continue
            causal = bool(getattr(module, "causal", getattr(module, "is_causal", False)))
            self.record(q, k, v, heads_first(out, layout) if out.dim() == 4 else out, causal=causal, name=name)


class LeftOut(Exception):
    """Why a call is left out."""


def why(reason):
    return str(reason) if isinstance(reason, LeftOut) else f"it could not be followed ({type(reason).__name__}: {reason})"


def four(x):
    """(…,N,d) as (B,H,N,d)."""
    if x.dim() == 4: return x
    if x.dim() < 2: raise LeftOut("q, k and v have too few dimensions")
    return x.reshape(-1, *x.shape[-3:]) if x.dim() > 4 else x.reshape(1, *(1,) * (3 - x.dim()), *x.shape)


def heads_first(x, layout):
    return x.transpose(1, 2) if layout == "bnhd" and x.dim() == 4 else x


def reduced(bias, causal, batch, queries, keys):
    """What is added to the scores (or a mask, True: may attend) as causal and a mask of keys (B,M), where that is all it
    does; else the whole of it, which the program refuses with a reason."""
    allowed = bias if bias.dtype == torch.bool else bias > FAR
    added = None if bias.dtype == torch.bool else torch.where(allowed, bias, 0)
    full = allowed.reshape((1,) * (4 - allowed.dim()) + allowed.shape).expand(batch, -1, queries, keys)
    below = torch.ones(queries, keys, dtype=torch.bool, device=full.device).tril()
    if causal: full = full & below
    per_head = full.shape[1] > 1 and not bool((full == full[:, :1]).all())
    if not per_head and (added is None or not bool(added.any())):
        one = full[:, 0]
        real = one.any(1)  # (B,M): some query attends to the key
        lower = queries == keys and queries > 1 and not bool((one & ~below).any())
        expected = real[:, None] & below if lower else real[:, None].expand_as(one)
        counts = real[:, :, None] if queries == keys else torch.ones_like(expected)  # what padding attends to is ignored
        if not bool(((one != expected) & counts).any()): return lower, None if bool(real.all()) else real
    if added is None or not bool(added.any()): return False, full[:, :1] if not per_head else full
    return False, torch.where(full, added, -math.inf).to(torch.float32)


def output_weight(module, parents, width):
    """W_o (out,in) of the attention that `module` computes, where a linear layer of the usual names has its width."""
    for owner in (module, getattr(parents[0] if parents else None, "output", None)):
        for name in ("o_proj", "out_proj", "proj", "c_proj", "dense", "to_out", "out_lin", "wo", "o"):
            layer = getattr(owner, name, None)
            if isinstance(layer, (torch.nn.Sequential, torch.nn.ModuleList)) and len(layer): layer = layer[0]
            weight = getattr(layer, "weight", None)
            if weight is None or weight.dim() != 2: continue
            if type(layer).__name__ == "Conv1D": weight = weight.t()  # GPT-2 stores (in,out)
            if weight.shape[1] == width: return weight
    return None


# ---- Attention that PyTorch's functions compute

class Origin:
    """Scores (…,N,M) or softmax's weights, and the q and k that they come from."""

    def __init__(self, q, k, scale=1.0, bias=None, weights=False):
        self.q, self.k, self.scale, self.bias, self.weights = q, k, scale, bias, weights

    def changed(self, **what):
        return Origin(**{**vars(self), **what})


class Origins:
    """By tensor. One that has been written to since, also through a view or by a function that is not watched, has none."""

    def __init__(self):
        self.kept = torch.utils.weak.WeakTensorKeyDictionary()

    def get(self, x):
        origin, written = self.kept.get(x, (None, None)) if torch.is_tensor(x) else (None, None)
        return origin if origin is None or written == writes(x) else None

    def __setitem__(self, x, origin):
        self.kept[x] = (origin, writes(x))

    def pop(self, x):
        self.kept.pop(x, None)
        if not x.is_inference(): return
        storage = x.untyped_storage().data_ptr()
        for view in [other for other in self.kept if other.untyped_storage().data_ptr() == storage]: self.kept.pop(view)


def writes(x):
    """How often the tensor has been written to; None in inference mode, which does not count: see pop()."""
    return None if x.is_inference() else x._version


class Watch(torch.overrides.TorchFunctionMode):
    """Sees every call of a function of PyTorch, and follows scores from q kᵀ through scale, mask and softmax to v."""

    def __init__(self, capture):
        super().__init__()
        self.capture, self.origins = capture, Origins()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if torch.compiler.is_compiling(): return func(*args, **kwargs)  # as flex_attention does with itself
        called = getattr(func, "__name__", "")
        name = called.strip("_")
        if name == "scaled_dot_product_attention": return self.fused(func, *args, **kwargs)
        if name == "multi_head_attention_forward": return self.multi_head(func, args, kwargs)
        first = args[0] if args else kwargs.get("input")
        known = self.origins.get(first)  # before it is written to
        out = func(*args, **kwargs)
        in_place = (name == "setitem" or called.endswith("_") and not called.startswith("__") or kwargs.get("inplace")
                    or called.startswith("__i") and out is first)
        for written in (first if in_place else None, kwargs.get("out")):
            if torch.is_tensor(written): self.origins.pop(written)
        scores = first if name == "setitem" else out
        if torch.is_tensor(scores) and scores.is_floating_point() and scores.dim() >= 3:
            try:
                self.follow(name, args, kwargs, first, known, scores)
            except Exception:  # not as it was taken to be: the model goes on, and the scores are no longer known
                self.origins.pop(scores)
        return out

    def fused(self, func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None,
              enable_gqa=False):
        out = func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        self.capture.record(query, key, value, out, bias=attn_mask, causal=is_causal, scale=scale)
        return out

    def multi_head(self, func, args, kwargs):
        """Inside it no mode is active: it runs again without weights, through the fused function, to be recorded."""
        original, out = F.scaled_dot_product_attention, func(*args, **kwargs)
        F.scaled_dot_product_attention = functools.partial(self.fused, original)
        try:
            with torch.no_grad(): func(*args, **{**kwargs, "need_weights": False})
        finally:
            F.scaled_dot_product_attention = original
        return out

    def follow(self, name, args, kwargs, first, known, out):
        def given(index, *names):
            if len(args) > index: return args[index]
            return next((kwargs[name] for name in names if name in kwargs), None)
        other = given(1, "other", "mask", "mat2")
        if name in ("matmul", "bmm"):
            return self.product(first, other, out, known)
        if name == "baddbmm":  # input · beta + alpha · batch1 · batch2
            self.product(given(1, "batch1"), given(2, "batch2"), out, None)
            made, beta = self.origins.get(out), kwargs.get("beta", 1)
            if made: self.origins[out] = made.changed(scale=kwargs.get("alpha", 1), bias=first * beta if beta else None)
            return None
        if name == "einsum": return self.einsum(args, out)
        if name in ("add", "radd", "iadd") and known is None and torch.is_tensor(other):
            known, other = self.origins.get(other), first
        if name == "where":  # where(allowed, scores, −∞), where(masked, −∞, scores)
            condition, chosen, other = given(0, "condition"), given(1, "input"), given(2, "other")
            if condition.dtype != torch.bool: condition, chosen = chosen, condition  # scores.where(allowed, −∞)
            for scores, filler, allowed in ((chosen, other, condition), (other, chosen, ~condition)):
                known = self.origins.get(scores)
                if known and not known.weights and is_far(filler):
                    self.origins[out] = known.changed(bias=summed(known.bias, allowed))
            return None
        if known is None: return None
        if known.weights and name in ("mul", "imul") and torch.is_tensor(other): return None  # no longer softmax
        if name == "softmax":
            dim = kwargs.get("dim", args[1] if len(args) > 1 else None)
            last = dim in (-1, out.dim() - 1)
            if last and not known.weights: self.origins[out] = known.changed(weights=True)
        elif name in ("mul", "rmul", "imul") and is_number(other):
            self.origins[out] = known.changed(scale=known.scale * float(other), bias=scaled(known.bias, float(other)))
        elif name in ("div", "truediv", "itruediv") and is_number(other):
            self.origins[out] = known.changed(scale=known.scale / float(other), bias=scaled(known.bias, 1 / float(other)))
        elif name in ("add", "radd", "iadd") and not known.weights and torch.is_tensor(other):
            self.origins[out] = known.changed(bias=summed(known.bias, other))
        elif name == "masked_fill" and torch.is_tensor(other):
            value = args[2] if len(args) > 2 else kwargs.get("value", 0)
            if is_far(value): self.origins[out] = known.changed(bias=summed(known.bias, ~other.bool()))
        elif name == "setitem":  # scores[masked] = −∞
            value = given(2)
            if torch.is_tensor(other) and other.dtype == torch.bool and other.shape == out.shape and is_far(value):
                self.origins[out] = known.changed(bias=summed(known.bias, ~other))
        elif name in ("view", "reshape", "unflatten", "flatten", "unsqueeze", "squeeze"):
            if out.shape[-2:] == first.shape[-2:]:
                q, k, bias = known.q, known.k, known.bias  # of fewer heads or sequences, where they broadcast
                self.origins[out] = known.changed(
                    q=q.expand(*first.shape[:-1], q.shape[-1]).reshape(*out.shape[:-1], q.shape[-1]),
                    k=k.expand(*first.shape[:-2], *k.shape[-2:]).reshape(*out.shape[:-2], *k.shape[-2:]),
                    bias=None if bias is None else bias.expand(first.shape).reshape(out.shape))
        elif name in ("to", "float", "half", "bfloat16", "type", "type_as", "contiguous", "clone", "dropout", "detach",
                      "nan_to_num") and out.shape == first.shape and out is not first:
            self.origins[out] = known
        return None

    def product(self, first, second, out, known):
        if not (torch.is_tensor(first) and torch.is_tensor(second)) or second.dim() < 3: return
        if known is not None and known.weights:
            self.capture.record(known.q, known.k, second, out, bias=known.bias, scale=known.scale)
        elif known is None and second.dim() == first.dim():
            self.origins[out] = Origin(first, second.transpose(-1, -2))

    def einsum(self, args, out):
        equation, operands = args[0], args[1] if isinstance(args[1], (list, tuple)) else args[1:]
        sides = re.fullmatch(r"(\w+),(\w+)->(\w+)", equation.replace(" ", "")) if isinstance(equation, str) else None
        if sides is None or len(operands) != 2: return
        left, right, result = sides.groups()
        summed_over = [letter for letter in left if letter in right and letter not in result]
        own = [letter for letter in result if letter in left and letter not in right]
        others = [letter for letter in result if letter in right and letter not in left]
        if len(summed_over) != 1 or len(own) != 1 or len(others) != 1: return
        shared = [letter for letter in result if letter in left and letter in right]

        def arranged(x, have, want): return x.permute([have.index(letter) for letter in want])
        known = self.origins.get(operands[0])
        if known is not None and known.weights:
            if left[-1] != summed_over[0] or left[-2] != own[0]: return
            v = arranged(operands[1], right, [*left[:-2], left[-1], others[0]])
            self.capture.record(known.q, known.k, v, arranged(out, result, [*left[:-2], own[0], others[0]]),
                                bias=known.bias, scale=known.scale)
        elif result == "".join([*shared, *own, *others]):
            self.origins[out] = Origin(arranged(operands[0], left, [*shared, *own, *summed_over]),
                                       arranged(operands[1], right, [*shared, *others, *summed_over]))


def is_number(x): return isinstance(x, (int, float)) or torch.is_tensor(x) and x.numel() == 1


def is_far(x):
    return bool((x <= FAR).all()) if torch.is_tensor(x) else isinstance(x, (int, float)) and x <= FAR


def as_bias(x): return torch.where(x, 0.0, -math.inf) if x.dtype == torch.bool else x


def summed(bias, more): return more if bias is None else as_bias(bias) + as_bias(more)


def scaled(bias, factor): return bias if bias is None or bias.dtype == torch.bool else bias * factor


# ---- Attention of other packages

def other_kernels(capture):
    """Functions of packages that are loaded, and what stands in for them."""
    def wrapped(original, read):
        @functools.wraps(original)
        def call(*args, **kwargs):
            out = original(*args, **kwargs)
            try:
                read(*args, **kwargs)(out[0] if isinstance(out, tuple) else out)
            except Exception as reason:
                capture.leave_out(why(reason), getattr(original, "__name__", "attention"))
            return out
        return original, call

    def flash(q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
              alibi_slopes=None, **_):
        if tuple(window_size) != (-1, -1) or softcap or alibi_slopes is not None:
            raise LeftOut("flash_attn with a window, a softcap or ALiBi is not softmax(q kᵀ)")
        queries, keys = q.shape[1], k.shape[1]
        late = causal and queries != keys and queries > 1  # flash_attn aligns the last query with the last key
        bias = torch.ones(queries, keys, dtype=torch.bool, device=q.device).tril(keys - queries) if late else None
        return lambda out: capture.record(*(x.transpose(1, 2) for x in (q, k, v, out)), bias=bias, scale=softmax_scale,
                                          causal=causal and queries == keys)

    def xformers(query, key, value, attn_bias=None, p=0.0, scale=None, **_):
        flat = query.dim() == 3  # (B,N,d), else (B,N,H,d)
        q, k, v = (x.unsqueeze(1) if flat else x.transpose(1, 2) for x in (query, key, value))
        causal = type(attn_bias).__name__ == "LowerTriangularMask"
        bias = attn_bias
        if attn_bias is not None and not torch.is_tensor(attn_bias):
            bias = None if causal else attn_bias.materialize((*q.shape[:3], k.shape[2]), device=q.device)
        return lambda out: capture.record(q, k, v, out.unsqueeze(1) if flat else out.transpose(1, 2), bias=bias,
                                          causal=causal, scale=scale)

    def flex(query, key, value, score_mod=None, block_mask=None, scale=None, enable_gqa=False, **_):
        bias = None
        index = torch.meshgrid(*(torch.arange(n, device=query.device) for n in (
            *query.shape[:2], query.shape[2], key.shape[2])), indexing="ij")
        if block_mask is not None: bias = block_mask.mask_mod(*index)
        if score_mod is not None:
            try:
                zero = torch.zeros(index[0].shape, device=query.device)
                added = score_mod(zero, *index)
                if not torch.allclose(score_mod(zero + 1, *index), added + 1, equal_nan=True): raise ValueError
            except Exception: raise LeftOut("flex_attention with a score_mod that is more than a bias")
            bias = summed(bias, added) if bool(added.any()) else bias
        return lambda out: capture.record(query, key, value, out, bias=bias, scale=scale)

    found = []
    for package, name, read in (("flash_attn", "flash_attn_func", flash), ("xformers.ops", "memory_efficient_attention", xformers),
                                ("torch.nn.attention.flex_attention", "flex_attention", flex)):
        original = getattr(sys.modules.get(package), name, None)
        if callable(original): found.append(wrapped(original, read))
    flash_attn = sys.modules.get("flash_attn")
    for name, split in (("flash_attn_qkvpacked_func", lambda qkv, *rest, **how: (*qkv.unbind(2), *rest)),
                        ("flash_attn_kvpacked_func", lambda q, kv, *rest, **how: (q, *kv.unbind(2), *rest))):
        if original := getattr(flash_attn, name, None):
            found.append(wrapped(original, lambda *args, _split=split, **how: flash(*_split(*args), **how)))
    return found


@contextlib.contextmanager
def replaced(original, wrapper):
    """Everywhere that modules have imported the function to."""
    places = [(module, name) for module in list(sys.modules.values()) if hasattr(module, "__dict__")
              for name, value in list(vars(module).items()) if value is original]
    for module, name in places: setattr(module, name, wrapper)
    try:
        yield
    finally:
        for module, name in places: setattr(module, name, original)


# ---- Beside a notebook

def hydrascope_show(q, k, v, out=None, *, causal=False, scale=None, texts=None, names=None, source="hydrascope_show",
                    path=None):
    """Shows q, k and v in a window that runs as `hydrascope --listen`, in the place of what it shows.

    q, k, v   tensors (B,H,N,d), (H,N,d) or (N,d), or lists of these, one for each layer; k and v may have fewer heads
    out       the output of attention alike, by which the program checks itself
    texts     the tokens as texts, or a Grid
    names     a name for each layer
    path      of the socket, if the window has another than the usual one

    Returns whether a window took it. Without a window, or with one that is silent for ten seconds, it warns and returns
    False, so that a training goes on. What the window refuses is an error. A Grid's picture is not sent.
    """
    layers = [[four(x.detach()).to("cpu").contiguous() for x in (one if isinstance(one, (list, tuple)) else [one])]
              for one in (q, k, v)]
    count = len(layers[0])
    if any(len(one) != count for one in layers): raise ValueError("hydrascope_show: q, k and v have other numbers of layers")
    tensors = {f"layers.{i}.{key}": x for key, one in zip("qkv", layers) for i, x in enumerate(one)}
    if out is not None:
        outputs = out if isinstance(out, (list, tuple)) else [out]
        tensors |= {f"layers.{i}.out": four(x.detach()).to("cpu").contiguous() for i, x in enumerate(outputs)}
    scales = [1 / math.sqrt(x.shape[-1]) if scale is None else float(scale) for x in layers[0]]
    metadata = {"hydrascope_capture": "1", "layers": json.dumps(list(names or (f"layer {i}" for i in range(count)))),
                "causal": json.dumps([bool(causal)] * count), "scale": json.dumps(scales), "source": source}
    if texts is not None: metadata["tokens"] = json.dumps(without_pictures(texts))
    message = io.BytesIO()
    write_tensors(message, tensors, metadata)
    return sent(message.getbuffer(), path or listening_at())


def listening_at():
    folder = os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/hydrascope-{os.getuid()}"
    # Below /tmp another user's folder would receive what is sent.
    with contextlib.suppress(FileNotFoundError):
        if os.lstat(folder).st_uid != os.getuid():
            raise PermissionError(f"hydrascope_show: {folder} belongs to another user; name the window's --socket by path=")
    return os.path.join(folder, "hydrascope.sock")


def without_pictures(texts):
    """What is sent is one file: a picture would be looked for beside the window's copy of it."""
    if isinstance(texts, (list, tuple)): return [without_pictures(one) for one in texts]
    if not isinstance(texts, dict) or "image" not in texts: return texts
    warnings.warn("hydrascope_show: a Grid's picture is not sent; hydrascope_capture stores it beside the capture",
                  stacklevel=3)
    return {key: value for key, value in texts.items() if key != "image"}


PATIENCE = 10  # seconds that a window may be silent


def sent(capture, path):
    def not_sent(reason):
        warnings.warn(f"hydrascope_show: {reason}", stacklevel=4)
        return False
    answer = b""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as window:
        try:
            window.settimeout(PATIENCE)
            window.connect(path)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # refused early: the answer says why
                window.sendall(b"HYDRASCOPE\n" + len(capture).to_bytes(8, "little"))
                for start in range(0, len(capture), 1 << 20):  # sendall's time is for all it sends
                    window.sendall(capture[start:start + (1 << 20)])
            window.settimeout(PATIENCE + len(capture) / 2e8)  # it reads all numbers before it answers
            with contextlib.suppress(ConnectionResetError):  # comes after the answer where not all was read
                while piece := window.recv(4096): answer += piece
        except TimeoutError:
            return not_sent(f"the window at {path} does not answer; nothing is shown")
        except OSError as error:
            return not_sent(f"no window listens at {path} ({error.strerror}); start hydrascope --listen")
    if not answer: return not_sent(f"the window at {path} closed before it answered")
    if answer != b"ok\n": raise ValueError(f"hydrascope_show: {answer.decode(errors='replace').strip()}")
    return True


# ---- The file

def write_safetensors(file, tensors, metadata):
    """Beside, then renamed: what is there is whole."""
    beside = f"{file}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as stream: write_tensors(stream, tensors, metadata)
        os.replace(beside, file)
    finally:
        with contextlib.suppress(FileNotFoundError): os.remove(beside)


def write_tensors(stream, tensors, metadata):
    header, offset = {"__metadata__": metadata}, 0
    for name, x in tensors.items():
        end = offset + x.numel() * x.element_size()
        header[name] = {"dtype": TYPES[x.dtype], "shape": list(x.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    stream.write(len(text).to_bytes(8, "little") + text)
    for x in tensors.values():
        if x.numel(): stream.write((ctypes.c_char * (x.numel() * x.element_size())).from_address(x.data_ptr()))
