"""For the live tests of AF_XDP."""
import os, struct

import frames as f
import weirtest as t

MODES = ("native", "skb")


def need_xdp():
    t.need_root()
    if not os.path.exists(os.path.join(t.BUILD, "plugins", "afxdp.so")):
        raise t.Skip("the plugin afxdp was left out of the build")


def numbered(n, flows=64):
    return [f.ether(f.IP, f.ipv4(17, f.udp(struct.pack(">I", i), sport=1000 + i % flows))) for i in range(n)]
