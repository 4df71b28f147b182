#!/usr/bin/env bash
# Installs a built wheel into a fresh environment of every Python that is named, and audits, scores and asks UnQover
# there, away from the checkout. Warnings of a coming removal are errors: tests/wheel.sh dist/*.whl python3.10 python3.13
set -euo pipefail
wheel=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export HF_HOME="$work/hf" HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1
for python in "${@:-python3}"; do
  rm -rf venv audit unqover
  "$python" -m venv venv
  venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check "$wheel"
  qabias() { venv/bin/python -W error::DeprecationWarning -W error::FutureWarning -m qabias "$@" >"$work/output" 2>&1; }
  # The answers of an audit are its exit status: no, yes, undecided.
  qabias audit --model baseline:random --budget 600 --output audit || [[ $? =~ ^[13]$ ]] || { cat output; exit 1; }
  test -s audit/audit.html
  qabias run unqover --config religion --limit 500 --model baseline:random --output unqover || { cat output; exit 1; }
  qabias verify unqover || { cat output; exit 1; }
  venv/bin/python -W error::DeprecationWarning -W error::FutureWarning - <<'PYTHON'
import pathlib, sys, datasets, evaluate, qabias.share
share = pathlib.Path(qabias.share.__file__).parent
assert share.is_relative_to(sys.prefix), share
age = datasets.load_dataset(str(share / "bbq_dataset"), "Age", split="test")
assert evaluate.load(str(share / "metrics" / "bbq")).compute(predictions=age["biased_loc"], references=age)["bias_ambig"] == 1
PYTHON
  echo "$("$python" --version): the wheel installs, audits and scores"
done
