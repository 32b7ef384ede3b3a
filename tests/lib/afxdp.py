"""For the live tests of AF_XDP."""
import ctypes, mmap, os, socket, struct

import frames as f
import weirtest as t

MODES = ("native", "skb")
AF_XDP, SOL_XDP = 44, 283
XDP_RX_RING, XDP_UMEM_REG, XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING = 2, 4, 5, 6


def need_xdp():
    t.need_root()
    if not os.path.exists(os.path.join(t.BUILD, "plugins", "afxdp.so")):
        raise t.Skip("the plugin afxdp was left out of the build")
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
    except OSError as why:
        raise t.Skip(f"this kernel has no AF_XDP: {why}")


def numbered(n, flows=64):
    return [f.ether(f.IP, f.ipv4(17, f.udp(struct.pack(">I", i), sport=1000 + i % flows))) for i in range(n)]


class Taken:
    """A queue that somebody else's socket holds: with Taken(ns, "veth1", 0): …"""

    def __init__(self, ns, interface, queue):
        with f.inside(ns):
            self.socket = socket.socket(AF_XDP, socket.SOCK_RAW)
            index = socket.if_nametoindex(interface)
        self.memory = mmap.mmap(-1, 4096 * 16)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.socket.setsockopt(SOL_XDP, XDP_UMEM_REG, struct.pack("QQIII4x", address, len(self.memory), 4096, 0, 0))
        for ring in (XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING):
            self.socket.setsockopt(SOL_XDP, ring, 16)
        name = struct.pack("HHIII", AF_XDP, 0, index, queue, 0)
        if ctypes.CDLL(None, use_errno=True).bind(self.socket.fileno(), name, len(name)):
            raise OSError(ctypes.get_errno(), "bind")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
