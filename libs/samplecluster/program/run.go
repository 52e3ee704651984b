package program

import (
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// shells are the commands that every image has.
var shells = []string{"sh", "bash", "sleep", "env"}

// Container is a container in which a program is to run.
type Container struct {
	Spec *corev1.Container
	// Env holds its resolved variables; see ResolveEnvironment.
	Env map[string]string
	// Reach returns why the pod cannot reach host:port, or "" when it can. It is called only for a program with a Peer.
	Reach func(address string) string
}

// Outcome is the behaviour of a program in a container that starts now. Its zero value is one that runs and serves
// nothing.
type Outcome struct {
	Ends            bool
	After           time.Duration // from the start to the end
	ExitCode        int32
	Reason, Message string // of the termination; empty: the usual reason of the exit code
	Lines           []string
	Repeat          string // written every Every while it runs
	Every           time.Duration
	Unhealthy       bool     // it runs but cannot serve
	Program         *Program // nil when the image is not known
}

// Run works out how the program fares in c.
func (p *Program) Run(c Container) Outcome {
	out := Outcome{Program: p, Lines: p.Start, Repeat: p.Repeat, Every: p.Every}
	end := func(code int32, after time.Duration, reason, line string) Outcome {
		out.Ends, out.ExitCode, out.After, out.Reason = true, code, after, reason
		out.Lines = append(slices.Clone(p.Start), line)
		return out
	}
	if executable, script := p.missingCommand(c.Spec); executable != "" {
		out.Ends, out.ExitCode, out.Reason, out.Lines = true, 128, "StartError", nil
		out.Message = fmt.Sprintf("failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: exec: %q: executable file not found in $PATH", executable)
		return out
	} else if script != "" {
		out.Lines, out.Ends, out.ExitCode = []string{fmt.Sprintf("/bin/sh: 1: %s: not found", script)}, true, 127
		return out
	}
	for _, need := range p.Needs {
		if c.Env[need] == "" { // what is missing has kept the container from starting
			return end(1, time.Second, "", fmt.Sprintf("FATAL configuration: required environment variable %s is empty", need))
		}
	}
	if limit, ok := c.Spec.Resources.Limits[corev1.ResourceMemory]; ok && p.Memory.Cmp(limit) > 0 {
		return end(137, 4*time.Second, "OOMKilled", "INFO loading working set into memory")
	}
	if p.Peer != "" {
		address := c.Env[p.Peer]
		if why := c.Reach(address); why != "" {
			out.Unhealthy, out.Repeat, out.Every = true, "ERROR "+why, 5*time.Second
			if p.WaitsForPeer {
				out.Repeat = "waiting for " + address + ": " + why
			}
			return out
		}
		if p.WaitsForPeer {
			out.Ends, out.After = true, 0
			return out
		}
	}
	if p.Runs > 0 {
		out.Ends, out.After, out.ExitCode = true, p.Runs, p.Exit
	}
	return out
}

// missingCommand returns the part of the container's command that the image does not have: an executable, or the first
// word of a shell's script.
func (p *Program) missingCommand(spec *corev1.Container) (executable, script string) {
	if slices.Contains(p.Commands, Any) {
		return "", ""
	}
	words := slices.Concat(spec.Command, spec.Args)
	if len(spec.Command) > 0 && !slices.Contains(shells, path.Base(spec.Command[0])) {
		if !slices.Contains(p.Commands, path.Base(spec.Command[0])) {
			return spec.Command[0], ""
		}
		return "", ""
	}
	if !p.ChecksScripts || len(words) < 3 || words[1] != "-c" {
		return "", ""
	}
	if parts := strings.Fields(words[2]); len(parts) > 0 && !slices.Contains(p.Commands, parts[0]) {
		return "", parts[0]
	}
	return "", ""
}

// ProbeFailure returns, in the kubelet's words, why a probe of the container fails, or "" when it passes. Commands and gRPC
// always pass.
func (o Outcome) ProbeFailure(probe *corev1.Probe, spec *corev1.Container, podIP string) string {
	if o.Program == nil || probe == nil {
		return ""
	}
	var want intstr.IntOrString
	switch {
	case probe.HTTPGet != nil:
		want = probe.HTTPGet.Port
	case probe.TCPSocket != nil:
		want = probe.TCPSocket.Port
	default:
		return ""
	}
	port := ContainerPort(want, spec)
	address := net.JoinHostPort(podIP, strconv.Itoa(int(port)))
	if o.Program.Port != AnyPort && port != o.Program.Port {
		if probe.HTTPGet != nil {
			return fmt.Sprintf("Get \"http://%s%s\": dial tcp %s: connect: connection refused", address, probe.HTTPGet.Path, address)
		}
		return fmt.Sprintf("dial tcp %s: connect: connection refused", address)
	}
	if probe.HTTPGet == nil {
		return ""
	}
	if !slices.Contains(o.Program.Paths, Any) && !slices.Contains(o.Program.Paths, probe.HTTPGet.Path) {
		return "HTTP probe failed with statuscode: 404"
	}
	if o.Unhealthy {
		return "HTTP probe failed with statuscode: 503"
	}
	return ""
}

// ContainerPort returns the number of a probed port, 0 for a name that the container does not declare.
func ContainerPort(want intstr.IntOrString, spec *corev1.Container) int32 {
	if want.Type == intstr.Int {
		return want.IntVal
	}
	for _, port := range spec.Ports {
		if port.Name == want.StrVal {
			return port.ContainerPort
		}
	}
	return 0
}
