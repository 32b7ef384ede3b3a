#!/usr/bin/python3
"""`weir plan` says what goes into the kernel and what does not, and why; nobody needs privileges for that."""
import os, re, socket, subprocess

import weirtest as t


def plan(text, *prefix, stdin=subprocess.DEVNULL):
    done = subprocess.run([*prefix, t.WEIR, "plan", "-e", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=stdin, text=True)
    assert done.returncode == 0, f"{text}: {done.returncode} {done.stderr}"
    return re.findall(r"^into the kernel, by (\w+): (.*)$", done.stdout, re.M)


def said_of(stages, source="afpacket eth1"):
    (name, line), = plan(f"tap = {source}; {stages}")
    assert name == "tap"
    return line


def test_what_goes_into_the_kernel():
    rows = [
        ('tap -> bpf "tcp port 80" -> null', r"bpf:1; \d+ instructions; no frame with a VLAN tag matches, "
                                             "vlan=skip would look behind tags"),
        ('tap -> bpf "vlan 29" -> null', r"bpf:1; \d+ instructions, \d+ of them for frames with a VLAN tag"),
        ('tap -> bpf "tcp" vlan=skip -> null', r"bpf:1; \d+ instructions, \d+ of them for frames with a VLAN tag"),
        ('keys = bpf "vlan"; tap -> keys -> null; keys.rest -> snaplen 128 -> null', r"keys, snaplen:1; .*"),
        ('keys = bpf "vlan"; tap -> keys -> null; keys.unfit -> null', r"keys; .*"),
        ('tap -> snaplen 64 -> bpf "vlan" -> null', r"snaplen:1; .*"),
    ]
    for stages, right in rows:
        assert re.fullmatch(right, said_of(stages)), f"{stages}: {said_of(stages)}"


def test_what_does_not_and_why():
    rows = [
        ("tap -> null", "nothing, since null:1 wants every packet whole"),
        ("disk = pcap /tmp/x.pcap; tap -> bpf tcp -> null; tap -> disk",
         "nothing, since disk wants every packet whole"),
        ("tap -> queue 1MiB -> bpf tcp -> null", "nothing, since queue:1 wants every packet whole"),
        ('tap -> bpf "ip[0] / ip[1] = 1" -> null',
         "nothing, since bpf:1 wants every packet whole: its filter divides by a number that a packet gives"),
        ('tap -> bpf "ip protochain 6" -> null',
         "nothing, since bpf:1 wants every packet whole: its filter is none that the kernel takes, as protochain is "
         "not"),
        ('tap -> snaplen 64 -> null; tap -> bpf "ip[ip[2:4]:4] = 7" -> null',
         "nothing, since a filter may look at any byte of a packet"),
    ]
    for stages, right in rows:
        assert said_of(stages) == right, f"{stages}: {said_of(stages)}"
    assert said_of('tap -> bpf "tcp" -> null', "afpacket eth1 pushdown=no") == "nothing, since pushdown=no"


def test_a_program_that_is_too_long():
    """Of many filters, since libpcap takes long for a large one."""
    hosts = [" or ".join(f"host 10.{n}.{i}.7" for i in range(40)) for n in range(30)]
    line = said_of("; ".join(f'tap -> bpf "{text}" -> null' for text in hosts))
    assert re.fullmatch(r"nothing, since as a program it would have \d+ instructions, and the kernel takes 4096",
                        line), line


def test_what_the_kernel_has_no_room_for():
    """Less and less of it goes in, the smaller the limit, which is one of the namespace."""
    t.need_root()
    stages = [r"bpf:1; \d+ instructions, \d+ of them for frames with a VLAN tag",
              r"bpf:1; \d+ instructions; frames with a VLAN tag are passed up whole, "
              r"since a program for both kinds would be too long",
              r"nothing, since the program is too long: \d+ instructions, the limit is net.core.optmem_max=\d+"]
    seen = []
    with t.Namespace() as ns:
        for limit in range(4000, 600, -100):
            if ns.run("sysctl", "-qw", f"net.core.optmem_max={limit}", check=False).returncode:
                raise t.Skip("this kernel has no net.core.optmem_max for each namespace")
            (_, line), = plan('tap = afpacket eth1; tap -> bpf "vlan 29 and tcp" -> null',
                              "ip", "netns", "exec", str(ns))
            seen += [i for i, stage in enumerate(stages) if re.fullmatch(stage, line)]
    assert len(seen) == 34 and seen == sorted(seen) and set(seen) == {0, 1, 2}, seen


def test_nobody_needs_privileges():
    t.need_root()
    t.need_program("setpriv")
    (_, line), = plan('tap = afpacket eth1; tap -> bpf "vlan" -> null',
                      "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    assert line.startswith("bpf:1; "), line


def test_afxdp():
    if not os.path.exists(f"{t.BUILD}/plugins/afxdp.so"):
        raise t.Skip("the afxdp plugin is not built")
    assert said_of('tap -> bpf "tcp" -> snaplen 64 -> null', "afxdp eth1").startswith("bpf:1, snaplen:1; ")
    assert said_of("tap -> null", "afxdp eth1") == "nothing, since null:1 wants every packet whole"


def test_libpcap():
    """Which does not touch a socket that is standard input."""
    if not os.path.exists(f"{t.BUILD}/plugins/libpcap.so"):
        raise t.Skip("the libpcap plugin is not built")
    ours, its = socket.socketpair()
    (_, line), = plan('tap = libpcap any; tap -> bpf "tcp" -> null', stdin=its)
    assert line == "nothing, since what its device can do is known once that is open", line
    ours.send(b"x")
    assert its.recv(1, socket.MSG_DONTWAIT) == b"x"


t.main()
