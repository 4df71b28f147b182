"""SmolLM2 behind real servers answers as in process where the precision is the same."""

import sys
from pathlib import Path

import numpy as np
import pytest
import transformers

from qabias.models.loading import CAUSAL, SMOLLM2, find_smollm2, load_model
from speed import servers


@pytest.fixture
def smollm2():
    """The bundled model; skips without it."""
    pytest.importorskip("gguf")
    return load_model(CAUSAL, SMOLLM2, device="cpu", dtype="float32")


@pytest.mark.slow
def test_the_files_for_servers_hold_the_same_weights(smollm2, tmp_path):
    import gguf

    plain = transformers.AutoModelForCausalLM.from_pretrained(servers.save_float32(tmp_path / "plain"))
    expected = smollm2.model.state_dict()
    found = plain.state_dict()
    assert found.keys() == expected.keys()
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    folder, file = find_smollm2()
    source = Path(folder) / file["gguf_file"]
    packed = gguf.GGUFReader(source)
    whole = gguf.GGUFReader(servers.write_float32_gguf(source, tmp_path / "whole.gguf"))
    assert {tensor.tensor_type.name for tensor in whole.tensors} == {"F32"}
    assert any(tensor.tensor_type.name != "F32" for tensor in packed.tensors)
    for one, other in zip(packed.tensors, whole.tensors, strict=True):
        assert one.name == other.name
        assert np.array_equal(gguf.dequantize(one.data, one.tensor_type), other.data)
    metadata = {name: field.contents() for name, field in packed.fields.items() if not name.startswith("GGUF.")}
    for name, value in metadata.items():
        assert whole.fields[name].contents() == value or name == "general.file_type"


@pytest.mark.slow
@pytest.mark.usefixtures("smollm2")
def test_served_in_the_same_precision_a_model_writes_the_same(monkeypatch, capsys):
    if servers.lacking(servers.TRANSFORMERS) and servers.lacking(servers.LLAMA):
        pytest.skip('no server is installed; run: pip install "transformers[serving]" "llama-cpp-python[server]"')
    monkeypatch.setattr(sys, "argv", ["servers", "--quick"])
    assert servers.main() == 0
    shown = capsys.readouterr().out
    for row in shown.splitlines():
        if "float32 |" in row:
            assert "| 100.0 % | 100.0 % |" in row
