"""Runs models of PyTorch by Axle, from the modules that torch_xla makes of them, beside PyTorch itself, and says which do not agree.

  import_torch.py [--axle build/axle] [--only REGEX] [--keep FOLDER]

Exported models (torch.export), as text and as bytecode, some with a batch of any size, beside PyTorch's results: they agree within 64
epsilons of the dtype, of the largest element, or within eight times what PyTorch's own move by when each floating-point argument is
changed by one epsilon. And steps of training that torch_xla has recorded, gradients and an update by SGD (at a rate at which the gradient is what counts) or AdamW: within 1,024 of what
it gets itself, by XLA, or of what PyTorch gets. Neither alone will do: torch_xla 2.8 writes another derivative of InstanceNorm, and
runs an LSTM's update of biases wrongly.
"""

import copy
import os
import re
import sys

os.environ["PJRT_DEVICE"] = "CPU"
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["EXPERIMENTAL_XLA_UNBOUNDED_DYNAMISM"] = "1"
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import torch_xla  # noqa: E402
import torch_xla.core.xla_model as xm  # noqa: E402
from agree import disagreement, distance, judge, main, shaken  # noqa: E402
from torch import nn  # noqa: E402
from torch_xla.stablehlo import VariableType, exported_program_to_stablehlo  # noqa: E402

torch.set_num_threads(1)  # processes are forked
torch.manual_seed(5)
MOST = 64
LEAST = 90  # modules that torch_xla 2.8 writes of all cases, and some more


def floats(*shape):
    return torch.randn(*shape)


def integers(below, *shape):
    return torch.randint(below, shape)


def leaves(tree):
    if isinstance(tree, torch.Tensor):
        return [tree]
    return [leaf for part in tree for leaf in leaves(part)]


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *args):
        return tuple(leaves(self.f(*args)))


class Residual(nn.Module):
    def __init__(self, channels, to, stride):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(channels, to, 3, stride, 1, bias=False), nn.BatchNorm2d(to), nn.ReLU(), nn.Conv2d(to, to, 3, 1, 1, bias=False), nn.BatchNorm2d(to))
        self.skip = nn.Identity() if stride == 1 and channels == to else nn.Sequential(nn.Conv2d(channels, to, 1, stride, bias=False), nn.BatchNorm2d(to))

    def forward(self, x):
        return F.relu(self.a(x) + self.skip(x))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.cells = kind(8, 16, num_layers=2, batch_first=True, **options)

    def forward(self, x):
        return self.cells(x)[0]


class Language(nn.Module):
    """A decoder with a causal mask, tokens in, logits out."""

    def __init__(self, vocabulary=50, width=32, heads=4, layers=2, length=12):
        super().__init__()
        self.embedding, self.places = nn.Embedding(vocabulary, width), nn.Parameter(floats(length, width) * 0.1)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, heads, 64, 0.0, F.gelu, batch_first=True, norm_first=True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)
        self.register_buffer("mask", torch.triu(torch.full((length, length), float("-inf")), 1))

    def forward(self, tokens):
        x = self.embedding(tokens) + self.places
        for block in self.blocks:
            x = block(x, src_mask=self.mask)
        return self.head(self.norm(x))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(20, 8), nn.Linear(8, 3)

    def forward(self, words):
        return self.head(self.embedding(words).mean(1)).log_softmax(-1)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(16, 4), nn.Parameter(floats(4, 16, 32) * 0.2), nn.Parameter(floats(4, 32, 16) * 0.2)

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        hidden = F.silu(torch.einsum("bi,eio->beo", x, self.up))
        each = torch.einsum("beo,eoi->bei", hidden, self.down)
        return (weights[..., None] * torch.gather(each, 1, chosen[..., None].expand(-1, -1, 16))).sum(1)


def unet():
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, 2, 1)
            self.up, self.c = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 3, 3, padding=1)
            self.norm = nn.GroupNorm(4, 8)

        def forward(self, x):
            a = F.silu(self.norm(self.a(x)))
            return self.c(torch.cat([a, self.up(F.silu(self.b(a)))], 1))

    return UNet()


def models():
    """name: (module, arguments, whether it is written for a batch of any size too)"""
    mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4), nn.Softmax(-1))
    lenet = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 10))
    resnet = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2), nn.AdaptiveAvgPool2d(1),
                           nn.Flatten(), nn.Linear(16, 10))  # fmt: skip
    return {
        "MLP": (mlp, [floats(3, 16)], True),
        "LeNet": (lenet, [floats(2, 1, 28, 28)], True),
        "ResNet": (resnet, [floats(2, 3, 32, 32)], True),
        "LSTM": (Recurrent(nn.LSTM), [floats(2, 5, 8)], False),
        "GRU, both ways": (Recurrent(nn.GRU, bidirectional=True), [floats(2, 5, 8)], False),
        "language model": (Language(), [integers(50, 2, 12)], False),
        "experts": (Experts(), [floats(6, 16)], False),
        "U-Net": (unet(), [floats(2, 3, 16, 16)], False),
        "depthwise": (nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), nn.Hardswish(), nn.Conv2d(8, 4, 1)), [floats(2, 8, 9, 9)], False),
        "volumes": (nn.Sequential(nn.Conv3d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool3d(2), nn.ConvTranspose3d(4, 2, 3, 2, 1, 1)), [floats(1, 2, 6, 6, 6)], False),
        "signals": (nn.Sequential(nn.Conv1d(3, 8, 5, dilation=2, padding=4), nn.ELU(), nn.InstanceNorm1d(8), nn.AvgPool1d(2)), [floats(2, 3, 20)], False),
        "bag of words": (Words(), [integers(20, 4, 7)], False),
    }


def functions():
    """name: (function, arguments)"""
    x, y, i = floats(4, 6), floats(4, 6), integers(4, 5)
    return {
        "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), [floats(2, 3, 8, 4), floats(2, 3, 8, 4), floats(2, 3, 8, 4)]),
        "sort": (lambda a: torch.sort(a, 1, True), [x]),
        "top k": (lambda a: torch.topk(a, 3, 0), [x]),
        "sums along": (lambda a: (torch.cumsum(a, 1), torch.cumprod(a, 0)), [x]),
        "scatter": (lambda a, n, b: torch.scatter_add(a, 0, n, b), [x, integers(4, 3, 6), floats(3, 6)]),
        "index put": (lambda a, n, b: torch.index_put(a, (n,), b, accumulate=True), [x, i, floats(5, 6)]),
        "index select": (lambda a, n: (torch.index_select(a, 0, n), a[n, 2], torch.take_along_dim(a, n[:4, None], 1)), [x, i]),
        "where": (lambda a, b: (torch.where(a > b, a, 0.5 * b), a.masked_fill(b < 0, -1e9).softmax(1)), [x, y]),
        "extremes": (lambda a: (a.max(1), a.min(0).values, a.argmax(1), a.amax((0, 1))), [x]),
        "statistics": (lambda a: (a.var(1), a.std(0), a.mean(), torch.logsumexp(a, 1), a.norm(dim=1)), [x]),
        "functions": (lambda a: (torch.erf(a), torch.expm1(a), torch.log1p(a.abs()), torch.atan2(a, a + 1), a.rsqrt().nan_to_num(),
                                 torch.sinc(a), a.sinh(), torch.erfinv(a.clamp(-0.9, 0.9))), [x]),
        "rounding": (lambda a: (a.round(), a.floor(), a.trunc(), a.frac(), torch.remainder(a, 0.7), torch.fmod(a, 0.7), torch.floor_divide(a, 0.7), a.sign()), [3 * x]),
        "integers": (lambda a, b: (a // b, a % b, a & b, a | 3, a << 2, ~a, torch.remainder(-a, b), a.bitwise_xor(b), a.float() / b), [integers(100, 4, 6), integers(9, 4, 6) + 1]),
        "shapes": (lambda a: (a.roll(2, 1), a.flip(0), F.pad(a, (1, 2, 0, 1), value=3.0), a.tril(1), a.diagonal(), a.repeat(2, 3), a.T.reshape(3, 8), torch.stack([a, a + 1], 1)), [x]),
        "pads": (lambda a: (F.pad(a, (2, 1, 1, 2), "reflect"), F.pad(a, (1, 1, 2, 2), "replicate"), F.pad(a, (1, 1, 2, 2), "circular")), [floats(1, 2, 5, 6)]),
        "sizes": (lambda a: (F.interpolate(a, scale_factor=2, mode="nearest"), F.interpolate(a, (7, 9), mode="bilinear", align_corners=False), F.adaptive_avg_pool2d(a, 1)), [floats(1, 2, 5, 6)]),
        "losses": (lambda a, n, b: (F.cross_entropy(a, n, reduction="none"), F.mse_loss(a, b), F.smooth_l1_loss(a, b), F.binary_cross_entropy_with_logits(a, b.sigmoid()), F.kl_div(a.log_softmax(1), b.softmax(1), reduction="none")),
                   [x, integers(6, 4), y]),
        "products": (lambda a, b, c: (a @ b.T, torch.bmm(c, c.transpose(1, 2)), torch.einsum("ij,kj->ik", a, b), torch.addmm(a[:, :4], a, b.T), torch.outer(a[0], b[1]), a.mv(b[0])), [x, y, floats(2, 3, 5)]),
        "bf16": (lambda a, b: (a.bfloat16() @ b.bfloat16().T, (a.bfloat16() * 1.5).exp(), a.half().softmax(1)), [x, y]),
        "doubles": (lambda a: (a.exp().sum(1), a @ a.T), [x.double()]),
        "booleans": (lambda a, b: ((a > 0) & (b > 0), (a > 0) ^ (b > 0), (a > 0).any(1), (a > 0).all(), torch.isnan(a), (a > 0).sum(1)), [x, y]),
        "ranges": (lambda a: (torch.arange(6) * a, torch.linspace(0, 1, 6) + a, F.one_hot(a.argmax(1), 6)), [x]),
    }  # fmt: skip


def array(tensor):
    tensor = tensor.detach().cpu().resolve_conj()
    if tensor.dtype != torch.bfloat16:
        return np.array(tensor.numpy())
    import ml_dtypes

    return np.array(tensor.view(torch.int16).numpy()).view(ml_dtypes.bfloat16)


def moved(f, args):
    """As agree.moved."""
    r, want, most = np.random.default_rng(3), [array(a) for a in leaves(f(*args))], 0
    for _ in range(3):
        near = [torch.from_numpy(shaken(r, array(a))) if a.is_floating_point() else a for a in args]
        most = max([most, *(distance(array(g), w) for g, w in zip(leaves(f(*near)), want))])
    return most


def exported(module, args, any_batch):
    """(form, module, its arguments) of each form that torch_xla writes."""
    batch = torch.export.Dim("batch", min=2, max=1000)
    with torch.no_grad():
        program = torch.export.export(module, tuple(args), dynamic_shapes=({0: batch},) if any_batch else None, strict=False)
    graph = exported_program_to_stablehlo(program)
    func = graph._bundle.stablehlo_funcs[0]
    given = []
    for place in func.meta.input_locations:
        if place.type_ == VariableType.INPUT_ARG:
            given.append(array(args[place.position]))
        elif place.type_ == VariableType.PARAMETER:
            given.append(np.array(graph._bundle.state_dict[place.name]))
        else:
            given.append(np.array(graph._bundle.additional_constants[place.position]))
    return [("text", func.text, given), ("bytecode", func.bytecode, given)]


def step(module, args, optimizer_of):
    optimizer = optimizer_of(module.train().parameters())
    loss = (module(*args).float() ** 2).mean()
    loss.backward()
    optimizer.step()
    return [loss, *module.parameters()]


def recorded(module, args, optimizer_of):
    """A step of training as torch_xla records it: (module, its arguments, what XLA gets of it and what PyTorch gets)."""
    device, own = torch_xla.device(), copy.deepcopy(module)
    there, moved = module.to(device), [a.to(device) for a in args]
    torch_xla.sync()
    results = step(there, moved, optimizer_of)
    text = xm.get_stablehlo(results)
    given = [array(t) for t in torch_xla._XLAC._get_tensors_xla_device_data_node(results)[1]]
    return text, given, [[array(a) for a in results], [array(a) for a in step(own, args, optimizer_of)]]


def cases(only):
    """(name, module, arguments, whether for any batch, the optimizer of a step or None)"""
    for name, (module, args, any_batch) in models().items():
        module.eval()
        for sizes in (False, True) if any_batch else (False,):
            full = f"{name}{', any batch' if sizes else ''}"
            if re.search(only, full):
                yield full, module, args, sizes, None
        for optimizer, make in (("SGD", lambda p: torch.optim.SGD(p, 10.0, 0.9, nesterov=True)), ("AdamW", lambda p: torch.optim.AdamW(p, 0.01, eps=1e-3))):
            full = f"{name}, a step of {optimizer}"
            if re.search(only, full):
                yield full, module, args, False, make
    for name, (f, args) in functions().items():
        if re.search(only, name):
            yield name, Of(f), args, False, None



def forms(module, args, sizes, optimizer):
    if optimizer is not None:
        text, given, wants = recorded(module, args, optimizer)
        return [("recorded", text, given)], wants
    with torch.no_grad():
        want = [array(a) for a in leaves(module(*args))]
    return exported(module, args, sizes), [want]


def run(options, name, module, args, sizes, optimizer):
    """The number of modules, and of those that disagree."""
    try:
        modules, wants = forms(module, args, sizes, optimizer)
    except Exception as error:  # noqa: BLE001 - what PyTorch cannot write is no fault of the reader
        print(f"{name}: not written: {(str(error) or type(error).__name__).splitlines()[0][:140]}", flush=True)
        return 0, 0
    near = (lambda: 1024) if optimizer is not None else (lambda: max(MOST, 8 * moved(module, args)))  # Adam divides by what nearly vanishes

    def why(text, given):
        whys = [disagreement(options.axle, text, given, want, near) for want in wants]
        return None if None in whys else whys[0]

    return judge(options.keep, name, modules, why)


def run_apart(*case):
    """The same in a process of its own, which torch_xla may end."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        count, failed = run(*case)
        sys.stdout.flush()
        os._exit(8 * count + failed)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status < 0:
        print(f"{case[1]}: not written: torch_xla ends its process", flush=True)
    return (status // 8, status % 8) if status >= 0 else (0, 0)


main("PyTorch", cases, run_apart, LEAST)
