package stack

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
)

// Files of compose.ha.yaml in addition to the other secrets: three brokers, two databases led by Patroni, two Redis
// servers with three sentinels. The names of the containers are those of that file.

var (
	brokers   = []string{"nats", "nats-2", "nats-3"}
	members   = []string{"etcd-1", "etcd-2", "etcd-3"}
	sentinels = []string{"redis-sentinel-1", "redis-sentinel-2", "redis-sentinel-3"}
)

// DefaultDataNetwork is the first three parts of the network data in compose.ha.yaml.
const DefaultDataNetwork = "10.237.58"

// The last part of fixed addresses in the network data, as compose.ha.yaml gives them. Redis and its sentinels know each
// other by address: the name of a container that is gone is one that Docker asks other name servers for, and a sentinel
// waits for them instead of promoting a server.
const (
	firstRedis    = ".11" // the master when all starts for the first time
	firstSentinel = 21    // the others follow
)

// dataNetwork checks the first three parts of a network of 256 addresses; "" is the default.
func dataNetwork(text string) (string, error) {
	if text == "" {
		return DefaultDataNetwork, nil
	}
	if a, err := netip.ParseAddr(text + ".0"); err != nil || !a.Is4() || !a.IsPrivate() {
		return "", fmt.Errorf("DATA_NETWORK must be the first three parts of a private network, such as %s, not %q", DefaultDataNetwork, text)
	}
	return text, nil
}

// sentinelAddress is that of a sentinel by its place in the list.
func sentinelAddress(network string, i int) string {
	return network + "." + strconv.Itoa(firstSentinel+i)
}

// isKept reports whether a file that is there stays: a sentinel notes in its own which server it promoted. One that
// monitors a server elsewhere is of another network, or of the time when servers were known by name.
func isKept(name, content, network string) bool {
	return name == "sentinel.conf" && strings.Contains(content, "sentinel monitor platform "+network+".")
}

// layoutHA is the files of compose.ha.yaml by folder and name.
func layoutHA(c credentials.Credentials, d databases, network string) map[string]map[string]string {
	clusterURLs := func(user, password string) string {
		var urls []string
		for _, host := range brokers {
			urls = append(urls, strings.Replace(natsURL(user, password), "@nats:", "@"+host+":", 1))
		}
		return strings.Join(urls, ",")
	}
	redisURL := "redis://:" + d.Redis + "@" + sentinelAddress(network, 0) + ":26379/0?master_name=platform"
	for i := range sentinels[1:] {
		redisURL += "&addr=" + sentinelAddress(network, i+1) + ":26379"
	}
	files := map[string]map[string]string{
		"ha":            {"NATS_URL": clusterURLs("platform", c.NATSToken), "REDIS_URL": redisURL},
		"bus-bridge-ha": {"BUS_NATS_URL": clusterURLs(credentials.BridgeUser, c.BridgePassword)},
		"nats-ha":       {"nats.conf": natsConf(c) + clusterConf(d)},
		"redis-ha":      {"redis.conf": "requirepass " + d.Redis + "\nmasterauth " + d.Redis + "\n"},
		"postgres-ha":   {"init.sql": initSQL(d), "patroni.yml": patroniConf(d)},
	}
	for i, host := range sentinels {
		files[host] = map[string]string{"sentinel.conf": sentinelConf(network, i, d)}
	}
	return files
}

// clusterConf joins a broker to the others; the name of a server comes from the command line.
func clusterConf(d databases) string {
	routes := make([]string, len(brokers))
	for i, host := range brokers {
		routes[i] = strconv.Quote("nats://route:" + d.Routes + "@" + host + ":6222")
	}
	return fmt.Sprintf("cluster {\n  name: platform\n  listen: \"0.0.0.0:6222\"\n  authorization { user: route, password: %q }\n  routes: [ %s ]\n}\n",
		d.Routes, strings.Join(routes, ", "))
}

// sentinelConf makes two of three sentinels promote the other server once the master has not answered for 3 s.
func sentinelConf(network string, i int, d databases) string {
	return strings.Join([]string{
		"port 26379", "dir /tmp", "requirepass " + d.Redis, "sentinel sentinel-pass " + d.Redis,
		"sentinel announce-ip " + sentinelAddress(network, i),
		"sentinel monitor platform " + network + firstRedis + " 6379 2", "sentinel auth-pass platform " + d.Redis,
		"sentinel down-after-milliseconds platform 3000", "sentinel failover-timeout platform 10000", "",
	}, "\n")
}

// patroniConf is Patroni's configuration, the same for both members; names and addresses come from the environment. The
// standby confirms each commit (synchronous_mode), so that a promotion loses none; without a standby, the primary
// continues alone. On a busy machine a lease of 20 s was lost to late answers of etcd, so it is 30 s. A spread
// checkpoint would keep a new standby waiting for minutes. Settings that name commands are here, where they override
// those in etcd.
func patroniConf(d databases) string {
	return `scope: platform
namespace: /patroni/
restapi:
  listen: 0.0.0.0:8008
  authentication: {username: patroni, password: ` + d.Failover + `}
etcd3:
  hosts: [etcd-1:2379, etcd-2:2379, etcd-3:2379]
  protocol: https
  cacert: /run/secrets/ca.crt
  cert: /run/secrets/etcd.crt
  key: /run/secrets/etcd.key
bootstrap:
  dcs:
    ttl: 30
    loop_wait: 5
    retry_timeout: 10
    # An etcd that answers late is no reason to stop a primary that reaches its standby.
    failsafe_mode: true
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters:
        max_connections: 200
        wal_level: replica
        hot_standby: "on"
        wal_keep_size: 256MB
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, data-checksums]
  post_init: /usr/local/bin/post-init.sh
postgresql:
  listen: 0.0.0.0:5432
  data_dir: /var/lib/postgresql/data/pgdata
  pgpass: /tmp/pgpass
  basebackup: [{checkpoint: fast}]
  bin_dir: ""
  callbacks: {}
  create_replica_methods: [basebackup]
  recovery_conf: {}
  pre_promote: ""
  before_stop: ""
  parameters: {unix_socket_directories: /var/run/postgresql, archive_mode: "off"}
  pg_hba:
    - local all all trust
    - host replication replicator all scram-sha-256
    - host all all all scram-sha-256
  authentication:
    superuser: {username: postgres, password: ` + d.Postgres + `}
    replication: {username: replicator, password: ` + d.Replication + `}
`
}
