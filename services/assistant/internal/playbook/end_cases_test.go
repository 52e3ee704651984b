package playbook_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/playbook"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
)

// TestEndCases: the cause of an exit is concluded from the program's last lines.
func TestEndCases(t *testing.T) {
	t.Parallel()
	spec := func(change func(pod *corev1.PodSpec, c *corev1.Container)) func(*engine.Snapshot) {
		return func(s *engine.Snapshot) { change(&s.Pods[1].Spec, &s.Pods[1].Spec.Containers[0]) }
	}
	const frames = "\n\tat app.Store.open(Store.java:12)\n\tat app.Main.main(Main.java:3)\n\t... 14 more\n"
	checkCases(t, []changeCase{
		{"MySQL is out of connections", "database", "ERROR start failed\nCaused by: java.sql.SQLNonTransientConnectionException: Too many connections" + frames, nil, "The database is out of connections"},
		{"PostgreSQL is out of connections", "database", "FATAL: sorry, too many clients already", nil, "out of connections"},
		{"its slots are kept", "database", "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute", nil, "out of connections"},
		{"MySQL is read only", "database", "ERROR 1290 (HY000): The server is running with the --read-only option so it cannot execute this statement", nil, "The database is read only"},
		{"PostgreSQL is read only", "database", "ERROR:  cannot execute INSERT in a read-only transaction", nil, "The database is read only"},
		{"a replica of Redis", "database", "redis.exceptions.ReadOnlyError: READONLY You can't write against a read only replica.", nil, "The database is read only"},
		{"wrong password", "database", "Caused by: java.sql.SQLException: Access denied for user 'loans'@'10.1.0.7' (using password: YES)" + frames, nil, "its credentials are wrong. The database is the service `shelf-db`."},
		{"wrong password of PostgreSQL", "database", `FATAL: password authentication failed for user "loans"`, nil, "its credentials are wrong"},
		{"missing grant", "database", "Access denied for user 'loans'@'%' to database 'shelf'", nil, "lacks a right (a grant)"},
		{"missing grant on a table", "database", "ERROR: permission denied for table loans", nil, "lacks a right (a grant)"},
		{"wrong database", "database", "Unknown database 'shelfs'", nil, "does not exist on its server"},
		{"no migration", "database", `ERROR: relation "loans" does not exist`, nil, "the schema of the database is another one"},
		{"port of a neighbour", "database", "listen tcp :9000: bind: address already in use", spec(func(pod *corev1.PodSpec, _ *corev1.Container) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "agent", Ports: []corev1.ContainerPort{{ContainerPort: 9000}}})
		}), "container `agent` of the same pod has it. (Confidence: high.)"},
		{"port in the words of Java", "database", "PortInUseException: Port 9100 is already in use", nil, "The port 9100 that the program listens on is already in use"},
		{"root that is read only", "database", "OSError: [Errno 30] Read-only file system: '/srv/cache'", spec(func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
		}), "its root file system, which is read only"},
		{"volume of another group", "database", "# cannot open /var/lib/shelf/store.db for writing: Permission denied", spec(func(pod *corev1.PodSpec, c *corev1.Container) {
			pod.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1001))}
			c.VolumeMounts = []corev1.VolumeMount{{Name: "store", MountPath: "/var/lib/shelf"}}
		}), "It runs as user 1001, without an fsGroup."},
		{"watched files", "database", "Error: ENOSPC: System limit for number of file watchers reached, watch '/srv'", nil, "(inotify) is reached"},
		{"open files", "database", "accept tcp: too many open files", nil, "as many files and connections open as it may"},
		{"heap", "database", "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", nil, "at its own limit (its heap)"},
		{"full disk", "database", "write /data/x: no space left on device", nil, "No space is left"},
		{"bare name that a name server passes on", "database", "Caused by: java.net.UnknownHostException: shelf-primary: Temporary failure in name resolution", nil, "there is no service `shelf-primary` in namespace `library`"},
		{"what comes later counts more", "database", "WARN /etc/motd: permission denied\ndial tcp 10.96.0.40:3306: connect: connection refused", nil, "cannot reach something that it depends on"},
		{"ended by a signal", "database", "permission denied", func(s *engine.Snapshot) {
			s.Pods[1].Status.ContainerStatuses[0].LastTerminationState.Terminated.ExitCode = 139
		}, "SIGSEGV"},
	})
}

// TestOneDatabaseOfManyClients: a database that fails many clients is one finding.
func TestOneDatabaseOfManyClients(t *testing.T) {
	t.Parallel()
	many := func(log string) []engine.Finding {
		s := readSnapshot(t, "database")
		for _, name := range []string{"returns", "fines", "search"} {
			d, set, pod := s.Deployments[0].DeepCopy(), s.ReplicaSets[0].DeepCopy(), s.Pods[1].DeepCopy()
			d.Name, set.Name, pod.Name = name, name+"-1", name+"-1-abcde"
			d.UID, set.UID, pod.UID = "d-"+d.UID, "r-"+set.UID, "p-"+pod.UID
			set.OwnerReferences[0].Name, pod.OwnerReferences[0].Name = name, set.Name
			s.Deployments, s.ReplicaSets, s.Pods = append(s.Deployments, *d), append(s.ReplicaSets, *set), append(s.Pods, *pod)
		}
		return playbook.Diagnose(writeLogs(s, log), "")
	}
	for name, c := range map[string]struct{ log, say string }{
		"out of connections": {"FATAL: sorry, too many clients already", "The database is out of connections"},
		"wrong credentials":  {"ERROR 1045 (28000): Access denied for user 'app'@'10.1.0.7' (using password: YES)", "its credentials are wrong"},
	} {
		found := many(c.log)
		if len(found) != 1 || found[0].Object.Name != "shelf-db" || len(found[0].Consequences) != 4 || !strings.Contains(found[0].Cause, c.say) {
			t.Errorf("%s: found %+v; want one about shelf-db with four consequences, which says %q", name, found, c.say)
		}
	}
}
