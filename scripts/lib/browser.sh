# Debian's Chromium for the studio's tests.
#   source scripts/lib/browser.sh

# Installs it in continuous integration (CI=true, or another value that is not off) where we are root on Debian; without it the studio's tests skip.
install_browser() {
    [[ -n "${CI:-}" && ! "${CI,,}" =~ ^(0|false|no|off)$ ]] && [ "${DRY_RUN:-0}" != 1 ] && ! command -v chromium >/dev/null || return 0
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 0
    apt-get install -y -qq chromium >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq chromium; } >/dev/null 2>&1 ||
        echo "note: Debian's chromium could not be installed; the studio's tests are skipped" >&2
}
