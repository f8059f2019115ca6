# lib_browser.sh - sourced by the scripts here, behind lib_web.sh: a headless Chromium, told what to do (lib_page.py).
for need in chromium chromedriver; do
    command -v $need >/dev/null || { say "skipped: no $need (Debian: chromium chromium-driver python3-selenium)"; exit 77; }
done
/usr/bin/python3 -c 'import selenium' 2>/dev/null || { say "skipped: no python3-selenium"; exit 77; }

hear() {
    local answer
    read -r -t 180 answer <&"$page_out" || fail "the browser does not answer: $1"
    [ "${answer%% *}" = ok ] || fail "$1: $answer"
    [ "$answer" = ok ] || say "$1: ${answer#ok }"
}
page() {
    printf '%s\n' "$*" >&"$page_in"
    hear "$*"
}
browser_start() {
    coproc PAGE { exec /usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/lib_page.py" 2>>"$dir/page.log"; }
    page_in=${PAGE[1]} page_out=${PAGE[0]}
    started+=("$PAGE_PID")
    hear "the browser's start"
}

# The rules of axe-core, from a package of the Python index that carries them.
axe=$SOURCE_DIR/build/axe
if [ ! -x "$axe/bin/python" ] || [ -z "$(find "$axe" -name axe.min.js)" ]; then
    { python3 -m venv "$axe" && "$axe/bin/pip" install -q --no-deps axe-playwright-python==0.1.8; } >"$dir/axe.log" 2>&1 ||
        say "not tried: axe-core, the package index did not answer"
fi
export AXE=$(find "$axe" -name axe.min.js 2>/dev/null | head -n 1)
