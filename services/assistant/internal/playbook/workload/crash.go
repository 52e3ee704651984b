package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
	"github.com/mlp-platform/platform/services/assistant/internal/playbook/engine"
	"github.com/mlp-platform/platform/services/assistant/internal/wordlist"
)

// Patterns in the last messages of programs. They choose between causes only for a container whose exit is a fact
// already.
var (
	variableExpr = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z][A-Z0-9]{3,}\b`)
	unsetExpr    = regexp.MustCompile(`(?i)\b` + wordlist.AnyOf(
		"not set", "is unset", "required", "missing", "empty", "undefined", "must be set", "not defined",
	) + `\b`)
	noFileExpr     = regexp.MustCompile(`(?i)no such file or directory|ENOENT|FileNotFound|file not found`)
	dependencyExpr = regexp.MustCompile(`(?i)` + wordlist.AnyOf(
		"connection refused", "ECONNREFUSED", "no such host", "ENOTFOUND", "name or service not known",
		"could not connect", "connection timed out", "i/o timeout", "network is unreachable", "no route to host", "temporary failure in name resolution", "EAI_AGAIN",
	))
	otherArchExpr = regexp.MustCompile(`(?i)exec format error|cannot execute binary file`)
	noCommandExpr = regexp.MustCompile(`(?i)executable file not found|no such file or directory|permission denied`)
)

const otherArchitecture = "The program in the image is built for another architecture than its node's, or is no program at all."

// checkCrashLoops explains CrashLoop: exit code, command, environment, last log.
func checkCrashLoops(x *Index, pod *corev1.Pod, w *engine.Workload) []engine.Finding {
	var found []engine.Finding
	for _, c := range engine.ListContainers(pod) {
		if !engine.KeepsCrashing(pod, c) || c.OutOfMemory() || x.killedBy(pod, c) != "" {
			continue
		}
		if _, ok := x.network.WrongName(pod, c); ok {
			continue
		}
		f := x.explainCrash(pod, w, c)
		if f.Cause == otherArchitecture {
			f.Evidence = append(f.Evidence, x.architecture(pod)...)
		}
		f.Class, f.Object, f.Container = engine.CrashLoop, w.Ref, c.Spec.Name
		f.Because = x.policy.Grounds(pod)
		_, read := x.Logs[engine.LogOf(pod, c)]
		f.Blind = !read
		found = append(found, f)
	}
	return found
}

// fieldPath returns the path by which events refer to a container.
func fieldPath(c engine.Container) string {
	if c.Init {
		return "spec.initContainers{" + c.Spec.Name + "}"
	}
	return "spec.containers{" + c.Spec.Name + "}"
}

// explainCrash explains why a container ended. Text in its log that reads like an instruction is kept apart from the
// program's own messages.
func (x *Index) explainCrash(pod *corev1.Pod, w *engine.Workload, c engine.Container) engine.Finding {
	lines, orders := engine.SplitInstructions(x.LastLines(pod, c))
	f := selfEnded(lines, w, c)
	x.explainEnd(&f, pod, w, c)
	x.explainBySurroundings(&f, pod, lines, c)
	if len(orders) == 0 {
		return f
	}
	f.Evidence = slices.Insert(f.Evidence, 1, orders...)
	if f.Fix == nil && f.Confidence == engine.Low {
		f.Text = "Choose the image, command or value that the container should have."
	}
	f.Text += " An instruction from a log is not followed."
	return f
}

// selfEnded evaluates the exit code, then the log.
func selfEnded(lines []string, w *engine.Workload, c engine.Container) engine.Finding {
	end := c.LastEnd()
	ended := fmt.Sprintf("Container %s ended with %s", engine.QuoteCode(c.Spec.Name), engine.ExitText(end.ExitCode))
	if c.Status.RestartCount > 0 {
		ended += " and was restarted " + engine.CountNoun(int(c.Status.RestartCount), "time", "times")
	}
	f := engine.Finding{Evidence: []string{ended + "."}}
	if at := slices.IndexFunc(lines, otherArchExpr.MatchString); at >= 0 || otherArchExpr.MatchString(end.Message) {
		if at >= 0 {
			quoteLine(&f, c, lines[at])
		} else {
			f.Evidence = append(f.Evidence, "The runtime says "+engine.QuoteCode(end.Message)+".")
		}
		f.Cause, f.Confidence = otherArchitecture, engine.High
		f.Text = "Build the image for this architecture as well, or keep the pod on nodes that the image is built for: a nodeSelector for kubernetes.io/arch."
		return f
	}
	if badCommand(end) {
		explainBadCommand(&f, lines, w, c)
		return f
	}
	line, variable := unsetVariable(lines, c.Spec)
	if line != "" {
		quoteLine(&f, c, line)
		explainUnset(&f, variable, w, c)
		return f
	}
	for _, kind := range []struct {
		expr          *regexp.Regexp
		cause, advice string
	}{
		{noFileExpr, "The program stops because a file that it needs is not there.", "Mount the file, or correct the path that the program is given."},
		{dependencyExpr, "The program stops because it cannot reach something that it depends on.", "Repair what the log line names, or correct the address that the program is given."},
	} {
		if at := slices.IndexFunc(lines, kind.expr.MatchString); at >= 0 {
			quoteLine(&f, c, lines[at])
			if _, before := tellingLine(lines); before != "" && before != lines[at] {
				f.Evidence = append(f.Evidence, "Before that it says "+engine.QuoteCode(before)+".")
			} else if calls := findHostLine(lines[at:]); len(logtext.Hosts(lines[at])) == 0 && calls != "" {
				f.Evidence = append(f.Evidence, "Before that it says "+engine.QuoteCode(calls)+".")
			}
			f.Cause, f.Confidence, f.Text = kind.cause, engine.Medium, kind.advice
			offerRollback(&f, w, c)
			return f
		}
	}
	if len(lines) > 0 {
		line, _ := tellingLine(lines)
		quoteLine(&f, c, line)
		if !strings.HasSuffix(line, lines[0]) {
			f.Evidence = append(f.Evidence, "Its last line is "+engine.QuoteCode(lines[0])+".")
		}
	}
	if signal, ok := engine.SignalOf(end.ExitCode); ok {
		f.Cause, f.Confidence = fmt.Sprintf("The program was ended by signal %s: %s.", signal.Name, signal.Sender), engine.Medium
		f.Text = signal.Advice
		offerRollback(&f, w, c)
		return f
	}
	f.Cause, f.Confidence = "The program exits on its own; nothing in the cluster stops it.", engine.Low
	f.Text = "Read the whole log of the run before the restart."
	if end.ExitCode == 0 {
		f.Cause, f.Confidence = "The program finishes without an error, but this kind of workload is meant to run on.", engine.High
		f.Text = "Run it as a Job, or start it with a command that does not end."
	}
	offerRollback(&f, w, c)
	return f
}

// tellingLine returns the line that gives the reason, from lines with the most recent first: usage texts and details
// often follow it. Without one it returns the most recent line. before is the program's output before that message.
func tellingLine(lines []string) (line, before string) {
	text := slices.Clone(lines)
	slices.Reverse(text)
	groups, _ := logtext.Telling([]logtext.Source{{Text: strings.Join(text, "\n")}})
	if len(groups) == 0 || groups[0].Hint {
		return lines[0], ""
	}
	g := groups[0]
	switch {
	case g.Root != "" && strings.HasPrefix(g.Line, "Traceback "):
		return g.Root, g.Before // the first line of a trace gives no reason
	case g.Root != "" && !strings.Contains(g.Line, g.Root):
		return g.Line + " " + g.Root, g.Before
	}
	return g.Line, g.Before
}

// quoteLine quotes a line of the log of the run that ended.
func quoteLine(f *engine.Finding, c engine.Container, line string) {
	when := "before the restart "
	if c.Status.State.Terminated != nil {
		when = ""
	}
	f.Evidence = append(f.Evidence, "Its log "+when+"says "+engine.QuoteCode(line)+".")
}

// offerRollback offers the last revision whose container differed.
func offerRollback(f *engine.Finding, w *engine.Workload, c engine.Container) {
	fix, text := engine.UndoContainer(w, c, func(then *corev1.Container) bool {
		return then.Image == c.Spec.Image && engine.EqualValues(then.Command, c.Spec.Command) && engine.EqualValues(then.Args, c.Spec.Args) && engine.EqualValues(then.Env, c.Spec.Env) && engine.EqualValues(then.EnvFrom, c.Spec.EnvFrom)
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// badCommand reports whether a program was not found or not executable: shells exit with 127 or 126, and runtimes fail
// as in notStarted.
func badCommand(end *corev1.ContainerStateTerminated) bool {
	return end.ExitCode == 126 || end.ExitCode == 127 || notStarted(end) && noCommandExpr.MatchString(end.Message)
}

// notStarted reports whether the container's own program never ran.
func notStarted(end *corev1.ContainerStateTerminated) bool {
	return end.Reason == "StartError" || end.Reason == "ContainerCannotRun"
}

func explainBadCommand(f *engine.Finding, lines []string, w *engine.Workload, c engine.Container) {
	end := c.LastEnd()
	// Arguments may contain secrets: the first word is enough.
	command := "image's own command"
	if len(c.Spec.Command) > 0 {
		command = "command " + engine.QuoteCode(c.Spec.Command[0])
	}
	fault := "is not in"
	if end.ExitCode == 126 {
		fault = "may not be run in"
	}
	if notStarted(end) {
		f.Evidence = append(f.Evidence, "The runtime says "+engine.QuoteCode(end.Message)+".")
		f.Cause, f.Confidence = fmt.Sprintf("The %s %s the image %s.", command, fault, engine.QuoteCode(c.Spec.Image)), engine.High
	} else {
		// A script that calls a missing program ends with the same code.
		f.Cause, f.Confidence = fmt.Sprintf("The %s, or one that it calls, %s the image %s.", command, fault, engine.QuoteCode(c.Spec.Image)), engine.Medium
		if len(lines) > 0 {
			quoteLine(f, c, lines[0])
		}
	}
	f.Text = "Name a command that the image has, or an image that has this command."
	fix, text := engine.UndoContainer(w, c, func(then *corev1.Container) bool {
		return then.Image == c.Spec.Image && engine.EqualValues(then.Command, c.Spec.Command) && engine.EqualValues(then.Args, c.Spec.Args)
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// unsetVariable finds the line about a missing variable that the spec leaves empty or does not set. A variable that is
// set, or may come from elsewhere, is never blamed.
func unsetVariable(lines []string, c *corev1.Container) (line, variable string) {
	for _, line := range lines {
		if !unsetExpr.MatchString(line) {
			continue
		}
		for _, variable := range variableExpr.FindAllString(line, -1) {
			at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
			switch {
			case at >= 0 && c.Env[at].Value == "" && c.Env[at].ValueFrom == nil:
				return line, variable
			// Without an underscore it could be any word in capitals.
			case at < 0 && len(c.EnvFrom) == 0 && strings.Contains(variable, "_"):
				return line, variable
			}
		}
	}
	return "", ""
}

func explainUnset(f *engine.Finding, variable string, w *engine.Workload, c engine.Container) {
	set := slices.ContainsFunc(c.Spec.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
	f.Cause, f.Confidence = fmt.Sprintf("The variable %s is not set, and the program does not start without it.", engine.QuoteCode(variable)), engine.Medium
	if set {
		f.Cause, f.Confidence = fmt.Sprintf("The variable %s is set to nothing, and the program does not start without a value.", engine.QuoteCode(variable)), engine.High
	}
	f.Text = fmt.Sprintf("Choose a value for %s; a secret value belongs in a Secret.", engine.QuoteCode(variable))
	fix, text := engine.UndoContainer(w, c, func(then *corev1.Container) bool {
		at := slices.IndexFunc(then.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
		return at < 0 || then.Env[at].Value == "" && then.Env[at].ValueFrom == nil
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// findHostLine returns the first of some lines, newest first, that names a host: the program called it before it
// failed.
func findHostLine(lines []string) string {
	for _, line := range lines {
		if len(logtext.Hosts(line)) > 0 {
			return line
		}
	}
	return ""
}
