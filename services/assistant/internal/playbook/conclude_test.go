package playbook_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/workload"
)

// TestConclude: the logs of running pods lead to a cause that no object shows.
func TestConclude(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod, line   string
		object, say string // empty: nothing is concluded
	}{
		"wrong password":                     {"loans-1-abcde", "Caused by: java.sql.SQLException: Access denied for user 'loans'@'10.0.0.21' (using password: YES)", "loans", "credentials are wrong. The database is the service `shelf-db`."},
		"wrong password, told by the server": {"shelf-db-0", "2026-01-02 [Note] Access denied for user 'loans'@'10.0.0.21' (using password: YES)", "loans", "credentials are wrong"},
		"out of connections":                 {"loans-1-abcde", "HikariPool-1: com.mysql.jdbc Data source rejected establishment of connection, message from server: \"Too many connections\"", "shelf-db", "out of connections"},
		"read only":                          {"loans-1-abcde", "SQL Error: 1290, SQLState: HY000 / The server is running with the --read-only option", "shelf-db", "read only"},
		"missing grant":                      {"loans-1-abcde", "java.sql.SQLSyntaxErrorException: INSERT command denied to user 'loans'@'10.0.0.21' for table 'loans'", "loans", "lacks a right"},
		"wrong database":                     {"loans-1-abcde", "java.sql.SQLSyntaxErrorException: Unknown database 'shelfs'", "loans", "does not exist on its server"},
		"a user of the program":              {"loans-1-abcde", "WARN login failed for user ann", "", ""},
		"wrong port":                         {"loans-1-abcde", "could not connect to shelf-db:3307: i/o timeout", "loans", "calls port 3307 of the service `shelf-db`, which does not have that port: it has port `3306`"},
		"wrong port of an address":           {"loans-1-abcde", "dial tcp 10.96.0.40:3307: connect: connection refused", "loans", "calls port 3307 of the service `shelf-db`"},
		"right port":                         {"loans-1-abcde", "dial tcp 10.96.0.40:3306: connect: connection refused", "", ""},
		"name that nothing has":              {"loans-1-abcde", "dial tcp: lookup shelves on 10.96.0.10:53: no such host", "loans", "there is no service `shelves`"},
		"name that is there":                 {"loans-1-abcde", "dial tcp: lookup shelf-db on 10.96.0.10:53: no such host", "", ""},
		"name outside":                       {"loans-1-abcde", "dial tcp: lookup mail.example.com on 10.96.0.10:53: no such host", "", ""},
	} {
		s := readSnapshot(t, "database")
		s.Pods[1].Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
		found := playbook.Conclude(s, []workload.Message{{Namespace: "library", Pod: c.pod, Lines: []string{c.line}}})
		switch {
		case c.object == "" && len(found) > 0:
			t.Errorf("%s: found %+v, want nothing", name, found)
		case c.object != "" && (len(found) != 1 || found[0].Object.Name != c.object || !strings.Contains(found[0].Cause, c.say)):
			t.Errorf("%s: found %+v, want one about %s that says %q", name, found, c.object, c.say)
		}
	}
}

// TestProbesByLog: a probe that fails because the program cannot use its database is explained by that.
func TestProbesByLog(t *testing.T) {
	t.Parallel()
	notReady := func(s *engine.Snapshot) {
		c := &s.Pods[1].Status.ContainerStatuses[0]
		c.State, c.LastTerminationState, c.RestartCount = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, corev1.ContainerState{}, 0
		c.Started = new(true)
		s.Pods[1].Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ready"}}}}
		s.Logs[engine.Log{Namespace: "library", Pod: "loans-1-abcde", Container: "loans"}] = "ERROR SQLState 28000: Access denied for user 'loans'@'10.0.0.21' (using password: YES)\n"
	}
	checkCases(t, []changeCase{{"credentials", "database", "", notReady, "its credentials are wrong, so that the readiness probe does not pass. The database is the service `shelf-db`."}})
}
