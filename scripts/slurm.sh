#!/bin/bash
# A Slurm of one node on this machine, from Debian's packages, with accounting: for tests.
# usage: scripts/slurm.sh install              the packages, and an SSH server's, unless they are there (as root)
#        scripts/slurm.sh start DIR PORT       state and logs below DIR; four ports from PORT on, on loopback alone
#        scripts/slurm.sh stop DIR             ends what start began, by the process ids in DIR; jobs with it
# After start, Slurm's commands use it with SLURM_CONF=DIR/slurm.conf and SLURM_JWT unset.
set -eu -o pipefail
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

die() { echo "slurm: $*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

install() {
	have slurmctld && have slurmd && have slurmdbd && have munged && have mariadbd && have sacct && have sshd && return
	have apt-get || die "missing: Slurm; install slurm-wlm, slurmdbd, munge, mariadb-server and openssh-server by hand"
	[ "$(id -u)" = 0 ] || die "missing: Slurm; run once as root: apt-get install -y --no-install-recommends slurm-wlm slurmdbd munge mariadb-server openssh-server"
	export DEBIAN_FRONTEND=noninteractive LC_ALL=C RUNLEVEL=1 # in runlevel 1 no package starts its server
	local apt=(apt-get -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends)
	"${apt[@]}" install slurm-wlm slurmdbd munge mariadb-server openssh-server >/dev/null 2>&1 ||
		{ "${apt[@]}" update && "${apt[@]}" install slurm-wlm slurmdbd munge mariadb-server openssh-server; } >&2 || die "the packages could not be installed"
}

# launch NAME COMMAND... runs it in a new session and records its process id.
launch() {
	local name=$1
	shift
	setsid "$@" >"$dir/$name.log" 2>&1 </dev/null &
	echo $! >"$dir/$name.pid"
}

# until_ok SECONDS WHAT COMMAND...
until_ok() {
	local left=$(($1 * 10)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		left=$((left - 1))
		[ $left -gt 0 ] || { { for l in "$dir"/*.log; do echo "== $l"; tail -n 10 "$l"; done; } >&2; die "$what is not ready"; }
		sleep 0.1
	done
}

start() {
	dir=$1
	local port=$2 host
	host=$(hostname -s)
	[ "$(id -u)" = 0 ] || die "the daemons of Slurm run jobs as their users, so they need root"
	umask 077 # passwords lie below; what jobs of other users must reach is opened by name
	mkdir -p "$dir"/{state,spool,mysql,munge}
	chmod 755 "$dir" "$dir/munge"
	head -c 128 /dev/urandom >"$dir/munge/key"
	chmod 600 "$dir/munge/key"
	launch munged munged --foreground --force --socket="$dir/munge/socket" --key-file="$dir/munge/key" \
		--pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
	local password
	password=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n')
	# MariaDB runs as the user of its package, never as root, and no login as its root is possible.
	chown mysql:mysql "$dir/mysql"
	mariadb-install-db --no-defaults --datadir="$dir/mysql" --user=mysql --auth-root-authentication-method=normal --skip-test-db >"$dir/mysql.install.log" 2>&1
	printf "ALTER USER IF EXISTS 'root'@'localhost', 'root'@'127.0.0.1', 'root'@'::1', 'root'@'%s' ACCOUNT LOCK;\nCREATE DATABASE IF NOT EXISTS slurm;\nCREATE USER IF NOT EXISTS 'slurm'@'127.0.0.1' IDENTIFIED BY '%s';\nGRANT ALL ON slurm.* TO 'slurm'@'127.0.0.1';\n" "$(hostname | tr A-Z a-z)" "$password" >"$dir/mysql/init.sql"
	chown mysql:mysql "$dir/mysql/init.sql"
	printf '[client]\nhost=127.0.0.1\nport=%s\nuser=slurm\npassword=%s\n' "$port" "$password" >"$dir/mysql.client.cnf"
	launch mariadbd mariadbd --no-defaults --datadir="$dir/mysql" --user=mysql --bind-address=127.0.0.1 --port="$port" \
		--socket="$dir/mysql/socket" --pid-file="$dir/mysql/own.pid" --skip-name-resolve --innodb-buffer-pool-size=64M \
		--innodb-lock-wait-timeout=900 --innodb-flush-log-at-trx-commit=0 --init-file="$dir/mysql/init.sql"
	cat >"$dir/slurmdbd.conf" <<-CONF
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket
		DbdHost=$host
		DbdAddr=127.0.0.1
		DbdPort=$((port + 1))
		SlurmUser=root
		StorageType=accounting_storage/mysql
		StorageHost=127.0.0.1
		StoragePort=$port
		StorageUser=slurm
		StoragePass=$password
		StorageLoc=slurm
		PidFile=$dir/slurmdbd.own.pid
		CommunicationParameters=NoInAddrAny
	CONF
	chmod 600 "$dir/slurmdbd.conf"
	# A job that is requeued waits until its credential has expired: two minutes by default.
	# The node claims more than this machine may have: the samples request 4 cores and 16 GB.
	cat >"$dir/slurm.conf" <<-CONF
		ClusterName=test
		SlurmctldHost=$host(127.0.0.1)
		SlurmctldPort=$((port + 2))
		SlurmdPort=$((port + 3))
		AuthType=auth/munge
		AuthInfo=socket=$dir/munge/socket,cred_expire=20
		SlurmUser=root
		SlurmdUser=root
		StateSaveLocation=$dir/state
		SlurmdSpoolDir=$dir/spool
		SlurmctldPidFile=$dir/slurmctld.own.pid
		SlurmdPidFile=$dir/slurmd.own.pid
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		MpiDefault=none
		JobAcctGatherType=jobacct_gather/none
		AccountingStorageType=accounting_storage/slurmdbd
		AccountingStorageHost=127.0.0.1
		AccountingStoragePort=$((port + 1))
		AccountingStoragePass=$dir/munge/socket
		CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
		ReturnToService=2
		KillWait=5
		SelectType=select/cons_tres
		SelectTypeParameters=CR_Core
		SlurmdParameters=config_overrides
		SchedulerParameters=sched_interval=2,bf_interval=2
		NodeName=$host NodeAddr=127.0.0.1 CPUs=4 RealMemory=65536 State=UNKNOWN
		PartitionName=main Nodes=ALL Default=YES MaxTime=4:00:00 State=UP
	CONF
	chmod 644 "$dir/slurm.conf"
	chmod 755 "$dir/spool"
	export SLURM_CONF=$dir/slurm.conf
	until_ok 30 munge munge -n -S "$dir/munge/socket"
	until_ok 60 MariaDB mariadb --defaults-extra-file="$dir/mysql.client.cnf" slurm -e 'select 1'
	(cd "$dir" && SLURM_CONF=$dir/slurm.conf launch slurmdbd slurmdbd -D)
	until_ok 60 slurmdbd sacctmgr -n show cluster
	sacctmgr -i add cluster test >/dev/null 2>&1 || true # slurmctld adds it too
	launch slurmctld slurmctld -D -f "$SLURM_CONF"
	launch slurmd slurmd -D -f "$SLURM_CONF"
	until_ok 60 "the node" sh -c 'sinfo -h -o %t | grep -qx idle'
	until_ok 60 accounting sh -c 'sacct -n -X -P >/dev/null'
}

stop() {
	dir=$1
	local name pid
	export SLURM_CONF=$dir/slurm.conf
	[ ! -e "$SLURM_CONF" ] || scancel --full -u root >/dev/null 2>&1 || true
	for name in slurmd slurmctld slurmdbd mariadbd munged; do
		[ -e "$dir/$name.pid" ] || continue
		pid=$(cat "$dir/$name.pid")
		kill "$pid" 2>/dev/null || true
		for _ in $(seq 100); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
		kill -9 "$pid" 2>/dev/null || true
		rm -f "$dir/$name.pid"
	done
}

case "${1:-}" in
install) install ;;
start) start "$2" "$3" ;;
stop) stop "$2" ;;
*) die "usage: scripts/slurm.sh install | start DIR PORT | stop DIR" ;;
esac
