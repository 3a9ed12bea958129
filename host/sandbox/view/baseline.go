package view

import "runtime"

// A base is a path that every process may use, whatever its layers say: without
// it hardly a program starts, and nothing in it tells who the user is.
type base struct {
	path   string
	rights Rights
	where  where
}

// where a base holds.
type where uint8

const (
	both    where = iota
	private       // only in a private root
	shared        // only in the host's own root
)

// baseline is the base of a platform.
func baseline() []base {
	if runtime.GOOS == "darwin" {
		return darwin
	}
	return linux
}

// What is not here, on purpose: /etc/resolv.conf and /etc/hosts (there is no
// network but the proxy, and they name the one that the host is in), /etc/passwd
// and /etc/group (they name everybody with an account; a private root has
// others), /etc/hostname, /etc/machine-id, /etc/gitconfig (it may hold
// credentials), the private halves of /etc/ssl and /etc/pki, and the rest of
// /usr/share, which a manifest can ask for. /proc and /dev of a private root
// are its own; of the host's only what names no process.
var linux = []base{
	// The loader's libraries.
	{"/lib", Read, both},
	{"/lib32", Read, both},
	{"/lib64", Read, both},
	{"/libx32", Read, both},
	{"/usr/lib", Read, both},
	{"/usr/lib32", Read, both},
	{"/usr/lib64", Read, both},
	{"/usr/libx32", Read, both},
	{"/usr/local/lib", Read, both},
	{"/usr/local/lib64", Read, both},
	// Where it finds them.
	{"/etc/ld.so.cache", Read, both},
	{"/etc/ld.so.conf", Read, both},
	{"/etc/ld.so.conf.d", Read, both},
	{"/etc/ld-musl-x86_64.path", Read, both},
	{"/etc/ld-musl-aarch64.path", Read, both},
	// The loader itself: the only files that may be executed.
	{"/lib64/ld-linux-x86-64.so.2", Read | Exec, both},
	{"/lib/ld-linux-aarch64.so.1", Read | Exec, both},
	{"/lib/ld-linux-armhf.so.3", Read | Exec, both},
	{"/lib/ld-linux-riscv64-lp64d.so.1", Read | Exec, both},
	{"/lib/ld-linux.so.2", Read | Exec, both},
	{"/lib64/ld64.so.2", Read | Exec, both},
	{"/lib/ld-musl-x86_64.so.1", Read | Exec, both},
	{"/lib/ld-musl-aarch64.so.1", Read | Exec, both},
	// Languages, time zones, terminals, file types: the same on all machines,
	// but for the time zone, which every file name and log line shows anyway.
	{"/usr/share/locale", Read, both},
	{"/usr/share/zoneinfo", Read, both},
	{"/usr/share/terminfo", Read, both},
	{"/usr/share/misc", Read, both},
	{"/etc/localtime", Read, both},
	{"/etc/timezone", Read, both},
	{"/etc/terminfo", Read, both},
	{"/etc/mime.types", Read, both},
	{"/etc/magic", Read, both},
	// How names are looked up: files first, no more.
	{"/etc/nsswitch.conf", Read, both},
	{"/etc/protocols", Read, both},
	{"/etc/services", Read, both},
	// Which of several programs or libraries a name stands for: links.
	{"/etc/alternatives", Read, both},
	// Whom to trust: certificates without keys.
	{"/etc/ssl/certs", Read, both},
	{"/etc/ssl/cert.pem", Read, both},
	{"/etc/ssl/openssl.cnf", Read, both},
	{"/etc/pki/tls/certs", Read, both},
	{"/etc/pki/tls/cert.pem", Read, both},
	{"/etc/pki/tls/openssl.cnf", Read, both},
	{"/etc/pki/ca-trust/extracted", Read, both},
	{"/etc/ca-certificates/extracted", Read, both},
	{"/etc/crypto-policies", Read, both},
	{"/usr/share/ca-certificates", Read, both},
	{"/usr/share/crypto-policies", Read, both},
	{"/usr/share/pki", Read, both},
	// Devices that hold nothing.
	{"/dev/null", Read | Write, both},
	{"/dev/zero", Read | Write, both},
	{"/dev/full", Read | Write, both},
	{"/dev/random", Read | Write, both},
	{"/dev/urandom", Read | Write, both},
	{"/dev", Read, private},
	{"/dev/shm", Read | Write, private},
	// What programs ask the kernel at their start. Nothing in /proc needs to
	// be written, and user 0 of the host could with /proc/sys.
	{"/proc", Read, private},
	{"/proc/cpuinfo", Read, shared},
	{"/proc/filesystems", Read, shared},
	{"/proc/loadavg", Read, shared},
	{"/proc/meminfo", Read, shared},
	{"/proc/stat", Read, shared},
	{"/proc/uptime", Read, shared},
	{"/proc/version", Read, shared},
	{"/proc/sys/kernel/cap_last_cap", Read, shared},
	{"/proc/sys/kernel/ngroups_max", Read, shared},
	{"/proc/sys/kernel/osrelease", Read, shared},
	{"/proc/sys/kernel/pid_max", Read, shared},
	{"/proc/sys/vm/max_map_count", Read, shared},
	{"/proc/sys/vm/overcommit_memory", Read, shared},
	{"/sys/devices/system/cpu/online", Read, shared},
	{"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", Read, shared},
}

var darwin = []base{
	{"/usr/lib", Read | Exec, shared}, // dyld is there
	{"/System/Library", Read, shared},
	{"/System/Volumes/Preboot/Cryptexes/OS", Read, shared},
	{"/Library/Apple", Read, shared},
	{"/private/var/db/dyld", Read, shared},
	{"/private/var/db/timezone", Read, shared},
	{"/private/etc/localtime", Read, shared},
	{"/private/etc/ssl", Read, shared},
	{"/usr/share/locale", Read, shared},
	{"/usr/share/zoneinfo", Read, shared},
	{"/usr/share/terminfo", Read, shared},
	{"/dev/null", Read | Write, shared},
	{"/dev/zero", Read | Write, shared},
	{"/dev/random", Read | Write, shared},
	{"/dev/urandom", Read | Write, shared},
}

// topLinks are names of the root directory that are links where /usr is merged.
var topLinks = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// standIns are the files of Options.Etc.
var standIns = []string{"passwd", "group", "hosts"}
