package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mlp-platform/platform/clients/mlp-cli/internal/output"
	"github.com/mlp-platform/platform/libs/cli/fault"
	"github.com/mlp-platform/platform/libs/cli/invocation"
)

// stackScript is the script that mlp stack runs: it finds the engine and compose, makes secrets and images, and waits
// for health.
const stackScript = "scripts/up.sh"

// stack is a checkout of the platform that can be started as containers.
type stack struct {
	env  *Env
	root string
}

// findStack finds the checkout: the requested one, else upwards from this folder, else upwards from the program.
func (e *Env) findStack(asked string) (*stack, error) {
	if asked != "" {
		if isCheckout(asked) {
			return &stack{e, asked}, nil
		}
		return &stack{env: e}, fault.New("no_checkout", "%s is no checkout of the platform: it has no %s and compose.yaml", asked, stackScript)
	}
	starts := []string{}
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	if program, err := os.Executable(); err == nil {
		starts = append(starts, filepath.Dir(program))
	}
	for _, dir := range starts {
		for ; ; dir = filepath.Dir(dir) {
			if isCheckout(dir) {
				return &stack{e, dir}, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return &stack{env: e}, fault.New("no_checkout", "neither this folder nor mlp is part of a checkout of the platform, which mlp stack needs").
		WithHint("name one with --dir DIR")
}

func isCheckout(dir string) bool {
	for _, name := range []string{stackScript, "compose.yaml"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.IsDir() {
			return false
		}
	}
	return true
}

// command prepares one run of the script.
func (s *stack) command(ctx context.Context, line ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.root, stackScript), line...) //nolint:gosec // the checkout's own script
	cmd.Dir = s.root
	cmd.WaitDelay = 20 * time.Second
	return cmd
}

// run runs the script and shows its messages to people.
func (s *stack) run(ctx context.Context, line ...string) error {
	return s.execute(ctx, io.Discard, line...)
}

// stream shows the script's output as it comes.
func (s *stack) stream(ctx context.Context, line ...string) error {
	return s.execute(ctx, s.env.Out, line...)
}

// output returns the output of the script.
func (s *stack) output(ctx context.Context, line ...string) (string, error) {
	var out bytes.Buffer
	err := s.execute(ctx, &out, line...)
	return out.String(), err
}

// execute runs the script; its last error message becomes the fault's message, and earlier ones are printed.
func (s *stack) execute(ctx context.Context, out io.Writer, line ...string) error {
	cmd := s.command(ctx, line...)
	if err := ownGroup(cmd); err != nil {
		return err
	}
	stdout := &recordingWriter{w: out}
	cmd.Stdout = stdout
	talk, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("read what %s says: %w", stackScript, err)
	}
	if err := cmd.Start(); err != nil {
		return fault.New("stack_unstarted", "cannot run %s: %v", filepath.Join(s.root, stackScript), err)
	}
	complaint, last := "", ""
	lines := bufio.NewScanner(talk)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		last = lines.Text()
		if c, ok := strings.CutPrefix(last, "up: "); ok {
			complaint = c
			continue
		}
		s.env.Talk("%s", last)
	}
	_, _ = io.Copy(io.Discard, talk) // a line too long to scan must not block the script
	err = cmd.Wait()
	switch {
	case stdout.err != nil: // such as a closed pipe, by which the script fails too
		return stdout.err
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fault.New("interrupted", "interrupted: %s", cmpOr(complaint, "the stack may be half changed; see: mlp stack status"))
	}
	f := fault.New("stack_failed", "%s", cmpOr(complaint, cmpOr(last, "scripts/up.sh "+strings.Join(line, " ")+" failed: "+err.Error())))
	if strings.Contains(f.Message, "no Docker here") || strings.Contains(f.Message, "no Docker engine") {
		f.Code = "no_docker"
		if start, ok := invocation.Current().StartPlatform(); ok {
			return f.WithHint("the platform runs without Docker too: %s", start)
		}
		return f.WithHint("the platform runs without Docker too")
	}
	return f
}

// recordingWriter remembers the first error of the writer below.
type recordingWriter struct {
	w   io.Writer
	err error
}

func (r *recordingWriter) Write(p []byte) (int, error) {
	n, err := r.w.Write(p)
	if r.err == nil {
		r.err = err
	}
	return n, err
}

// engine reports whether an engine answers, also one that an earlier mlp stack up started.
func (s *stack) engine(ctx context.Context) (ok bool, detail string) {
	hosts := []string{s.env.Getenv("DOCKER_HOST")}
	if hosts[0] == "" {
		hosts = append(hosts, "unix://"+filepath.Join(s.root, ".cache", "docker", "run", "docker.sock"))
	}
	for _, host := range hosts {
		cmd := exec.CommandContext(ctx, "docker", "version", "--format", "{{.Server.Version}}")
		cmd.Env = os.Environ()
		if host != "" {
			cmd.Env = append(cmd.Env, "DOCKER_HOST="+host)
		}
		if out, err := cmd.Output(); err == nil {
			return true, "Docker " + output.Clean(strings.TrimSpace(string(out)))
		} else if errors.Is(err, exec.ErrNotFound) {
			return false, "no docker command here"
		}
	}
	return false, "none answers; mlp stack up starts a private one where it may"
}

// container is one line of docker compose ps.
type container struct {
	Service, State, Health string
	ExitCode               int
	Publishers             []struct {
		URL           string
		TargetPort    int
		PublishedPort int
	}
}

// ports returns the published ports, without repeats.
func (c container) ports() []string {
	ports := []string{}
	for _, p := range c.Publishers {
		port := p.URL + ":" + strconv.Itoa(p.PublishedPort) + "→" + strconv.Itoa(p.TargetPort)
		if p.PublishedPort != 0 && (len(ports) == 0 || ports[len(ports)-1] != port) {
			ports = append(ports, port)
		}
	}
	return ports
}

// readContainers reads docker compose ps --format json: a document a line since 2.21, a list before.
func readContainers(text string) ([]container, error) {
	out := []container{}
	if strings.HasPrefix(strings.TrimSpace(text), "[") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, fault.New("compose_unreadable", "docker compose ps printed no JSON: %v", err)
		}
		return out, nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	for {
		var c container
		switch err := dec.Decode(&c); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fault.New("compose_unreadable", "docker compose ps printed no JSON: %v", err)
		}
		out = append(out, c)
	}
}
