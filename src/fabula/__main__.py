"""Where the command `fabula` and `python -m fabula` begin."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line. On Windows: one sentence and exit code 2.

    Locks need `fcntl`, and the limits of what reads foreign files need `resource`. Windows has
    neither, so this is said before anything is imported that asks for them.
    """
    if sys.platform == "win32":
        print("error: Fabula runs on Linux and macOS; on Windows, use it in WSL", file=sys.stderr)
        sys.exit(2)
    from fabula.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
