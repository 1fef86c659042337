"""The bridge as the official suite can reach it: in front of one backend whose names pass through, for callers without a token.

The suite cannot send a bearer, and the bridge has no switch that lets anyone in. So this program is composed like the product's
own `serve`, but with an authenticator that knows every caller. `open_bridge.py PORT STATE_DIR CONFIG`.
"""

import sys
from pathlib import Path

from bridgehead import app
from bridgehead.config import load
from bridgehead.core import Caller
from bridgehead.core.logs import configure_logs
from bridgehead.identity import LOCAL_OWNER
from bridgehead.surfaces.listener import listen, run_until_signalled


class KnowsEverybody:
    """Takes every caller for the local owner."""

    epoch = 0

    def caller(self, authorization_header: str | None, *, peer_is_loopback: bool) -> Caller:
        """The local owner, whoever calls."""
        return LOCAL_OWNER


def main(port: int, state_dir: Path, config: Path) -> int:
    """Serve until told to stop."""
    configure_logs("info")
    settings = load(config, {})
    listener = listen("127.0.0.1", port)
    return run_until_signalled(lambda stop: app.serve_on(listener, settings, state_dir, KnowsEverybody(), stop=stop))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])))
