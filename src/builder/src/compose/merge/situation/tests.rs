use super::*;

const UPGRADE: Arguments<'static> = Arguments { action: "upgrade", version: "2.0-1" };

fn left(script: &str) -> String {
    reached(script, UPGRADE)
}

#[test]
fn branches_that_are_not_reached_go() {
    for (script, expected) in [
        ("if [ \"$1\" = remove ]; then\n  a\nelse\n  b\nfi\nc", "b\nc\n"),
        ("if [ \"$1\" = \"remove\" ] ; then # gone\n\tif x; then y; fi\nfi", ""),
        ("if [ -n \"$2\" ]\nthen\na\nelif [ -e /x ]; then\nb\nelse\nc\nfi", "a\n"),
        (
            "if [ \"$1\" = configure ]; then\na\nelif [ -e /x ]; then\nb\nelse\nc\nfi",
            "if [ -e /x ]; then\nb\nelse\nc\nfi\n",
        ),
        (
            "if [ -e /x ]; then\na\nelif [ \"$1\" = upgrade ]; then\nb\nelse\nc\nfi",
            "if [ -e /x ]; then\na\nelse\nb\nfi\n",
        ),
        ("if [ -z \"${DPKG_ROOT:-}\" ] && [ -d /run/systemd/system ]; then\na\nfi", ""),
        ("if [ -e /x ] && [ \"$1\" = remove ]; then\na\nfi", ""),
        ("if [ \"$1\" = remove -o \"$1\" = upgrade ]; then\na\nfi", "a\n"),
        ("if [ ! \"$1\" = remove -a -n \"$2\" ]; then\na\nfi", "a\n"),
        ("if dpkg --compare-versions \"$2\" lt-nl '1.9~'; then\na\nfi", ""),
        ("if ! dpkg --compare-versions -- \"$2\" lt 1.9; then\na\nfi", "a\n"),
        ("case \"$1\" in\n  remove|purge)\n a\n ;;\n up*) b;;\n *)\n c\n exit 1\n ;;\nesac", "b\n"),
        ("case $1 in\n(remove) a ;;\n# none\n*)\nif [ \"$2\" = 2.0-1 ]; then\nb\nfi\n;;\nesac\nd", "b\nd\n"),
        ("case \"$1\" in\nupgrade)\nif [ -e /x ]; then\na\nfi\n;;\nesac", "if [ -e /x ]; then\na\nfi\n"),
        ("if [ \"$1\" = upgrade ]; then\nexit 0\nfi\na", ""),
        ("if [ -e /x ]; then\nexit 0\nfi\na", "if [ -e /x ]; then\nexit 0\nfi\na\n"),
        ("a \\\n  b", "a b\n"),
        ("if [ \"$1\" = upgrade ] \\\n && [ -n \"$2\" ]; then\na\nfi", "a\n"),
    ] {
        assert_eq!(left(script), expected, "{script}");
    }
}

/// A condition that changes something is no condition that is known, whatever else is in it.
#[test]
fn what_may_do_something_stays() {
    for script in [
        "if rm x && [ \"$1\" = remove ]; then\na\nfi\n",
        "if [ -e \"$(rm x)\" ] && [ \"$1\" = remove ]; then\na\nfi\n",
        "if [ \"$1\" = `rm x` ]; then\na\nfi\n",
        "if [ \"$1\" = remove ] > /x; then\na\nfi\n",
        "if [ \"$1\" = 'remove -o $1 = upgrade -o x' ]; then\na\nelse\nb\nfi\n",
        "if [ \"$1\" = \"x ] || [ 1 = 1 ] || [ y\" ]; then\na\nelse\nb\nfi\n",
        "case \"$3\" in\na)\nb\n;;\nesac\n",
        // Without quotes: no word at all, and the name of a file.
        "if [ -n $DPKG_ROOT ]; then\na\nfi\n",
        "if [ $DPKG_ROOT != x ]; then\na\nelse\nb\nfi\n",
        "if [ \"$1\" = [u]pgrade ]; then\na\nelse\nb\nfi\n",
    ] {
        assert_eq!(left(script), script);
    }
}

#[test]
fn scripts_that_are_not_simple_stay_as_they_are() {
    for script in [
        "cat <<X\nfi\nX\nif [ \"$1\" = remove ]; then\na\nfi\n",
        "f() {\nexit 0\n}\nif [ \"$1\" = remove ]; then\na\nfi\n",
        "for x in a; do\nif [ \"$1\" = remove ]; then\na\nfi\ndone\n",
        "while false; do\n exit 0\ndone\na\n",
        "(\nexit 0\n)\na\n",
        "{\nexit 0\n}\na\n",
        "echo 'a\nif b\n'\nif [ \"$1\" = remove ]; then\na\nfi\n",
        "set -- remove\nif [ \"$1\" = remove ]; then\na\nfi\n",
        "shift\nif [ \"$1\" = remove ]; then\na\nfi\n",
        "a &&\nexit 0\nb\n",
        "a | \nexit 0\nb\n",
        "a && if b; then\nexit 0\nfi\nc\n",
        "if [ \"$1\" = remove ]; then a\nfi\n",
        "case \"$1\" in\nupgrade) a ;&\n*) b;;\nesac\n",
        "case \"$1\" in\n[u]*) a;;\nesac\n",
        // A comment ends with its line, and quotes do not end at a backslash that stands for itself.
        "a # \\\nb\n",
        "a # b \\\nif [ \"$1\" = upgrade ]; then\nexit 0\nfi\n",
        "echo 'a \\\nb'\n",
        "if [ \"$1\" = remove ]; then\nx=\"\\\\\" '\"\nfi\n# ' ; fi ; rm x\n",
        "if [ \"$1\" = remove ]; then\nx=\"$(a \"b\" # c)\"\nfi\n",
        "if [ \"$1\" = remove ]; then\nx=${y:- # }\nfi\n",
        "if [ \"$1\" = remove ]; then\na\rb\nfi\n",
        "if [ \"$1\" = remove ]; then\na\u{2028}fi\nfi\n",
        "a&&{\nexit 0\n}\nb\n",
        "case \"$1\" in\n'up*') a;;\n*) b;;\nesac\n",
        "case \"$1\" in\n\"a) b\") c;;\n*) b;;\nesac\n",
        "if [ -e /x ]; then\na\nelif [ -e /y ]; then\nb\nfi\n",
        "fi\n",
        "a\n;;\n",
    ] {
        assert_eq!(left(script), script);
    }
}
