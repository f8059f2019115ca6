"""A client for the tests of `muster web`: no more than they need, and nothing but the standard library.

  lib_web.py stream URL SECONDS              what a stream tells in that time
  lib_web.py deaf URL COUNT                  opens COUNT streams and never reads; ends with its input
  lib_web.py often URL EVERY_MS COUNT        COUNT requests in that rhythm; prints how many were answered,
                                             how many different answers there were, and the milliseconds it took
  lib_web.py metrics                         checks OpenMetrics on stdin
"""
import http.client
import re
import socket
import sys
import time
import urllib.parse

PATIENCE_S = 60


def connect(url):
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE_S), parts


def stream(url, seconds):
    connection, parts = connect(url)
    connection.request("GET", parts.path)
    answer = connection.getresponse()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        line = answer.readline().decode()
        if not line:
            break
        print(line, end="", flush=True)


def deaf(url, count):
    parts = urllib.parse.urlsplit(url)
    sockets = []
    for _ in range(count):
        one = socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE_S)
        one.sendall(f"GET {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        sockets.append(one)
    print("deaf", flush=True)
    sys.stdin.read()


def often(url, every_ms, count):
    answered, different, begun = 0, set(), time.monotonic()
    for _ in range(count):
        connection, parts = connect(url)
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        different.add(answer.read())
        answered += answer.status == 200
        time.sleep(every_ms / 1000)
    print(answered, len(different), int((time.monotonic() - begun) * 1000))


SAMPLE = re.compile(r'([a-z0-9_]+)(\{([a-z_]+="([^"\\\n]|\\.)*",?)*\})? -?[0-9.e+-]+|[a-z_]+_bucket\{.*\} [0-9]+')
ENDS = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}


def metrics(text):
    """Families are together, declared before, and end as their type says; the last line is # EOF."""
    lines = text.splitlines()
    assert lines and lines[-1] == "# EOF", "no # EOF at the end"
    family, kind, seen = None, None, set()
    for line in lines[:-1]:
        if line.startswith("# TYPE "):
            family, kind = line.split()[2:4]
            assert family not in seen, f"{family} twice"
            seen.add(family)
        elif not line.startswith("# HELP "):
            assert SAMPLE.fullmatch(line), f"not a sample: {line}"
            name = re.split(r"[{ ]", line)[0]
            assert name in [family + end for end in ENDS[kind]], f"{name} among {family}"
    print(len(seen), "families")


def main(verb, *words):
    if verb == "stream":
        stream(words[0], float(words[1]))
    elif verb == "deaf":
        deaf(words[0], int(words[1]))
    elif verb == "often":
        often(words[0], int(words[1]), int(words[2]))
    else:
        metrics(sys.stdin.read())


main(*sys.argv[1:])
