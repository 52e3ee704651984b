package engine

import "fmt"

// Signal describes a signal that killed a program.
type Signal struct {
	Name   string
	Sender string // its usual sender, as the end of a sentence
	Advice string
}

const signalBase = 128 // shells and runtimes report 128 + number

// signals lists those that end programs on Linux, by number.
var signals = map[int32]Signal{
	1:  {"SIGHUP", "its terminal or its parent went away", "Look at how the program is started."},
	2:  {"SIGINT", "something in the container interrupted it", "Look at what else runs in the container, and at its stop signal."},
	3:  {"SIGQUIT", "something in the container, or the image's stop signal, asked it to quit", "Look at the image's stop signal and at what asks the container to stop."},
	4:  {"SIGILL", "it ran an instruction that this processor does not have, or was built with a trap", "Check that the image is built for the processors of the nodes."},
	6:  {"SIGABRT", "it aborted, after a failed assertion or heap corruption", "Read what it wrote before; the fault is in the program or its native libraries."},
	7:  {"SIGBUS", "it read memory that is no longer there, often a mapped file or a full /dev/shm", "Check the files that it maps, and the size of shared memory."},
	8:  {"SIGFPE", "it made an arithmetic error, such as a division by zero", "The fault is in the program; go back to a version that ran."},
	9:  {"SIGKILL", "it was killed at once, by the kubelet after the grace period, by the kernel for memory, or by a person", "Look at the events of the pod, at memory of the node and at how long the program takes to stop."},
	11: {"SIGSEGV", "it touched memory that is not its own, so the fault is in the program or its native libraries", "Go back to a version that ran, or collect a core dump; more memory does not help."},
	13: {"SIGPIPE", "it wrote to a pipe or connection whose reader is gone", "Let the program handle closed connections."},
	14: {"SIGALRM", "a timer that it set ran out", "Look for the time limit that the program sets itself."},
	15: {"SIGTERM", "it was asked to stop, by the kubelet after a failed probe, an eviction or a deletion, or by a parent in the container", "Look at the events of the pod for who stopped it."},
	24: {"SIGXCPU", "it used up its limit of processor time", "Raise the ulimit, or let it do less."},
	25: {"SIGXFSZ", "it wrote a file larger than its limit", "Raise the ulimit, or rotate the file."},
	31: {"SIGSYS", "it made a system call that seccomp forbids", "Compare the seccomp profile with what the program needs."},
}

// SignalOf returns the signal behind an exit code above 128; ok is false for others.
func SignalOf(code int32) (Signal, bool) {
	if code <= signalBase || code > signalBase+64 {
		return Signal{}, false
	}
	if s, known := signals[code-signalBase]; known {
		return s, true
	}
	return Signal{fmt.Sprintf("number %d", code-signalBase), "something sent it to the program", "Look at what else runs in the container."}, true
}

// ExitText formats an exit code with the signal that it encodes.
func ExitText(code int32) string {
	if s, ok := SignalOf(code); ok {
		return fmt.Sprintf("exit code %d (signal %s)", code, s.Name)
	}
	return fmt.Sprintf("exit code %d", code)
}
