#!/usr/bin/env bash
# Loads the committed dataset folders with every major version of `datasets`, each in an environment of its own.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for version in "2.14.7 pyarrow<15 numpy<2 pandas<3 fsspec<2023.10 huggingface_hub<1" "3.6.0" "4.*" "5.*"; do
  read -r -a parts <<<"$version"
  "${PYTHON:-python3}" -m venv "$work/venv"
  "$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check "datasets==${parts[0]}" "${parts[@]:1}"
  (cd "$root" && HF_HOME="$work/hf" HF_DATASETS_OFFLINE=1 HF_HUB_OFFLINE=1 "$work/venv/bin/python" tests/load_committed.py)
  rm -rf "$work/venv" "$work/hf"
done
