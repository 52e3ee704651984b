package investigate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/mlp-platform/platform/services/assistant/internal/operation"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/turn"
)

// gallery is a healthy deployment with running pods.
func gallery(t *testing.T) *engine.Snapshot {
	t.Helper()
	s := readFixture(t, "", "healthy")
	s.Deployments[0].Status.ReadyReplicas = *s.Deployments[0].Spec.Replicas
	s.Pods[0].Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{}
	return s
}

// logsBy returns logs by the pod's name.
func logsBy(s *engine.Snapshot, text func(pod string) string) *tools {
	b := toolsOn(s)
	b.run = func(_ context.Context, op operation.Operation) (turn.Output, error) {
		if op.Verb != operation.Logs {
			return turn.Output{}, nil
		}
		whole := text(op.Names[0])
		return turn.Output{Text: whole, Whole: whole, Empty: whole == ""}, nil
	}
	return b
}

// TestQuestionsAboutLogs: a filter reads the whole log, and the answer states how much that is.
func TestQuestionsAboutLogs(t *testing.T) {
	t.Parallel()
	log := "2026-01-02T10:00:00Z INFO GET /a status=200\n2026-01-02T10:00:01Z WARN cache is slow\n2026-01-02T10:00:02Z ERROR Connection reset by 10.0.0.7\n\tat a.b(C.java:1)\n2026-01-02T10:00:03Z INFO GET /b status=502\n" +
		strings.Repeat("2026-01-02T10:30:00Z INFO GET /c status=200\n", 95)
	for query, row := range map[string]struct{ must, not []string }{
		"logs of gallery": {[]string{"the last 40 of 100 lines, from 2026-01-02 10:00:00 to 2026-01-02 10:30:00", "GET /c"}, []string{"GET /a"}},
		"show the last 3 lines of the log of gallery":          {[]string{"the last 3 of 100 lines"}, nil},
		`show lines with "Connection reset" in log of gallery`: {[]string{"1 message with `Connection reset` in 100 lines", "C.java:1"}, []string{"GET /c"}},
		`show lines with "connection reset" in log of gallery`: {[]string{"1 message with `connection reset` in 100 lines", "C.java:1"}, nil},
		"show errors in the logs of gallery":                   {[]string{"2 messages that report an error in 100 lines", "Connection reset", "status=502"}, []string{"cache is slow"}},
		"show warnings in the log of gallery":                  {[]string{"1 message that warns in 100 lines", "cache is slow"}, []string{"Connection reset"}},
		"show the 5xx lines in the log of gallery":             {[]string{"1 message with 5xx in 100 lines", "GET /b"}, []string{"GET /a"}},
		"show lines containing reset in the log of gallery":    {[]string{"1 message with `reset` in 100 lines"}, nil},
		// No quotation, status or level is meant.
		"what's in gallery's log?":                                           {[]string{"the last 40 of 100 lines", "GET /c"}, []string{"none is one"}},
		"show the log of gallery, which listens on port 443":                 {[]string{"the last 40 of 100 lines"}, []string{"with the status"}},
		"show the log of gallery, not of worker-404 or error-tracker":        {[]string{"GET /c"}, []string{"status 404", "report an error"}},
		"show the log of gallery, which has run for 120 minutes on web:8080": {[]string{"GET /c"}, []string{"the status 120", "the status 808"}},
	} {
		a := askOnce(t, logsBy(gallery(t), func(string) string { return log }), "", query)
		checkAnswer(t, query, a, row.must, row.not)
	}
	s := gallery(t)
	s.Pods[0].Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}
	s.Pods[0].Status.ContainerStatuses[0].ContainerID = ""
	a := askOnce(t, logsBy(s, func(string) string { return "" }), "", "logs of gallery")
	checkAnswer(t, "a pod that never ran", a, []string{"There is no log yet", "has never run. It waits: `ContainerCreating`"}, nil)
}

// A message of many lines counts as one, is shortened to its important lines, and none of its lines is lost.
func TestLongMessageOfALog(t *testing.T) {
	t.Parallel()
	log := "2026-01-02T10:00:00Z ERROR sync failed\n" + strings.Repeat("\tat a.b(C.java:1)\n", 150) + "\tat a.wanted(W.java:7)\n" +
		strings.Repeat("\tat a.b(C.java:1)\n", 148) + "Caused by: a.Gone: disk is gone\n"
	for query, must := range map[string][]string{
		`show lines with "wanted" in the log of gallery`: {"1 message with `wanted` in 301 lines", "sync failed", "[147 lines left out]", "W.java:7", "disk is gone"},
		"show errors in the log of gallery":              {"1 message that reports an error in 301 lines", "sync failed", "disk is gone"},
		"logs of gallery":                                {"the last 40 of 301 lines", "disk is gone"},
	} {
		a := askOnce(t, logsBy(gallery(t), func(string) string { return log }), "", query)
		checkAnswer(t, query, a, must, []string{"messages that"})
	}
}

// A log that was read in part is not called free of errors.
func TestLogThatWasReadInPart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		out       turn.Output
		err       error
		must, not []string
	}{
		"whole":  {turn.Output{Whole: "INFO a\n"}, nil, []string{"Of 1 line in 1 log", "none is one that reports an error", allClear}, nil},
		"cut":    {turn.Output{Whole: "INFO a\n", WholeTruncated: true}, nil, []string{"none is one that reports an error", "Older lines of these logs were not read"}, []string{allClear, "No object shows a fault"}},
		"denied": {turn.Output{}, errors.New("forbidden by the cluster"), []string{"could not be read: forbidden"}, []string{"none is one", "No lines were found", allClear}},
	} {
		b := toolsOn(gallery(t))
		b.run = func(_ context.Context, op operation.Operation) (turn.Output, error) {
			if op.Verb != operation.Logs {
				return turn.Output{}, nil
			}
			return c.out, c.err
		}
		checkAnswer(t, name, askOnce(t, b, "", "show errors in the log of gallery"), c.must, c.not)
	}
}

// addDependency adds a Service with one ready pod.
func addDependency(s *engine.Snapshot, name string) {
	ready := true
	pod := *s.Pods[0].DeepCopy()
	pod.Name, pod.Labels, pod.OwnerReferences = name+"-0", map[string]string{"app": name}, nil
	pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 5432}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	s.Pods = append(s.Pods, pod)
	s.Services = append(s.Services, corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: name},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.78", Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 5432}}},
	})
	s.EndpointSlices = append(s.EndpointSlices, discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		Endpoints:  []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	})
}

// openOn adds a second port to the dependency and a policy that opens one of them.
func openOn(port int) func(*engine.Snapshot) {
	return func(s *engine.Snapshot) {
		pod, service := &s.Pods[len(s.Pods)-1], &s.Services[len(s.Services)-1]
		pod.Spec.Containers[0].Ports = append(pod.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 5433})
		service.Spec.Ports = []corev1.ServicePort{{Name: "sql", Port: 5432}, {Name: "admin", Port: 5433}}
		at := intstr.FromInt(port)
		s.NetworkPolicies = append(s.NetworkPolicies, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "db-part"},
			Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "gallery-db"}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
				Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: &at}}}}}})
	}
}

// TestHostsOfALineAreBounded: for a line that names every Service, only a few logs are read, and none twice.
func TestHostsOfALineAreBounded(t *testing.T) {
	t.Parallel()
	s := gallery(t)
	line := "ERROR connection failed:"
	for i := range 100 {
		name := fmt.Sprintf("db-%d", i)
		addDependency(s, name)
		s.Services[len(s.Services)-1].Spec.ClusterIP = fmt.Sprintf("10.96.1.%d", i)
		line += " " + name + ".media:5432"
	}
	b := logsBy(s, func(pod string) string {
		if strings.HasPrefix(pod, "db-") {
			return "INFO ready\n"
		}
		return line + "\n"
	})
	checkAnswer(t, "a line of 100 hosts", askOnce(t, b, "", "why does gallery return errors?"), []string{"`db-0.media` is service `db-0`"}, []string{allClear})
	reads := 0
	for _, line := range b.lines {
		if strings.HasPrefix(line, "kubectl logs") {
			reads++
		}
	}
	if reads > 5 {
		t.Errorf("%d logs were read; want those of the deployment and of 4 services", reads)
	}
}

// TestLogsOfOneQuestionAreBounded: the logs asked about may use up the limit before those of dependencies, which the
// answer reports.
func TestLogsOfOneQuestionAreBounded(t *testing.T) {
	t.Parallel()
	s := gallery(t)
	for i := range 19 {
		pod := *s.Pods[0].DeepCopy()
		pod.Name += string(rune('a' + i))
		s.Pods = append(s.Pods, pod)
	}
	addDependency(s, "gallery-db")
	b := logsBy(s, func(pod string) string { return "ERROR connect to gallery-db:5432: server closed the connection\n" })
	checkAnswer(t, "20 pods and a dependency", askOnce(t, b, "", "why does gallery return errors?"), []string{"`gallery-db` is service `gallery-db`", "Its logs were not read.", "for its own logs"}, []string{"Its own log says"})
}

// TestWarningOfAnEarlierObject: a warning shown with a symptom is not about an earlier object of the same name.
func TestWarningOfAnEarlierObject(t *testing.T) {
	t.Parallel()
	for uid, told := range map[types.UID]bool{"p-gallery-abcde": true, "": true, "an-earlier-one": false} {
		s := gallery(t)
		s.Pods[0].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
		s.Pods[0].Status.ContainerStatuses[0].Ready = false
		s.Deployments[0].Status.ReadyReplicas = 0
		s.Events = []corev1.Event{{Type: corev1.EventTypeWarning, Reason: "Odd", Message: "the moon is full", LastTimestamp: metav1.Time{Time: s.Taken},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "media", Name: s.Pods[0].Name, UID: uid}}}
		must, not := []string{"not everything is healthy"}, []string{allClear}
		if told {
			must = append(must, "the moon is full")
		} else {
			not = append(not, "the moon is full")
		}
		checkAnswer(t, string(uid), askOnce(t, logsBy(s, func(string) string { return "INFO ready\n" }), "", "what is wrong with deployment gallery?"), must, not)
	}
}

// TestQuestionIsNotCalmed: a question whether all is well gets no all-clear if logs hint at a fault or HTTP answers are
// errors.
func TestQuestionIsNotCalmed(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ log, must string }{
		"a hint":  {"INFO ready\nWARN too many clients already, retrying\n", "too many clients already"},
		"answers": {strings.Repeat("INFO GET /a HTTP/1.1 status=403\n", 9), "9 HTTP answers in the logs have status 403"},
	} {
		a := askOnce(t, logsBy(gallery(t), func(string) string { return row.log }), "", "is gallery healthy?")
		checkAnswer(t, name, a, []string{row.must, "Read "}, []string{allClear})
	}
}

// TestDependencyOfALine follows a host in a line to its object, its policies and its log.
func TestDependencyOfALine(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		log, dependency string
		change          func(*engine.Snapshot)
		must, not       []string
	}{
		"its own log": {"ERROR connect to gallery-db:5432: server closed the connection\n", "FATAL:  could not write lock file: No space left on device\n", nil,
			[]string{"`gallery-db` is service `gallery-db`", "Its own log says, once in `gallery-db-0`: `FATAL:  could not write lock file"}, []string{allClear}},
		"a policy before it": {"ERROR dial tcp gallery-db:5432: i/o timeout\n", "LOG: ready\n", func(s *engine.Snapshot) {
			s.NetworkPolicies = append(s.NetworkPolicies, networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "media", Name: "db-closed"},
				Spec: networkingv1.NetworkPolicySpec{PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "gallery-db"}}, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}})
		}, []string{"`db-closed`"}, []string{allClear, "Its own log"}},
		"a name that no service has":                {"ERROR dial tcp: lookup galery-db.media.svc.cluster.local: no such host\n", "", nil, []string{"`galery-db.media.svc.cluster.local` names no service", "The closest name is service `gallery-db`"}, []string{allClear}},
		"the pod itself":                            {"ERROR connect ECONNREFUSED 127.0.0.1:5432\n", "", nil, []string{"`127.0.0.1` is the pod itself, and none of its containers declares port `5432`", "Service `gallery-db` has that port"}, []string{allClear}},
		"a client at an address of the pod":         {"ERROR 127.0.0.1:54321 - \"GET /a HTTP/1.1\" 500: connection reset by peer\n", "", nil, []string{"127.0.0.1:54321"}, []string{allClear, "is the pod itself"}},
		"a client whose connection the pod refused": {"ERROR connection refused by limit: from 127.0.0.1:54321\n", "", nil, []string{"127.0.0.1:54321"}, []string{allClear, "is the pod itself"}},
		"the pod itself, without declared ports": {"ERROR connect ECONNREFUSED 127.0.0.1:5432\n", "", func(s *engine.Snapshot) {
			s.Deployments[0].Spec.Template.Spec.Containers[0].Ports = nil
		}, []string{"`127.0.0.1` is the pod itself", "Service `gallery-db` has that port"}, []string{allClear, "declares"}},
		"a plain word in a variable": {"ERROR database connection refused\n", "ERROR disk quota exceeded\n", func(s *engine.Snapshot) {
			s.Deployments[0].Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "ENV", Value: "gallery-db"}}
		}, []string{"database connection refused"}, []string{allClear, "The variable"}},
		"no value in a variable": {"ERROR database connection refused\n", "", func(s *engine.Snapshot) {
			s.Services[len(s.Services)-1].Spec.ClusterIP = corev1.ClusterIPNone
			s.Deployments[0].Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PROXY_HOST", Value: corev1.ClusterIPNone}}
		}, []string{"database connection refused"}, []string{allClear, "The variable"}},
		"a hint in its own log": {"ERROR connect to gallery-db:5432: server closed the connection\n", "WARN too many clients already, retrying\n", nil,
			[]string{"`gallery-db` is service `gallery-db`", "too many clients already"}, []string{allClear, "show no fault."}},
		"what its own log says no more": {"ERROR connect to gallery-db:5432: server closed the connection\n", "ERROR could not write lock file\n" + strings.Repeat("INFO ready\n", 30), nil,
			[]string{"could not write lock file", "none in the 30 messages since"}, []string{allClear}},
		"a policy that lets the port through": {"ERROR dial tcp gallery-db:5432: i/o timeout\n", "LOG: ready\n", openOn(5432), []string{"`gallery-db` is service"}, []string{allClear, "`db-part`"}},
		"a policy that does not":              {"ERROR dial tcp gallery-db:5433: i/o timeout\n", "LOG: ready\n", openOn(5432), []string{"`db-part`"}, []string{allClear}},
		"a policy on some port, none said":    {"ERROR lookup gallery-db: i/o timeout\n", "LOG: ready\n", openOn(5432), []string{"`gallery-db` is service"}, []string{allClear, "`db-part`"}},
		"a variable where no line has it": {"ERROR database connection refused\n", "ERROR disk quota exceeded\n", func(s *engine.Snapshot) {
			s.Deployments[0].Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "DB_HOST", Value: "gallery-db"}}
		}, []string{"but the variable `DB_HOST` of the program names one: `gallery-db` is service `gallery-db`", "disk quota exceeded"}, []string{allClear}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := gallery(t)
			addDependency(s, "gallery-db")
			if row.change != nil {
				row.change(s)
			}
			b := logsBy(s, func(pod string) string {
				if pod == "gallery-db-0" {
					return row.dependency
				}
				return row.log
			})
			checkAnswer(t, name, askOnce(t, b, "", "why does gallery return errors?"), row.must, row.not)
		})
	}
}

// TestComplaintIsNotDenied: a user who reports a failure gets the most frequent log lines, not an all-clear.
func TestComplaintIsNotDenied(t *testing.T) {
	t.Parallel()
	b := logsBy(gallery(t), func(string) string { return "INFO frame 1\nINFO frame 2\n" })
	checkAnswer(t, "a complaint", askOnce(t, b, "", "why does gallery lose pictures?"), []string{"No object shows a fault in deployment `gallery`", "The most frequent messages:", "2 times in"}, []string{allClear})
	checkAnswer(t, "a complaint about a silent program", askOnce(t, logsBy(gallery(t), func(string) string { return "" }), "", "why does gallery lose pictures?"), []string{"No object shows a fault in deployment `gallery`", "Read 0 lines"}, []string{allClear})
	checkAnswer(t, "a question", askOnce(t, b, "", "what is wrong with gallery?"), []string{allClear + " with deployment `gallery`"}, nil)
}
