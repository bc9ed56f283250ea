"""Starts a program through a fork server's socket and ends as it ends: ``python -I -S fork_client.py SOCKET NAME ...``.

It stands for ``python -m NAME ...`` where git or a shell starts the program, and there is no C compiler for
``fork_client.c``. It imports modules in C only, and so takes some 15 ms.
"""

import marshal
import posix
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket
from _struct import pack, unpack

address, name, *arguments = sys.argv[1:]
request = {"program": (name, arguments, []), "cwd": posix.getcwd(), "environment": posix.environ, "session": False}
body = marshal.dumps(request)
connection = socket(AF_UNIX, SOCK_STREAM)
connection.connect(address)
connection.sendmsg([pack("!I", len(body))], [(SOL_SOCKET, SCM_RIGHTS, pack("3i", 0, 1, 2))])
while body:
    body = body[connection.send(body) :]
reply = connection.recv(4)
sys.exit(unpack("!i", reply)[0] if len(reply) == 4 else 255)
