"""Entry point of the command `fabula` and of `python -m fabula`."""

import sys


def main() -> None:
    """Run the command line. On Windows, print one sentence and exit with code 2.

    Locks need `fcntl`, and resource limits for parsers of untrusted files need `resource`. Windows
    has neither, so this is checked before importing anything that needs them.
    """
    if sys.platform == "win32":
        print("error: Fabula runs on Linux and macOS; on Windows, use it in WSL", file=sys.stderr)
        sys.exit(2)
    from fabula.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
