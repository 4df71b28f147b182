"""The committed dataset folders are what the builders make: tables, files and cards, in correct English."""

import functools
import importlib
import random
import re
import shutil

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from qabias.benchmarks import load_benchmark, locate
from qabias.building.folder import data_checksums, parquet_path
from qabias.building.templating import repair_articles
from qabias.errors import QabiasError
from qabias.share.bbnli_dataset.subtopics import DOMAINS, SUBTOPICS, subtopics_of
from qabias.share.bbq_dataset.origin import CATEGORIES, NLI_CONFIGS, NLI_SCHEMA, SCHEMA
from qabias.share.unqover_dataset.columns import batches
from qabias.share.unqover_dataset.origin import CONFIGS
from qabias.support.files import sha256_of

from .built import bbq_rows, unqover_table
from .conftest import ROOT

NAMES = ("bbq", "unqover", "bbnli")


CONFIGS_OF = {"bbq": (*CATEGORIES, *NLI_CONFIGS), "unqover": CONFIGS, "bbnli": SUBTOPICS}


@functools.cache
def tables_of(name):
    if name == "unqover":
        return {config: unqover_table(config) for config in CONFIGS}
    if name == "bbnli":
        origin = importlib.import_module("qabias.share.bbnli_dataset.origin").Origin()
        return {subtopic: origin.table(subtopic) for subtopic in SUBTOPICS}
    schemas = {**dict.fromkeys(CATEGORIES, SCHEMA), **dict.fromkeys(NLI_CONFIGS, NLI_SCHEMA)}
    return {config: pa.Table.from_pylist(bbq_rows(config), schema=schema) for config, schema in schemas.items()}


def paths_of(name):
    folder = importlib.import_module(f"{name}_dataset.folder")
    return {config: ROOT / f"{name}_dataset" / "data" / config / folder.PARQUET_NAME for config in CONFIGS_OF[name]}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_committed_tables_are_what_the_builder_makes(name):
    paths = paths_of(name)
    assert set((ROOT / f"{name}_dataset").rglob("*.parquet")) == set(paths.values())
    for config, table in tables_of(name).items():
        committed = pq.ParquetFile(paths[config])
        built = list(batches(table)) if name == "unqover" else [table]
        assert committed.num_row_groups == len(built)
        for number, group in enumerate(built):
            read = committed.read_row_group(number)
            assert read.equals(group), f"{config}: run `make data` and commit"
            assert read.schema.metadata is None, "no schema of Arrow or of `datasets`"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_committed_files_are_written_byte_for_byte(name, tmp_path):
    folder = importlib.import_module(f"{name}_dataset.folder").FOLDER
    paths = paths_of(name)
    written = tmp_path / "table.parquet"
    # That each holds what its builder makes is tested above; bytes of every third show how they are written.
    for config, table in list(tables_of(name).items())[::3]:
        folder.write_parquet(table, written)
        creators = [pq.read_metadata(path).created_by for path in (written, paths[config])]
        if creators[0] != creators[1]:
            pytest.skip(f"the committed files are written by {creators[1]}, this is {creators[0]}")
        assert written.read_bytes() == paths[config].read_bytes(), f"{config}: run `make data` and commit"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "config", "n_rows"),
    [
        ("bbq", "Age", 58_492),
        ("bbq", "Religion_nli", 58_492),
        ("unqover", "religion_mlm", 1_372_000),
        ("bbnli", "man_is_to_surgeon", 3636),
    ],
)
def test_load_dataset_reads_the_folder_as_it_is(name, config, n_rows, tmp_path):
    builder = importlib.import_module(f"qabias.share.{name}_dataset.builder")
    features = builder.NLI_FEATURES if config in NLI_CONFIGS else builder.FEATURES
    default = datasets.load_dataset(str(ROOT / f"{name}_dataset"), cache_dir=tmp_path)
    assert [(split, table.num_rows) for split, table in default.items()] == [("test", n_rows)]
    assert default["test"].features == (builder.FEATURES["gender"] if name == "unqover" else builder.FEATURES)
    found = datasets.load_dataset(str(ROOT / f"{name}_dataset"), config, split="test", cache_dir=tmp_path)
    assert found.features == (features[config] if name == "unqover" else features)
    assert found.to_list() == tables_of(name)[config].to_pylist()


@pytest.mark.slow
@pytest.mark.parametrize("domain", DOMAINS)
def test_a_domain_of_the_folder_has_its_subtopics(domain, tmp_path):
    found = datasets.load_dataset(str(ROOT / "bbnli_dataset"), domain, split="test", cache_dir=tmp_path)
    assert found.to_list() == [row for name in subtopics_of(domain) for row in tables_of("bbnli")[name].to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "of", "config", "fields"),
    [
        ("bbq", "BBQ", "Religion", {}),
        ("bbq", "BBQ", "Religion_nli", {"source": "official", "fixes": True}),
        ("unqover", "UnQover", "ethnicity", {}),
        ("unqover", "UnQover", "religion_mlm", {"source": "official", "subjects": "roberta", "fixes": True}),
        ("bbnli", "BBNLI", "religion", {"source": "official"}),
        ("bbnli", "BBNLI", "man_is_to_surgeon", {"source": "official", "fixes": True}),
    ],
)
def test_the_builder_makes_the_examples_of_its_origin(name, of, config, fields, upstream, tmp_path):
    module = importlib.import_module(f"qabias.share.{name}_dataset.builder")
    builder = getattr(module, of)(config_name=config, cache_dir=tmp_path, mirror=str(upstream), **fields)
    builder.download_and_prepare()
    assert builder.as_dataset(split="test").to_list() == module.Origin(**fields).table(config).to_pylist()
    assert config in builder.builder_configs
    assert {"unqover": "gender"}.get(name, "all") == builder.DEFAULT_CONFIG_NAME


# The columns with texts, and how each ends.
QUESTION, SENTENCE = r"[^.?!]\?$", r"[^.?!][.!]$"
TEXTS = {
    "bbq": {"context": SENTENCE, "question": QUESTION, **dict.fromkeys(("ans0", "ans1", "ans2"), "[^.?!,;]$")},
    "unqover": {
        **dict.fromkeys(("context_12", "context_21", "masked", "masked_negated"), SENTENCE),
        **dict.fromkeys(("question", "negated_question"), QUESTION),
    },
    "bbnli": {"premise": SENTENCE, "hypothesis": r"[^.?!]\.$", "question": QUESTION},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["unqover", "bbq", "bbnli"])
def test_grammar_of_every_text(name):
    for config, table in tables_of(name).items():
        columns = [column for column in TEXTS[name] if column in table.column_names and config not in NLI_CONFIGS]
        for column in columns:
            for text in table[column].unique().to_pylist():
                plain = text.replace("[MASK]", "Mask", 1)
                assert re.search(TEXTS[name][column], plain), text
                # "_" is the gap of RACE.
                fault = r"[][{}]|  |[.!?] [a-z]|[,;]\s*[.?!]|[.?!]{2}|\bX[12]\b|ATTRIBUTE|^\W*[a-z]|_"
                assert not re.search(fault, plain), text
                assert name == "unqover" or "Latino woman" not in text, text
                assert repair_articles(plain) == plain.strip() == plain, text
                assert not re.search(r"\b(\w+) \1\b", plain.lower().replace("that that", "")), text


@pytest.mark.parametrize("name", NAMES)
def test_every_committed_file_has_its_checksum(name):
    folder = ROOT / f"{name}_dataset"
    sums = {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths_of(name).values()}
    assert data_checksums(folder) == sums, "run `make data` and commit"


@pytest.mark.parametrize(
    ("name", "config"), [("bbq", "Religion"), ("unqover", "religion"), ("bbnli", "man_is_to_surgeon")]
)
def test_a_flipped_bit_in_a_committed_file_is_refused(name, config, tmp_path, monkeypatch):
    folder = shutil.copytree(ROOT / f"{name}_dataset", tmp_path / f"{name}_dataset")
    monkeypatch.setattr(locate, "dataset_folder", lambda _: folder)
    benchmark = load_benchmark(name)
    origin = benchmark.origin("bundled", 0, False)
    assert benchmark.load(config, origin).num_rows
    path = folder / parquet_path(config)
    content, drawn = bytearray(path.read_bytes()), random.Random(5)
    for _ in range(20):
        place, bit = drawn.randrange(len(content)), 1 << drawn.randrange(8)
        content[place] ^= bit
        path.write_bytes(content)
        with pytest.raises(QabiasError, match=f"{config}.*damaged"):
            benchmark.load(config, origin)
        content[place] ^= bit


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_card_is_what_the_builder_makes(name):
    folder, builder = (importlib.import_module(f"{name}_dataset.{module}") for module in ("folder", "builder"))
    sizes = {config: path.stat().st_size for config, path in paths_of(name).items()}
    card = (ROOT / f"{name}_dataset" / "README.md").read_text("utf-8")
    assert card == folder.card_text(builder.Origin(), tables_of(name), sizes), "run `make data` and commit"


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_texts_are_those_of_the_default_origin(name):
    origin = importlib.import_module(f"{name}_dataset.origin").Origin
    assert origin().is_committed
    assert not origin("official").is_committed
    assert not origin("official", fixes=True).is_committed
    # Only BBQ draws at random.
    assert origin(seed=1).is_committed == (name != "bbq")


def test_the_readme_has_the_numbers_of_rows():
    """Of every pair of statements about one person there is one question."""
    of_bbnli = sum(pq.read_metadata(path).num_rows for path in paths_of("bbnli").values())
    of_bbq = {config: pq.read_metadata(path).num_rows for config, path in paths_of("bbq").items()}
    pairs = sum(of_bbq[config] for config in NLI_CONFIGS if config != "Gender_identity_nli_context")
    questions = f"{of_bbnli:,}; from BBQ {pairs:,} pairs and {pairs // 2:,} questions"
    readme = (ROOT / "README.md").read_text("utf-8")
    assert questions in readme
    assert f"| {sum(of_bbq[category] for category in CATEGORIES):,} |" in readme
