#!/bin/bash
# Scores, packs, reports, compares and ranks in the folder from `segjudge demo`:  daily.sh OUT
set -eu
out=$1
mkdir "$out"
videos=(--truth annotations/sequences-dev.zip --protocol davis2017)
images=(--truth annotations/instances-dev.zip --protocol places2017)
[ -d results ] || python -m zipfile -e examples/sequences-dev/strong.zip results
segjudge score examples/sequences-dev/strong.zip "${videos[@]}" --json "$out/zip.json" --save "$out/strong"
segjudge score results "${videos[@]}" --json "$out/folder.json"
segjudge score examples/sequences-dev/lagging.zip "${videos[@]}" --save "$out/lagging"
segjudge score examples/instances-dev/sharp.json "${images[@]}" --json "$out/coco.json"
segjudge report examples/sequences-dev/strong.zip "${videos[@]}" --out "$out/page.html"
(cd "$out" && segjudge compare strong lagging --json methods.json --out methods.html)
(cd "$out" && segjudge rank strong lagging --out ranking.html)
mkdir -p "$out/dataset/Annotations/480p" "$out/dataset/ImageSets/2017"
cp -r results/* "$out/dataset/Annotations/480p"
ls results > "$out/dataset/ImageSets/2017/val.txt"
segjudge pack --layout davis2017 --root "$out/dataset" --out "$out/truth.zip"
segjudge score results --truth "$out/truth.zip" --protocol davis2017 --json "$out/packed.json"
segjudge compress examples/sequences-dev/strong.zip --out "$out/small.zip"
