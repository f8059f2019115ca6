#!/bin/bash
# The list of what a build was made of (SPDX) names each library that the programs load, with its version.
set -euo pipefail
: "${BUILD_DIR:?}" "${MUSTERD:?}" "${MUSTER:?}"
command -v readelf >/dev/null || { echo "skipped: there is no readelf (package binutils)" && exit 77; }
python3 - "$BUILD_DIR/muster.spdx.json" <(for program in "$MUSTERD" "$MUSTER"; do readelf -d "$program"; done) <<'END'
import json, re, sys

document = json.load(open(sys.argv[1]))
assert document["spdxVersion"] == "SPDX-2.3" and document["SPDXID"] == "SPDXRef-DOCUMENT", "no SPDX document"
packages = {package["name"]: package for package in document["packages"]}
for name, package in packages.items():
    assert re.fullmatch(r"[0-9][0-9A-Za-z.+~-]*", package["versionInfo"]), f"{name} has no version"
    assert package["licenseDeclared"] and package["downloadLocation"], name
system = {"libc", "libm", "libasan", "libubsan", "libtsan", "libgcov", "libgcc_s", "libpthread"}
loaded = set()
for line in open(sys.argv[2]):
    found = re.search(r"\(NEEDED\).*\[(lib[^.\]]*)", line)
    if found and found.group(1) not in system:
        loaded.add(found.group(1))
assert len(loaded) >= 5, loaded
missing = [name for name in loaded if name not in packages and name.rstrip("0123456789-") not in packages
           and name.removesuffix("-gnutls") not in packages and not name.startswith("libmuster")]
assert not missing, f"{missing} are loaded and not listed"
related = {relation["relatedSpdxElement"] for relation in document["relationships"]}
assert all(package["SPDXID"] in related for package in packages.values()), "a package stands alone"
print(f"proved: {len(packages)} packages are listed, among them all {len(loaded)} that are loaded")
END
