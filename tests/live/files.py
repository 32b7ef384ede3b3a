#!/usr/bin/python3
"""Files of a live capture: rotation and stopping on the clock, what an idle capture costs, what only a capture knows."""
import os, struct, subprocess, time
from weirtest import SANITIZED, Namespace, Run, main, need_program, need_root, processor_seconds, tempdir, wait_until
from capfiles import EPB, blocks_of, captured, options_of, statistics_of


def visible(folder):
    return sorted(os.listdir(folder))


def send_one(ns, interface):
    """One frame of a type that nobody answers, from a raw socket."""
    ns.run("/usr/bin/python3", "-c", "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); "
           f"s.bind(('{interface}', 0)); s.send(b'\\xff' * 6 + b'\\2' + bytes(5) + b'\\x88\\xb5' + bytes(50))")


def test_time_rotation_without_traffic():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        a, b = ns.veth()
        run = Run("-e", f"disk = pcap {folder}/%s.pcap rotate-time=2s; afpacket {b} -> disk", netns=ns)
        run.wait_for("running")
        for number in range(2):
            send_one(ns, a)
            wait_until(lambda: len([n for n in visible(folder) if n.endswith(".pcap")]) == number + 1, 10,
                       "the file of an interval that is over")
            behind = time.time() % 2
            assert behind < 0.5 or behind > 1.9, f"published {behind} s after the even second"
        run.stop()
    assert run.status == 0 and run.report["balanced"], run.stderr
    assert len(visible(folder)) == 2, visible(folder)


def test_the_last_packets_before_a_stop_are_in_the_file():
    need_root()
    need_program("tcpdump")
    folder = tempdir()
    with Namespace() as ns:
        a, b = ns.veth()
        for number in range(10):
            run = Run("-e", f"afpacket {b} -> pcap {folder}/{number}.pcapng", netns=ns)
            run.wait_for("running")
            send_one(ns, a)
            run.stop()
            node = run.report["nodes"][-1]
            assert run.report["balanced"] and node["outputs"]["written"]["packets"] == 1, run.stderr


def test_idle_is_idle():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        _, b = ns.veth()
        run = Run("-e", f"in = afpacket {b}; disk = pcap {folder}/x.pcap keep-age=1h rotate-time=1s on-close=true; in -> disk; "
                  f"in -> pcap {folder}/x.pcapng tls-keys={folder}/keys", netns=ns)
        run.wait_for("running")
        before = processor_seconds(run.process)
        time.sleep(3)  # an idle capture is the case under test
        used = processor_seconds(run.process) - before
        run.stop()
    assert used <= (0.3 if SANITIZED else 0.03), f"{used} s of 3 s"


def test_empty_intervals_leave_files_if_told_to():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        _, b = ns.veth()
        run = Run("-e", f"disk = pcap {folder}/%s.pcapng rotate-time=1s empty=always; afpacket {b} -> disk", netns=ns)
        run.wait_for("running")
        wait_until(lambda: len([n for n in visible(folder) if n.endswith(".pcapng")]) >= 3, 20, "empty files")
        run.stop()
    assert run.status == 0 and run.report["balanced"], run.stderr
    times = [int(n.split(".")[0]) for n in visible(folder)]
    assert times == list(range(times[0], times[0] + len(times))), times


def test_stop_time_without_traffic():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        _, b = ns.veth()
        started = time.monotonic()
        run = Run("-e", f"afpacket {b} -> pcap {folder}/x.pcapng stop-time=1s", netns=ns).wait(60)
    assert run.status == 0 and 0.9 < time.monotonic() - started < 20, run.stderr
    assert visible(folder) == ["x.pcapng"]


def test_direction_and_figures_of_a_live_capture():
    need_root()
    folder = tempdir()
    with Namespace() as ns:
        a, b = ns.veth()
        run = Run("-e", f"in = afpacket {b}; disk = pcap {folder}/x.pcapng; in -> disk", netns=ns)
        run.wait_for("running")
        send_one(ns, a)
        send_one(ns, b)
        run.stop()
    packets = [body for kind, body in blocks_of(f"{folder}/x.pcapng") if kind == EPB]
    flags = [options_of(body, 20 + (len(captured(body)) + 3) // 4 * 4)[2] for body in packets]
    assert [struct.unpack("<I", value)[0] & 3 for value in flags] == [1, 2], flags  # in, out
    source, disk = run.report["nodes"]
    (interface, figures), = statistics_of(f"{folder}/x.pcapng")
    wanted = {"received": source["counters"]["kernel-packets"], "dropped": source["counters"]["kernel-drops"],
              "accepted": disk["in"]["packets"], "delivered": disk["outputs"]["written"]["packets"]}
    assert interface == 0 and wanted["accepted"] == 2 and {k: figures[k] for k in wanted} == wanted, figures
    assert figures.get("missed") == run.report.get("nic"), figures


TLS = """
import socket, ssl, sys, threading
cert, keys = sys.argv[1:]
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain(cert)
client = ssl.create_default_context(cafile=cert)
client.check_hostname, client.keylog_filename = False, keys
listener = socket.create_server(("127.0.0.1", 4433))

def serve():
    with server.wrap_socket(listener.accept()[0], server_side=True) as connection:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\n\\r\\nsecret")

thread = threading.Thread(target=serve)
thread.start()
with client.wrap_socket(socket.create_connection(("127.0.0.1", 4433))) as connection:
    connection.sendall(b"GET /hidden HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
    assert b"secret" in connection.recv(1000)
thread.join()
"""


def test_analyzers_can_read_tls():
    need_root()
    need_program("openssl", "tshark")
    folder = tempdir()
    cert, keys, path = f"{folder}/cert.pem", f"{folder}/keys", f"{folder}/x.pcapng"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2",
                    "-keyout", cert + ".key", "-out", cert], check=True, stderr=subprocess.DEVNULL)
    with open(cert, "a") as both, open(cert + ".key") as key:
        both.write(key.read())
    with Namespace() as ns:
        run = Run("-e", f"disk = pcap {path} tls-keys={keys}; afpacket lo -> disk", netns=ns)
        run.wait_for("running")
        ns.run("/usr/bin/python3", "-c", TLS, cert, keys)
        wait_until(lambda: os.path.exists(f"{path}.part") and b"HANDSHAKE_TRAFFIC" in open(f"{path}.part", "rb").read(), 20,
                   "the keys in the file")
        run.stop()
    assert run.status == 0 and run.report["balanced"] and run.report["lost"] == 0, run.stderr
    done = subprocess.run(["tshark", "-r", path, "-d", "tcp.port==4433,tls", "-Y", "http", "-T", "fields", "-e", "http.request.uri",
                           "-e", "http.response.code"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.stdout.split() == ["/hidden", "200"], done.stdout + done.stderr


main()
