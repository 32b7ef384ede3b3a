#!/usr/bin/python3
"""An installed Weir, and a plugin's author outside this repository: installed headers, pkg-config, nothing else."""
import glob, os, resource, shutil, subprocess
from weirtest import BUILD, SANITIZED, TOP, Namespace, Skip, main, need_program, need_root, tempdir

VARIANT = os.path.basename(BUILD).partition("-")[2] or "release"

PLUGIN = r"""
#include <weir/plugin.h>

static void every_second_judge(struct weir_self *self, struct weir_packet *packets, unsigned n)
{
	uint64_t *seen = self->lane;

	for (unsigned i = 0; i < n; i++)
		packets[i].verdict = (*seen)++ % 2;
}

static const struct weir_output outputs[] = {
	{"kept", WEIR_PASS, WEIR_PACKETS, "the first, third, and so on"},
	{"other", WEIR_DISCARD, WEIR_PACKETS, "the rest"},
	{0},
};

WEIR_EXPORT const struct weir_plugin weir_plugin = {
	WEIR_HEAD,
	.kind = WEIR_STAGE,
	.name = "every-second",
	.version = "1",
	.summary = "keeps every second packet",
	.example = "tap -> every-second -> disk",
	.outputs = outputs,
	.lane_size = sizeof(uint64_t),
	.judge = every_second_judge,
};
"""
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def sh(*command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=TOP, timeout=300, env={**os.environ, **(env or {})})
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_each_header_compiles_alone():
    need_program("cc", "clang++")
    headers = sorted(glob.glob(os.path.join(TOP, "include", "weir", "*.h")))
    assert headers
    for header in headers:
        for compiler, flags in ((["cc"], ["-xc", "-std=c11"]), (["clang++"], ["-xc++", "-std=c++11"])):
            # By inclusion: a header as the main file brings warnings of its own.
            source = os.path.join(tempdir(), "alone.c")
            with open(source, "w") as file:
                file.write(f"#include <weir/{os.path.basename(header)}>\nint alone(void);\n")
            sh(*compiler, "-fsyntax-only", "-Iinclude", *flags, *WARNINGS, source)


def test_a_plugin_built_with_pkg_config_alone():
    need_program("cc", "pkg-config", "make")
    prefix, folder = tempdir(), tempdir()
    sh("make", "-s", "install", f"VARIANT={VARIANT}", f"PREFIX={prefix}")
    source = os.path.join(folder, "every-second.c")
    with open(source, "w") as file:
        file.write(PLUGIN)
    flags = sh("pkg-config", "--cflags", "--libs", "weir",
               env={"PKG_CONFIG_PATH": os.path.join(prefix, "lib", "pkgconfig")}).split()
    sh("cc", "-std=c11", *WARNINGS, "-Wno-missing-field-initializers", "-shared", "-fPIC",
       "-o", os.path.join(folder, "every-second.so"), source, *flags)
    weir = os.path.join(prefix, "bin", "weir")
    listed = sh(weir, "plugins", "--plugin-path", folder)
    assert "\n  every-second " in listed and "\n  snaplen " in listed and "Refused" not in listed, listed
    assert os.path.join(prefix, "lib", "weir", "plugins") in sh(weir, "plugins", "snaplen")
    sh(weir, "check", "--plugin-path", folder, "-e",
       "k = every-second; pcap-replay x.pcap -> k -> null; k.other -> null")
    sh("make", "-s", "uninstall", f"VARIANT={VARIANT}", f"PREFIX={prefix}")
    assert not files_below(prefix), files_below(prefix)


def test_capabilities_of_the_program_instead_of_root():
    """What the loader does not trust then, $ORIGIN and the environment, is not needed."""
    need_root()
    need_program("make", "setcap", "setpriv")
    if SANITIZED:
        raise Skip("a program with capabilities cannot look for its own leaks")
    prefix = tempdir()
    sh("make", "-s", "install", f"VARIANT={VARIANT}", f"PREFIX={prefix}")
    os.chmod(prefix, 0o755)
    sh("setcap", "cap_net_raw=ep", f"{prefix}/bin/weir")
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    with Namespace() as ns:
        for environment in ({}, {"WEIR_PLUGIN_PATH": "/nowhere"}):
            done = ns.run(*nobody, f"{prefix}/bin/weir", "run", "-e", "afpacket lo -> null", "--duration", "100ms", check=False,
                          env={**os.environ, **environment})
            assert done.returncode == 0 and "balanced" in done.stderr, done.stderr


def test_a_user_s_build_is_run_by_root():
    need_root()
    need_program("make", "cc")
    prefix, folder = tempdir(), tempdir()
    sh("make", "-s", "install", f"VARIANT={VARIANT}", f"PREFIX={prefix}")
    sh("chown", "-R", "65534", prefix)
    shutil.copy(f"{prefix}/lib/weir/plugins/null.so", f"{folder}/foreign.so")
    os.chown(f"{folder}/foreign.so", 65533, -1)
    said = sh(f"{prefix}/bin/weir", "plugins", "--plugin-path", folder)
    assert said.partition("\nRefused\n")[2].count("\n") == 1, said
    assert f"{folder}/foreign.so: belongs to user 65533; expected root or user 0" in said and "\n  null " in said, said


def files_below(folder):
    return sorted(os.path.relpath(path, folder) for path in glob.glob(os.path.join(folder, "**"), recursive=True)
                  if os.path.isfile(path))


def test_folders_of_a_distribution():
    """Files below DESTDIR, for other folders than are there by default; plugins of others outlive us."""
    need_program("make")
    destdir, library = tempdir(), "usr/lib/x86_64-linux-gnu"
    folders = [f"VARIANT={VARIANT}", f"DESTDIR={destdir}", "PREFIX=/usr", f"LIBDIR=/{library}"]
    sh("make", "-s", "install", *folders)
    found = files_below(destdir)
    for path in ("usr/bin/weir", library + "/libweir.so", library + "/weir/plugins/null.so", library + "/pkgconfig/weir.pc",
                 "usr/include/weir/plugin.h", "usr/share/man/man1/weir.1", "usr/share/man/man7/weir-language.7"):
        assert path in found, f"{path} is not among {found}"
    assert f"{destdir}/{library}/weir/plugins/null.so" in sh(f"{destdir}/usr/bin/weir", "plugins", "null")
    with open(f"{destdir}/{library}/pkgconfig/weir.pc") as file:
        assert destdir not in file.read()
    foreign = library + "/weir/plugins/foreign.so"
    with open(os.path.join(destdir, foreign), "w"):
        pass
    sh("make", "-s", "uninstall", *folders)
    assert files_below(destdir) == [foreign], files_below(destdir)


def test_a_plugin_whose_library_is_missing_is_left_out():
    need_program("make")
    said = sh("make", "-n", f"VARIANT={VARIANT}", "PKGS_dedup=no-such-library")
    assert "left out: plugin dedup, which needs no-such-library" in said, said
    assert "plugin bpf" not in said, said


def test_nothing_to_install_takes_no_time():
    need_program("make", "dpkg-query")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = sh("make", "--no-print-directory", "deps")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert said == "" and after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1, said


main()
