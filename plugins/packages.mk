# pkg-config packages of each plugin; a plugin whose packages are not there is left out with a message.
PKGS_bpf        := libpcap
PKGS_zmq        := libzmq
PKGS_zmq-source := libzmq
PKGS_dedup      := libxxhash
PKGS_libpcap    := libpcap
PKGS_afxdp      := libxdp libbpf

# The same of programs, and of sources that a plugin shares with another.
CLANG       := clang
BPFTOOL     := $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
TOOLS_afxdp := $(CLANG) $(BPFTOOL)
ALSO_afxdp  := $(patsubst %,plugins/afpacket/%.c,link memory processors)
