#!/bin/bash
# slow_systemd.sh - the broker as a service of a host, as muster-broker installs it: a systemd of its own, process 1 of some
# namespaces, starts the unit in its sandbox. Without a key the journal says what to do. A job trains on while the service is
# restarted, killed and upgraded, and a purge ends it.
. "$SOURCE_DIR/tests/proc/lib.sh"
. "$SOURCE_DIR/tests/proc/lib_chroot.sh"
chroot_dir=$SOURCE_DIR/build/chroot-systemd
chroot_packages=(systemd dbus procps libzmq5 libczmq4 libpq5 libsqlite3-0 libjansson4 libcurl3-gnutls libmsgpackc2 libxxhash0
    libsodium23 libmicrohttpd12)
chroot_have
cgroups=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
cgroup=$cgroups/muster-test-$$
[ -n "$cgroups" ] && mkdir "$cgroup" 2>/dev/null || skip "no cgroup can be made here"
packages_take

# --- a systemd; its root is pivoted to, since in a chroot nobody may make the user namespace of the unit's sandbox
cat >"$dir/boot.sh" <<'END'
set -e
mkdir "$dir/upper" "$dir/work" "$dir/root"
root=$dir/root
ip link set lo up
ip addr add 192.0.2.1/32 dev lo # with 127.0.0.1 alone getaddrinfo finds no address family
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$dir/upper,workdir=$dir/work" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for name in null zero full random urandom tty; do
    touch "$root/dev/$name"
    mount --bind "/dev/$name" "$root/dev/$name"
done
mkdir "$root/dev/shm" "$root/dev/pts" "$root/given"
mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$dir" "$root/given"
mkdir "$root/run/old"
cd "$root"
pivot_root . run/old
umount -l /run/old
exec env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=multi-user.target
END
dir=$dir lower=$chroot_dir bash -ec 'echo $$ >"$1/cgroup.procs"
    exec unshare -mpnuC --propagation private --fork --kill-child bash "$dir/boot.sh"' - "$cgroup" >"$dir/boot.log" 2>&1 &
holder=$!
started+=("$holder")
inside() {
    nsenter -t "$(pgrep -P "$holder")" -m -p -n -u -C -r -w \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root MUSTER_BROKER=tcp://127.0.0.1:7700 MUSTER_KEY_FILE=/root/words.key "$@"
}
is_up() { [ "$(inside systemctl is-system-running)" = running ]; }
await "systemd" is_up

# --- the service
inside sh -c 'dpkg -i /given/packages/*.deb' >"$dir/dpkg.log" 2>&1 || fail "the packages cannot be installed"
! inside systemctl start musterd 2>"$dir/refused.log" || fail "a broker without keys listens to other hosts"
says "$(inside journalctl -u musterd -o cat --no-pager)" 'this broker has no keys.*muster key add NAME'
inside muster key add words --job words --db /var/lib/muster/muster.db --file /root/words.key >"$dir/key.log"
inside systemctl enable --now musterd >"$dir/enable.log" 2>&1 ||
    fail "systemd does not start the broker: $(inside journalctl -u musterd -o cat --no-pager)"
pid() { inside systemctl show -P MainPID musterd; }
runs_as() { inside sed -n "s/^$1:[[:space:]]*//p" "/proc/$(pid)/status"; }
same "capabilities of the broker" "$(runs_as CapEff)" 0000000000000000
holds "its user" "$(runs_as Uid | cut -f1)" -gt 0

# --- a job, and what befalls a service
inside env MUSTER_CHECKPOINT_DIR=/tmp/checkpoints muster run -n 2 --job words -- /given/minimal </dev/null >"$dir/run.log" 2>&1 &
started+=("$!")
step() { inside muster status words --json | sed -n 's/^ *"step": \([0-9]*\).*/\1/p' | head -n 1; }
moves_on() { # from $from
    local now
    now=$(step) && [ "${now:-0}" -gt "$from" ]
}
trains_on() {
    from=${1:-$(step)}
    await "the job to train on" moves_on
}
trains_on 0
before=$(pid)
inside systemctl restart musterd
trains_on
[ "$(pid)" != "$before" ] || fail "the restart was none"
before=$(pid)
inside systemctl kill -s KILL musterd
is_another() { local now && now=$(pid) && [ "$now" != 0 ] && [ "$now" != "$before" ]; }
await "systemd to start it again" is_another
trains_on
before=$(pid)
inside sh -c 'dpkg -i /given/packages/muster-broker_*.deb' >"$dir/dpkg.log" 2>&1 || fail "the package cannot be upgraded"
is_another || fail "the upgrade left the old program running"
trains_on
same "launches of the job" "$(inside muster status words --json | sed -n 's/^ *"generation": \([0-9]*\).*/\1/p' | head -n 1)" 1
inside muster notify 1 --job words >"$dir/answer"
has_resumed() { inside muster why --job words | grep 'Generation 2 resumed at step .* No step is lost'; }
await "the second launch" has_resumed

# --- its end
inside dpkg --purge muster-broker >"$dir/dpkg.log" 2>&1 || fail "the package cannot be purged"
same "what systemd says of it" "$(inside systemctl is-active musterd)" inactive
if inside sh -c 'ls -d /var/lib/muster /var/lib/private/muster' 2>/dev/null; then fail "the purge left the database"; fi
kill_child "$holder" "systemd"
cgroup_goes() { find "$cgroup" -depth -type d -exec rmdir {} +; }
await "the end of all that ran there" cgroup_goes
finish "a sandboxed service of systemd, which refuses to run without a key, and is restarted, killed, upgraded and purged" \
    "a job trains on meanwhile, and is preempted without a loss"
