#!/usr/bin/env bash
# Loads the committed dataset folders with every major version of `datasets`. The oldest needs libraries of its time;
# the others share one environment, which is upgraded in steps.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
uv() { "${PYTHON:-python3}" -m uv --quiet "$@"; }
trap 'rm -rf "$work"' EXIT

load() { # environment, requirements
  local venv="$work/$1"
  shift
  [ -d "$venv" ] || uv venv --python "${PYTHON:-python3}" "$venv"
  uv pip install --python "$venv" "$@"
  (cd "$root" && HF_HOME="$work/hf" HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 "$venv/bin/python" tests/load_committed.py)
  rm -rf "$work/hf"
}

load old "datasets==2.14.7" "pyarrow<15" "numpy<2" "pandas<3" "fsspec<2023.10" "huggingface_hub<1"
load new "datasets==3.6.0"
load new "datasets==4.*"
load new "datasets==5.*"
