# pkg-config packages of each plugin; a plugin whose packages are not there is left out with a message.
PKGS_bpf        := libpcap
PKGS_zmq        := libzmq
PKGS_zmq-source := libzmq
PKGS_dedup      := libxxhash
