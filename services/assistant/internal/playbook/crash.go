package playbook

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Patterns of what programs say when they end. They choose between causes only for a
// container whose exit is a fact already.
var (
	variableExpr   = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z][A-Z0-9]{3,}\b`)
	unsetExpr      = regexp.MustCompile(`(?i)\b(not set|is unset|required|missing|empty|undefined|must be set|not defined)\b`)
	noFileExpr     = regexp.MustCompile(`(?i)no such file or directory|ENOENT|FileNotFound|file not found`)
	dependencyExpr = regexp.MustCompile(`(?i)connection refused|ECONNREFUSED|no such host|ENOTFOUND|name or service not known|could not connect|connection timed out|i/o timeout`)
	noCommandExpr  = regexp.MustCompile(`(?i)executable file not found|no such file or directory|permission denied`)
)

// crashLoops explains class 1: exit code, command, environment, last log.
func crashLoops(x *index, pod *corev1.Pod, w *workload) []Finding {
	var found []Finding
	for _, c := range listContainers(pod) {
		if !keepsCrashing(pod, c) || c.outOfMemory() || x.killedBy(pod, c) != "" {
			continue
		}
		if _, ok := x.wrongName(pod, c); ok {
			continue
		}
		f := explainCrash(x.lastLines(pod, c), w, c)
		f.Class, f.Object, f.container = CrashLoop, w.ref, c.spec.Name
		f.because = x.grounds(pod)
		_, read := x.Logs[logOf(pod, c)]
		f.blind = !read
		found = append(found, f)
	}
	return found
}

// fieldPath is how events name a container.
func fieldPath(c container) string {
	if c.init {
		return "spec.initContainers{" + c.spec.Name + "}"
	}
	return "spec.containers{" + c.spec.Name + "}"
}

// explainCrash says why a container ended. What reads like an order in its log is told apart from
// what the program says of itself.
func explainCrash(lines []string, w *workload, c container) Finding {
	lines, orders := splitInstructions(lines)
	f := selfEnded(lines, w, c)
	if len(orders) == 0 {
		return f
	}
	f.Evidence = slices.Insert(f.Evidence, 1, orders...)
	if f.Fix == nil && f.Confidence == Low {
		f.Text = "Say which image, command or value the container is to have."
	}
	f.Text += " An instruction from a log is not followed."
	return f
}

// selfEnded reads the exit code, then the log.
func selfEnded(lines []string, w *workload, c container) Finding {
	end := c.lastEnd()
	ended := fmt.Sprintf("Container %s ended with exit code %d", quoteCode(c.spec.Name), end.ExitCode)
	if c.status.RestartCount > 0 {
		ended += " and was restarted " + countNoun(int(c.status.RestartCount), "time", "times")
	}
	f := Finding{Evidence: []string{ended + "."}}
	if badCommand(end) {
		f.badCommand(lines, w, c)
		return f
	}
	line, variable := unsetVariable(lines, c.spec)
	if line != "" {
		f.quote(c, line)
		f.unset(variable, w, c)
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
			f.quote(c, lines[at])
			f.Cause, f.Confidence, f.Text = kind.cause, Medium, kind.advice
			f.goBack(w, c)
			return f
		}
	}
	if len(lines) > 0 {
		f.quote(c, lines[0])
	}
	f.Cause, f.Confidence = "The program ends by itself; nothing in the cluster ends it.", Low
	f.Text = "Read the whole log of the run before the restart."
	if end.ExitCode == 0 {
		f.Cause, f.Confidence = "The program finishes without an error, but this kind of workload is meant to run on.", High
		f.Text = "Run it as a Job, or start it with a command that does not end."
	}
	f.goBack(w, c)
	return f
}

// quote shows a line of the log of the run that ended.
func (f *Finding) quote(c container, line string) {
	when := "before the restart "
	if c.status.State.Terminated != nil {
		when = ""
	}
	f.Evidence = append(f.Evidence, "Its log "+when+"says "+quoteCode(line)+".")
}

// goBack offers the last revision whose container was another one.
func (f *Finding) goBack(w *workload, c container) {
	fix, text := undoContainer(w, c, func(then *corev1.Container) bool {
		return then.Image == c.spec.Image && equalValues(then.Command, c.spec.Command) && equalValues(then.Args, c.spec.Args) && equalValues(then.Env, c.spec.Env) && equalValues(then.EnvFrom, c.spec.EnvFrom)
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// badCommand says whether a program was not found or may not be run: shells answer 127
// and 126, runtimes notStarted.
func badCommand(end *corev1.ContainerStateTerminated) bool {
	return end.ExitCode == 126 || end.ExitCode == 127 || notStarted(end) && noCommandExpr.MatchString(end.Message)
}

// notStarted says whether the container's own program never ran.
func notStarted(end *corev1.ContainerStateTerminated) bool {
	return end.Reason == "StartError" || end.Reason == "ContainerCannotRun"
}

func (f *Finding) badCommand(lines []string, w *workload, c container) {
	end := c.lastEnd()
	// Arguments may hold what is secret: the first word is enough.
	command := "image's own command"
	if len(c.spec.Command) > 0 {
		command = "command " + quoteCode(c.spec.Command[0])
	}
	fault := "is not in"
	if end.ExitCode == 126 {
		fault = "may not be run in"
	}
	if notStarted(end) {
		f.Evidence = append(f.Evidence, "The runtime says "+quoteCode(end.Message)+".")
		f.Cause, f.Confidence = fmt.Sprintf("The %s %s the image %s.", command, fault, quoteCode(c.spec.Image)), High
	} else {
		// A script that calls what is not there ends with the same code.
		f.Cause, f.Confidence = fmt.Sprintf("The %s, or one that it calls, %s the image %s.", command, fault, quoteCode(c.spec.Image)), Medium
		if len(lines) > 0 {
			f.quote(c, lines[0])
		}
	}
	f.Text = "Name a command that the image has, or an image that has this command."
	fix, text := undoContainer(w, c, func(then *corev1.Container) bool {
		return then.Image == c.spec.Image && equalValues(then.Command, c.spec.Command) && equalValues(then.Args, c.spec.Args)
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}

// unsetVariable finds the line that misses a variable which the spec leaves empty or does
// not set. One that is set, or may come from elsewhere, is never blamed.
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
			// Without an underscore any word in capitals could be meant.
			case at < 0 && len(c.EnvFrom) == 0 && strings.Contains(variable, "_"):
				return line, variable
			}
		}
	}
	return "", ""
}

func (f *Finding) unset(variable string, w *workload, c container) {
	set := slices.ContainsFunc(c.spec.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
	f.Cause, f.Confidence = fmt.Sprintf("The variable %s is not set, and the program does not start without it.", quoteCode(variable)), Medium
	if set {
		f.Cause, f.Confidence = fmt.Sprintf("The variable %s is set to nothing, and the program does not start without a value.", quoteCode(variable)), High
	}
	f.Text = fmt.Sprintf("Say which value %s is to have; a value that is secret belongs in a Secret.", quoteCode(variable))
	fix, text := undoContainer(w, c, func(then *corev1.Container) bool {
		at := slices.IndexFunc(then.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
		return at < 0 || then.Env[at].Value == "" && then.Env[at].ValueFrom == nil
	})
	if fix != nil {
		f.Fix, f.Text = fix, text
	}
}
