"""Whether a command ended as what it said on standard error tells."""

import subprocess

REFUSED = -1
"""Usage errors, which click shows, end with 2; other errors with the code of their kind."""

_OTHERS = (3, 4, 5)


def check_exit(done: subprocess.CompletedProcess[str], code: int) -> None:
    """Compare the exit code with what was wanted."""
    said = done.stdout + done.stderr
    if code != REFUSED:
        assert done.returncode == code, said
    elif done.returncode == 2:
        assert "Error: " in done.stderr, said
    else:
        assert done.returncode in _OTHERS, said
        assert "error: " in done.stderr, said
