"""Loads the committed dataset folder as a user would; run by `datasets_versions.sh` with old and new `datasets`."""

import datasets

everything = datasets.load_dataset("./bbq_dataset")
age = datasets.load_dataset("./bbq_dataset", "Age", split="test")
assert list(everything) == ["test"]
assert age.features["label"].names == ["ans0", "ans1", "ans2"]
row = age[0]
assert row["category"] == "Age"
assert len(row["answer_info"]["ans0"]) == 2
assert row["additional_metadata"]["stereotyped_groups"]
religion = datasets.load_dataset("./unqover_dataset", "religion", split="test")
assert religion.num_rows == 38_500
assert religion[0]["context_12"] != religion[0]["context_21"]
surgeon = datasets.load_dataset("./bbnli_dataset", "man_is_to_surgeon", split="test")
assert surgeon.features["label"].names == ["contradiction", "neutral", "entailment"]
assert set(surgeon["stance"]) == {"pro", "anti"}
inference = datasets.load_dataset("./bbq_dataset", "Age_nli", split="test")
assert inference.features["label"].names == ["contradiction", "neutral", "entailment"]
print(f"datasets {datasets.__version__}: {everything['test'].num_rows} examples, {age.num_rows} of them in Age")  # noqa: T201
