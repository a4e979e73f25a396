#!/bin/sh
# The version stands in CMakeLists.txt. What repeats it, the manual page and the list of changes, says the same, and so do what is built.
#   tests/version.sh VERSION BUILD
set -eu
version=$1 build=$2
same() {
  [ "$2" = "$version" ] || { echo "version: $1 says '$2', CMakeLists.txt $version" && exit 1; }
}
same docs/axle.1 "$(sed -n 's/^\.TH AXLE 1 "" "axle \([^"]*\)".*/\1/p' docs/axle.1)"
same CHANGELOG.md "$(sed -n 's/^## //p' CHANGELOG.md | head -1)"
same "axle --version" "$("$build/axle" --version | sed 's/^axle //')"
same version.py "$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$build/python/jax_plugins/axle/version.py")"
same METADATA "$(sed -n 's/^Version: //p' "$build/generated/wheel/METADATA")"
same axle.pc "$(sed -n 's/^Version: //p' "$build/axle.pc")"
