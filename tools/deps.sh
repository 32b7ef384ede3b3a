#!/bin/sh
# Installs from Debian's packages what the build and the tests need and this machine lacks.
set -eu
packages='gcc make pkg-config git libc6-dev libglib2.0-dev libjson-glib-dev libcap-ng-dev libpcap-dev libzmq3-dev
libsodium-dev libxxhash-dev libbpf-dev libxdp-dev bpftool xdp-tools libcriterion-dev python3 python3-zmq tcpdump tshark tcpreplay netsniff-ng
ethtool iproute2 nftables procps
util-linux libcap2-bin iputils-ping argus-server softflowd iperf3 curl clang clang-format libclang-rt-14-dev jq groff-base'
# shellcheck disable=SC2086
missing=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' $packages 2>/dev/null |
	awk -v all="$(echo $packages)" '$2 == "installed" { have[$1] = 1 }
		END { n = split(all, want, " "); for (i = 1; i <= n; i++) if (!(want[i] in have)) print want[i] }')
[ -n "$missing" ] || exit 0
echo "installing from Debian:" $missing
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing
