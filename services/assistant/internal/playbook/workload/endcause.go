package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// endCause is a cause that the last lines of many programs name in the same wording: that of a database, of the C
// library or of a runtime. It is chosen for a container whose exit is a fact already.
type endCause struct {
	expr          *regexp.Regexp
	cause, advice string
	// server means that the fault is in the database itself and not in a client.
	server bool
	// database means that the message comes from a database, which has a name.
	database bool
	// add adds facts from the cluster to the finding.
	add func(x *Index, f *engine.Finding, pod *corev1.Pod, c engine.Container, line string)
}

func says(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + wordlist.AnyOf(alternatives...))
}

// endCauses are ordered: a line counts for the first match.
var endCauses = []endCause{
	{
		expr:  says(`too many connections`, `too many clients already`, `remaining connection slots`, `max(imum)? number of clients reached`, `max_user_connections`, `ORA-(00018|00020|12519)`, `connection limit exceeded`, `too many connections for (role|database)`),
		cause: "The database is out of connections: it refuses more than it is set to take", advice: "See who holds the connections; let the clients keep fewer (the size of their pools, times their replicas), or let the database take more.",
		server: true, database: true,
	},
	{
		expr:  says(`read-only option`, `cannot execute \w+( \w+)? in a read-only transaction`, `READONLY You can't write`, `NotWritablePrimary|not (the )?primary and`, `database is (in )?read[- ]only`, `super[-_]read[-_]only`, `SQLITE_READONLY|attempt to write a readonly database`, `ORA-16000`),
		cause: "The database is read only, so that the program cannot write", advice: "Let the database take writes again (its read-only setting), or let the program name the primary and not a replica.",
		server: true, database: true,
	},
	{
		expr:  says(`access denied for user \S+ to database`, `command denied to user`, `permission denied for (table|relation|schema|database|sequence|function|view)`, `not authorized on \S+ to execute`, `ORA-01031`, `NOPERM`, `ERROR 1044`, `ERROR 1142`, `must be (owner|superuser)`),
		cause: "The database knows the program's user, who lacks a right (a grant)", advice: "Grant the user the rights that the line names, or give the program another user.",
		database: true,
	},
	{
		expr:  says(`access denied for user`, `password authentication failed`, `no password supplied`, `role "[^"]*" does not exist`, `login failed for user`, `authentication failed`, `WRONGPASS`, `NOAUTH`, `invalid username-password`, `ORA-(01017|28000)`, `ERROR 1045`, `ACCESS_REFUSED`),
		cause: "The user or password that the program has is refused (access denied): its credentials are wrong", advice: "Compare the user and the password in the program's Secret or variables with those of the server; a Secret that was changed reaches variables only with new pods.",
		database: true,
	},
	{
		expr:  says(`unknown database`, `database "[^"]*" does not exist`, `ORA-(12514|12505)`, `cannot open database "`, `ERROR 1049`, `no such database`),
		cause: "The database that the program names does not exist on its server", advice: "Correct the name of the database, or create it.",
		database: true,
	},
	{
		expr:  says(`relation "[^"]*" does not exist`, `table '[^']*' doesn't exist`, `no such table`, `ORA-00942`, `unknown column`, `column "[^"]*" does not exist`),
		cause: "A table or column that the program needs does not exist: the schema of the database is another one", advice: "Run the migration of the schema, or correct the name of the database.",
		database: true,
	},
	{
		expr:  says(`address already in use`, `EADDRINUSE`, `port \d+ (is|was) already in use`, `PortInUseException`, `bind: .*in use`, `Only one usage of each socket address`),
		cause: "The port that the program listens on is already in use", advice: "Give one of the two another port.",
		add: addPortHolder,
	},
	{
		expr:  says(`read-only file ?system`, `EROFS`),
		cause: "The program writes to a file system that is read only", advice: "Mount a volume that can be written to at that path, such as an emptyDir, or let the program write elsewhere.",
		add: addReadOnlyRoot,
	},
	{
		expr:  says(`system limit for number of file watchers`, `inotify\S* .*(limit|no space|too many)`, `too many open files.*inotify|inotify.*too many open files`, `user limit on the total number of inotify`),
		cause: "The node's limit for watched files (inotify) is reached", advice: "Raise fs.inotify.max_user_watches and max_user_instances on the node, or let the program watch fewer files.",
	},
	{
		expr:  says(`too many open files`, `EMFILE`),
		cause: "The program has as many files and connections open as it may", advice: "Find what it does not close; else raise the limit of open files (ulimit -n) of the container runtime.",
	},
	{
		expr:  says(`max virtual memory areas vm\.max_map_count`),
		cause: "The node's setting vm.max_map_count is too low for the program", advice: "Raise vm.max_map_count on the node.",
	},
	{
		expr:  says(`no space left on device`, `ENOSPC`, `disk quota exceeded`),
		cause: "No space is left on the volume or disk that the program writes to", advice: "Free space, or make the volume larger.",
	},
	{
		expr:  says(`OutOfMemoryError`, `heap out of memory`, `Java heap space`, `allowed memory size of \d+ bytes exhausted`, `cannot allocate memory`, `std::bad_alloc`),
		cause: "The program ran out of memory at its own limit (its heap), before reaching the container's limit", advice: "Give it a larger heap, within the container's memory limit, or find what it keeps.",
		add: addMemoryLimit,
	},
	{
		expr:  says(`permission denied`, `EACCES`, `AccessDeniedException`, `operation not permitted`),
		cause: "The program may not read or write a file, or may not do what it tries (permission denied)", advice: "Let its user (runAsUser, fsGroup) have the file, or mount a volume that is writable for its group.",
		add: addUser,
	},
}

// mostEndLines limits the lines before an exit that may name its cause; stack frames do not count.
const mostEndLines = 30

// endLines returns the last lines of the run that ended, the most recent first, without stack frames.
func (x *Index) endLines(pod *corev1.Pod, c engine.Container) []string {
	return x.tellingLines(engine.LogOf(pod, c))
}

func (x *Index) tellingLines(log engine.Log) []string {
	var lines []string
	for line := range strings.Lines(x.Logs[log]) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "at ") && !strings.HasPrefix(line, "... ") {
			lines = append(lines, line[:min(len(line), engine.LongestLine)])
		}
	}
	slices.Reverse(lines)
	lines, _ = engine.SplitInstructions(lines[:min(len(lines), mostEndLines)])
	return lines
}

// findEndCause returns the cause in the most recent matching line, and the index of that line.
func findEndCause(lines []string) (cause *endCause, at int) {
	for at, line := range lines {
		for i := range endCauses {
			if endCauses[i].expr.MatchString(line) {
				return &endCauses[i], at
			}
		}
	}
	return nil, -1
}

// explainEnd replaces a cause quoted from a container's log by one concluded from its last lines. It reports whether it
// did.
func (x *Index) explainEnd(f *engine.Finding, pod *corev1.Pod, w *engine.Workload, c engine.Container) bool {
	if _, signaled := engine.SignalOf(c.LastEnd().ExitCode); signaled || f.Confidence == engine.High {
		return false
	}
	lines := x.endLines(pod, c)
	cause, at := findEndCause(lines)
	if cause == nil {
		return false
	}
	// A later message of the program counts more.
	for _, other := range []*regexp.Regexp{noFileExpr, dependencyExpr} {
		if slices.ContainsFunc(lines[:at], other.MatchString) {
			return false
		}
	}
	f.Evidence = f.Evidence[:1:1]
	quoteLine(f, c, lines[at])
	f.Fix = nil
	f.Cause, f.Confidence, f.Text = cause.cause+".", engine.Medium, cause.advice
	if cause.database {
		if s := x.databaseOf(pod, lines); s != nil {
			f.Cause = fmt.Sprintf("%s. The database is the service %s.", cause.cause, engine.QuoteCode(s.Name))
		}
	}
	if cause.add != nil {
		cause.add(x, f, pod, c, lines[at])
	}
	if !cause.server {
		offerRollback(f, w, c)
	}
	return true
}

// explainProbeByLog adds the reason in the container's log to a failing probe: a program that cannot use its database
// reports itself as not ready, or does not answer at all.
func (x *Index) explainProbeByLog(f *engine.Finding, pod *corev1.Pod, c engine.Container, p probe) {
	log := engine.Log{Namespace: pod.Namespace, Pod: pod.Name, Container: c.Spec.Name}
	if p.kind != "readiness" {
		log = engine.LogOf(pod, c)
	}
	lines := x.tellingLines(log)
	cause, at := findEndCause(lines)
	if cause == nil || cause.database && !serverContextExpr.MatchString(lines[at]) {
		if at := slices.IndexFunc(lines, dependencyExpr.MatchString); at >= 0 {
			f.Evidence = append(f.Evidence, "Its log says "+engine.QuoteLine(lines[at])+".")
		}
		return
	}
	f.Evidence = append(f.Evidence, f.Cause, "Its log says "+engine.QuoteLine(lines[at])+".")
	f.Cause, f.Confidence, f.Text, f.Fix = fmt.Sprintf("%s, so that the %s probe does not pass.", cause.cause, p.kind), engine.Medium, cause.advice, nil
	if cause.database {
		if s := x.databaseOf(pod, lines); s != nil {
			f.Cause += fmt.Sprintf(" The database is the service %s.", engine.QuoteCode(s.Name))
		}
	}
	if cause.add != nil && !cause.database {
		cause.add(x, f, pod, c, lines[at])
	}
}

// databasePorts are those on which common databases listen.
var databasePorts = []int32{1433, 1521, 3306, 5432, 5984, 6379, 9042, 26257, 27017, 33060}

// databaseOf returns the only database that a pod uses: the service that its log names, else that of its variables.
// Nil: none, or several.
func (x *Index) databaseOf(pod *corev1.Pod, lines []string) *corev1.Service {
	for _, line := range lines {
		for _, h := range logtext.Hosts(line) {
			if s := x.ServiceNamed(h.Name, pod.Namespace); s != nil && isDatabase(s) {
				return s
			}
		}
	}
	var found *corev1.Service
	for _, s := range x.network.Called(pod) {
		if isDatabase(s) && s != found {
			if found != nil {
				return nil
			}
			found = s
		}
	}
	return found
}

func isDatabase(s *corev1.Service) bool {
	return slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool {
		return slices.Contains(databasePorts, p.Port) || slices.Contains(databasePorts, p.TargetPort.IntVal)
	})
}

// portExpr matches the port in a line about one that is in use.
var portExpr = regexp.MustCompile(`(?i)(?:\bport |:)(\d{2,5})\b`)

// addPortHolder names the other container of the pod that declares a port, or the node's network.
func addPortHolder(_ *Index, f *engine.Finding, pod *corev1.Pod, c engine.Container, line string) {
	m := portExpr.FindStringSubmatch(line)
	if m == nil {
		return
	}
	port, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil {
		return
	}
	f.Cause = fmt.Sprintf("The port %d that the program listens on is already in use.", port)
	for i := range pod.Spec.Containers {
		other := &pod.Spec.Containers[i]
		if other.Name != c.Spec.Name && slices.Contains(engine.DeclaredPorts(other), int32(port)) {
			f.Confidence = engine.High
			f.Cause = fmt.Sprintf("The port %d that the program listens on is already in use: container %s of the same pod has it.", port, engine.QuoteCode(other.Name))
			return
		}
	}
	if pod.Spec.HostNetwork {
		f.Cause = fmt.Sprintf("The port %d that the program listens on is already in use: the pod has the node's network, where another program has it.", port)
		return
	}
	f.Text = "Find what else in the container listens on it, such as a second start of the program, and give one of the two another port."
}

func addReadOnlyRoot(_ *Index, f *engine.Finding, _ *corev1.Pod, c engine.Container, _ string) {
	if s := c.Spec.SecurityContext; s != nil && engine.ValueOr(s.ReadOnlyRootFilesystem, false) {
		f.Confidence = engine.High
		f.Evidence = append(f.Evidence, fmt.Sprintf("Container %s has `readOnlyRootFilesystem: true`.", engine.QuoteCode(c.Spec.Name)))
		f.Cause = "The program writes to its root file system, which is read only (`readOnlyRootFilesystem: true`)."
	}
}

func addMemoryLimit(_ *Index, f *engine.Finding, _ *corev1.Pod, c engine.Container, _ string) {
	if limit, ok := c.Spec.Resources.Limits[corev1.ResourceMemory]; ok {
		f.Evidence = append(f.Evidence, fmt.Sprintf("The container's memory limit is %s.", limit.String()))
	}
}

// addUser adds the user and group of a container, and its mounts.
func addUser(_ *Index, f *engine.Finding, pod *corev1.Pod, c engine.Container, line string) {
	var who []string
	user, group := (*int64)(nil), (*int64)(nil)
	if s := pod.Spec.SecurityContext; s != nil {
		user, group = s.RunAsUser, s.FSGroup
	}
	if s := c.Spec.SecurityContext; s != nil && s.RunAsUser != nil {
		user = s.RunAsUser
	}
	if user != nil {
		who = append(who, fmt.Sprintf("as user %d", *user))
	}
	if group != nil {
		who = append(who, fmt.Sprintf("with fsGroup %d", *group))
	} else {
		who = append(who, "without an fsGroup")
	}
	f.Evidence = append(f.Evidence, fmt.Sprintf("It runs %s.", strings.Join(who, ", ")))
	for _, m := range c.Spec.VolumeMounts {
		switch {
		case !strings.Contains(line, m.MountPath) || m.MountPath == "/":
		case m.ReadOnly:
			f.Evidence = append(f.Evidence, fmt.Sprintf("The volume %s is mounted read only at %s.", engine.QuoteCode(m.Name), engine.QuoteCode(m.MountPath)))
		default:
			f.Evidence = append(f.Evidence, fmt.Sprintf("The volume %s is mounted there, at %s.", engine.QuoteCode(m.Name), engine.QuoteCode(m.MountPath)))
		}
	}
}
