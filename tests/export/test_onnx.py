"""The network as an ONNX file, run by onnxruntime beside torch."""

import numpy as np
import pytest
import torch
from torch import nn

from jule import __version__
from jule.backward import Embedder, build_embedder
from jule.backward.embedder import as_images, resize
from jule.export.onnx import resizing_matrix, write_onnx

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
runtime = pytest.importorskip("onnxruntime")


def some_samples(shape, n=7):
    rng = np.random.default_rng(0)
    if len(shape) == 1:
        return rng.normal(size=(n, *shape)).astype(np.float32)
    return rng.integers(0, 256, (n, *shape), dtype=np.uint8)


def trained(samples, **settings):
    """A network whose weights and running moments are like those after training."""
    embedder = build_embedder(samples, **settings)
    torch.manual_seed(0)
    for module in embedder.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(module.weight)
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_mean.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 2)
            nn.init.uniform_(module.bias, -1, 1)
    return embedder


def run(path, x):
    options = runtime.SessionOptions()
    options.intra_op_num_threads = 1
    session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(["embedding"], {"images": x})[0]


CASES = {
    "grey": ((16, 16), {}),
    "half, a channel of one": ((32, 32, 1), {"max_side": 16}),
    "not square, odd ratio, colour": ((45, 31, 3), {"max_side": 20}),
    "odd ratio, wide": ((19, 50), {"max_side": 23}),
    "normalised": ((37, 29, 3), {"max_side": 20, "normalize": True}),
    "enlarged": ((8, 6), {"min_side": 16}),
    "vectors": ((7,), {}),
    "two networks side by side": ((16, 16), {"members": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_equal_to_the_network(tmp_path, case):
    shape, settings = CASES[case]
    samples = some_samples(shape)
    if settings.get("normalize"):
        samples[3] = 0  # a black image has nothing to be divided by
    embedder = trained(samples, **settings).eval()
    path = tmp_path / "net.onnx"
    write_onnx(embedder, path, shape)
    onnx.checker.check_model(onnx.load(path), full_check=True)
    x = as_images(samples).contiguous()
    with torch.no_grad():
        expected = embedder(x).numpy()
    assert np.ptp(expected, axis=0).max() > 0.01  # else anything would be equal
    for batch in (1, 7):
        found = run(path, x[:batch].numpy())
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected[:batch], rtol=0, atol=1e-5)


@pytest.mark.parametrize("new", [1, 5, 16, 63])
@pytest.mark.parametrize("old", [1, 3, 28, 127])
def test_resizing_matrices_do_what_resize_does(old, new):
    # In float64: torch's own sums of float32 are off by more than the matrices are.
    x = torch.rand(2, 3, old, 2 * old, generator=torch.Generator().manual_seed(0)).double()
    size = (new, new + 1)
    smaller = new * (new + 1) < 2 * old * old
    rows = resizing_matrix(old, new, smaller)
    columns = resizing_matrix(2 * old, new + 1, smaller).T
    found = rows.double() @ x @ columns.double()
    torch.testing.assert_close(found, resize(x, size), rtol=0, atol=1e-6)


def test_metadata_say_what_goes_in(tmp_path):
    write_onnx(build_embedder(some_samples((16, 12, 3))), tmp_path / "net.onnx", (16, 12, 3))
    model = onnx.load(tmp_path / "net.onnx")
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about == {"jule": __version__, "channels": "3", "height": "16", "width": "12"}
    (given,), (out,) = model.graph.input, model.graph.output
    sizes = [axis.dim_param or axis.dim_value for axis in given.type.tensor_type.shape.dim]
    assert (given.name, out.name) == ("images", "embedding")
    assert sizes[1:] == [3, 16, 12]
    assert isinstance(sizes[0], str)
    assert [file.name for file in tmp_path.iterdir()] == ["net.onnx"]


def test_the_network_stays_as_it_was_and_the_file_is_always_the_same(tmp_path):
    embedder = trained(some_samples((20, 20)), max_side=16, normalize=True).train()
    before = {name: value.clone() for name, value in embedder.state_dict().items()}
    for name in ("one", "two"):
        write_onnx(embedder, tmp_path / name, (20, 20))
    assert embedder.training
    assert (embedder.size, embedder.normalize) == ((16, 16), True)
    for name, value in embedder.state_dict().items():
        assert torch.equal(value, before[name])
    content = (tmp_path / "one").read_bytes()
    assert content == (tmp_path / "two").read_bytes()
    assert b"site-packages" not in content
    assert b"onnx_export.py" not in content


def test_the_users_own_network(tmp_path):
    body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.GELU(), nn.AdaptiveAvgPool2d(1))
    samples = some_samples((12, 12))
    embedder = build_embedder(samples, body=body).eval()
    write_onnx(embedder, tmp_path / "net.onnx", (12, 12))
    x = as_images(samples)
    with torch.no_grad():
        expected = embedder(x).numpy()
    np.testing.assert_allclose(run(tmp_path / "net.onnx", x.numpy()), expected, atol=1e-5)


def test_a_network_that_onnx_cannot_express_is_one_clear_error(tmp_path):
    class Odd(nn.Module):
        def forward(self, x):
            return x.flatten(1) * float(np.asarray(x.detach().sum().item()))

    embedder = Embedder(Odd(), torch.zeros(1), torch.ones(1))
    with pytest.raises(ValueError, match="cannot be written as ONNX"):
        write_onnx(embedder, tmp_path / "net.onnx", (12, 12))
    assert list(tmp_path.iterdir()) == []


def test_a_network_that_is_too_large_for_one_file_is_refused(tmp_path):
    body = nn.Linear(30_000, 30_000, device="meta")  # without memory
    embedder = Embedder(body, torch.zeros(30_000), torch.ones(30_000))
    with pytest.raises(ValueError, match=r"3\.6 GB of weights, but an ONNX file holds at most 2"):
        write_onnx(embedder, tmp_path / "net.onnx", (30_000,))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(16, 16, 3), (7,), (1, 2, 3, 4)])
def test_other_shapes_are_refused(tmp_path, shape):
    with pytest.raises(ValueError, match=r"channels|a sample has shape"):
        write_onnx(build_embedder(some_samples((16, 16))), tmp_path / "net.onnx", shape)


def test_without_onnx_the_way_to_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("jule.export.onnx.NEEDED", ("onnx", "no_such_package"))
    with pytest.raises(ImportError, match=r'no_such_package: pip install "jule\[onnx\]"'):
        write_onnx(build_embedder(some_samples((16, 16))), tmp_path / "net.onnx", (16, 16))


def test_the_exporter_prints_nothing(tmp_path, capfd):
    write_onnx(build_embedder(np.eye(16)[None]), tmp_path / "net.onnx", (16, 16))
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
