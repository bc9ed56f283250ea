"""Whether the server of this container is well: its health on stdout, and exit code 0 or 1. The port may be given."""

import http.client
import sys


def main() -> int:
    """Ask once, on loopback, past any proxy of the environment."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8000
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
    try:
        connection.request("GET", "/health")
        response = connection.getresponse()
        print(response.read().decode())
        return int(response.status != 200)
    except OSError as error:
        print(f"no answer at port {port}: {error}")
        return 1
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
