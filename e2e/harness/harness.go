// Package harness starts the built platform binary as a user would and talks to it over the wire.
package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Platform is one running (or stopped) one-process platform.
type Platform struct {
	Dir   string            // data directory
	Env   map[string]string // the output of `platform env`, plus the addresses chosen here
	extra []string
	bin   string

	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	mu   sync.Mutex    // guards out
	out  bytes.Buffer
}

// Root returns the repository's root.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.work above the working directory")
	return ""
}

// Bin returns the path of a built binary; `make build` makes it.
func Bin(t testing.TB, name string) string {
	t.Helper()
	p := filepath.Join(Root(t), "bin", name)
	if _, err := os.Stat(p); err != nil {
		t.Fatalf("%s is not built: run make build", p)
	}
	return p
}

// New prepares a platform in a fresh directory on free ports; extra are further NAME=value settings.
func New(t testing.TB, extra ...string) *Platform {
	t.Helper()
	dir := t.TempDir()
	// The embedded Postgres drops root, so its user must be able to reach the directory.
	for d := dir; strings.HasPrefix(d, os.TempDir()+"/"); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p := preparePlatform(t, dir, extra)
	t.Cleanup(func() {
		p.Kill()
		// A killed platform's Postgres notices a moment later, and still writes to the directory.
		Eventually(t, 20*time.Second, p.PostgresEnded)
	})
	return p
}

// PostgresEnded returns nil once no embedded Postgres runs on the platform's directory.
func (p *Platform) PostgresEnded() error {
	lock, err := os.ReadFile(filepath.Join(p.Dir, "postgres", "data", "postmaster.pid"))
	if err != nil {
		return nil // it removed its lock file, or never started
	}
	pid, _, _ := strings.Cut(string(lock), "\n")
	if _, err := os.Stat(filepath.Join("/proc", strings.TrimSpace(pid))); err == nil {
		return fmt.Errorf("process %s of the embedded Postgres still runs on %s", pid, p.Dir)
	}
	return nil
}

func preparePlatform(t testing.TB, dir string, extra []string) *Platform {
	t.Helper()
	ports := FreePorts(t, 11)
	p := &Platform{Dir: filepath.Join(dir, "data"), bin: Bin(t, "platform"), Env: map[string]string{}}
	p.extra = append([]string{
		"PLATFORM_DATA_DIR=" + p.Dir,
		"INFERENCE_ADDR=" + ports[0], "CONTROL_PLANE_ADDR=" + ports[1], "TRACKER_ADDR=" + ports[2],
		"ORCHESTRATOR_ADDR=" + ports[3], "NATS_ADDR=" + ports[4], "EVIDENCE_API_ADDR=" + ports[5],
		"ASSISTANT_ADDR=" + ports[6], "DASHBOARD_ADDR=" + ports[7], "DASHBOARD_TOOLS_ADDR=" + ports[8],
		"BUS_ADDR=" + ports[9], "INFERENCE_GRPC_ADDR=" + ports[10],
	}, extra...)
	return p
}

// The ports handed out lie below the kernel's ephemeral range, so that no process gets one by chance before its user
// listens. Each test process claims a band of them, as packages run side by side.
const firstPort, bandPorts, bands = 12_002, 500, 40

// DefaultPorts are those of a platform without configuration. None is handed out: some tests start one that has them.
var DefaultPorts = []int{14200, 15000, 18001, 18002, 18003, 18004, 18005}

// claimBand listens on the first port of a band, which reserves the band while this process lives.
var claimBand = sync.OnceValues(func() (net.Listener, error) {
	for _, band := range rand.Perm(bands) {
		port := firstPort + band*bandPorts
		if slices.Contains(DefaultPorts, port) {
			continue
		}
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("all %d bands of ports from %d are taken", bands, firstPort)
})

// given are the addresses that this process handed out.
var given sync.Map

// FreePortRow returns the first of n consecutive free ports of 127.0.0.1, none of which is handed out elsewhere.
func FreePortRow(t testing.TB, n int) int {
	t.Helper()
	claim, err := claimBand()
	if err != nil {
		t.Fatal(err)
	}
	band := claim.Addr().(*net.TCPAddr).Port
	for range 1000 {
		port := band + 1 + rand.IntN(bandPorts-n)
		free := 0
		for ; free < n; free++ {
			if slices.Contains(DefaultPorts, port+free) {
				break
			}
			addr := fmt.Sprintf("127.0.0.1:%d", port+free)
			if _, taken := given.LoadOrStore(addr, true); taken {
				break
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				break
			}
			l.Close()
		}
		if free == n {
			return port
		}
	}
	t.Fatalf("no %d free ports in a row in the %d from %d", n, bandPorts, band)
	return 0
}

// FreePorts finds n loopback addresses without a listener.
func FreePorts(t testing.TB, n int) (addrs []string) {
	t.Helper()
	for range n {
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", FreePortRow(t, 1)))
	}
	return addrs
}

// Environ returns the environment of commands against this platform.
func (p *Platform) Environ() []string {
	env := append(os.Environ(), p.extra...)
	for k, v := range p.Env {
		env = append(env, k+"="+v)
	}
	return env
}

// Set adds or replaces a setting for the next start.
func (p *Platform) Set(name, value string) { p.extra = append(p.extra, name+"="+value) }

// Start runs the binary and waits until it reports that it is ready, at most timeout.
func (p *Platform) Start(t testing.TB, timeout time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	p.Launch(t)
	took := p.WaitOutput(t, "ready in", timeout, begin)
	p.LoadEnv(t)
	return took
}

// Launch runs the binary without waiting.
func (p *Platform) Launch(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	p.out.Reset()
	p.mu.Unlock()
	cmd := exec.Command(p.bin)
	cmd.Env = append(os.Environ(), p.extra...)
	// A new process group, so that a kill of the test does not reach half of it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = pw, pw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.cmd, p.done = cmd, make(chan struct{})
	go func() {
		sc := bufio.NewScanner(pr)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			p.mu.Lock()
			p.out.WriteString(sc.Text() + "\n")
			p.mu.Unlock()
		}
	}()
	done := p.done
	go func() { _ = cmd.Wait(); pw.Close(); close(done) }()
}

// WaitOutput waits until the output holds text and returns the time since begin.
func (p *Platform) WaitOutput(t testing.TB, text string, timeout time.Duration, begin time.Time) time.Duration {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for time.Now().Before(deadline) {
		if strings.Contains(p.Output(), text) {
			return time.Since(begin)
		}
		select {
		case <-p.done:
			t.Fatalf("platform ended before it said %q:\n%s%s", text, p.Output(), p.LogTail())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("platform did not say %q within %s:\n%s%s", text, timeout, p.Output(), p.LogTail())
	return 0
}

// Output returns the process's output since its last start.
func (p *Platform) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// LogTail returns the end of the platform's log file, for failures.
func (p *Platform) LogTail() string {
	data, _ := os.ReadFile(filepath.Join(p.Dir, "platform.log"))
	if len(data) > 6000 {
		data = data[len(data)-6000:]
	}
	return "\n--- platform.log\n" + string(data)
}

// LoadEnv reads what `platform env` exports, as a shell would.
func (p *Platform) LoadEnv(t testing.TB) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `unset CONTROL_PLANE_URL SERVING_URL SVC_CONTROL_TOWER_URL MLFLOW_TRACKING_TOKEN PREFECT_API_KEY; eval "$("$0" env)"; env -0`, p.bin)
	cmd.Env = append(os.Environ(), p.extra...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("platform env: %v\n%s", err, out)
	}
	got := map[string]string{}
	for kv := range strings.SplitSeq(string(out), "\x00") {
		k, v, _ := strings.Cut(kv, "=")
		got[k] = v
	}
	for _, k := range exported {
		if p.Env[k] = got[k]; got[k] == "" {
			t.Fatalf("platform env does not export %s:\n%s; want got[k] != \"\"", k, out)
		}
	}
}

// exported are the variables that `platform env` promises.
var exported = []string{
	"CONTROL_PLANE_URL", "CONTROL_PLANE_TOKEN", "SERVING_URL", "SERVING_TOKEN", "SERVING_GRPC_ADDR", "TRACKING_URI", "ORCHESTRATOR_API_URL",
	"MODELREPO_WEBHOOK_SECRET", "PLATFORM_MODELREPO", "SVC_CONTROL_TOWER_URL", "SVC_CONTROL_TOWER_TOKEN", "PLATFORM_EVIDENCE_STORE",
	"ASSISTANT_URL", "ASSISTANT_ADMIN_KEY", "ASSISTANT_OPERATOR_KEY", "ASSISTANT_READONLY_KEY", "ASSISTANT_KEY",
	"MLFLOW_TRACKING_TOKEN", "PREFECT_API_KEY", "BUS_BRIDGE_URL", "BUS_NATS_URL",
}

// Tracker returns the address of the tracker stand-in, including its credential, which every client sends.
func (p *Platform) Tracker() string {
	return withCredential(p.Env["TRACKING_URI"], p.Env["MLFLOW_TRACKING_TOKEN"])
}

// Orchestrator returns the address of the orchestrator stand-in's API, including its credential.
func (p *Platform) Orchestrator() string {
	return withCredential(p.Env["ORCHESTRATOR_API_URL"], p.Env["PREFECT_API_KEY"])
}

func withCredential(url, secret string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	return scheme + "://e2e:" + secret + "@" + rest
}

// Pid returns the id of the running process.
func (p *Platform) Pid() int { return p.cmd.Process.Pid }

// Kill ends the process with SIGKILL and waits for its end.
func (p *Platform) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Stop requests a clean shutdown and waits for it.
func (p *Platform) Stop(t testing.TB) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(40 * time.Second):
		t.Fatalf("no clean shutdown within 40 s:\n%s%s", p.Output(), p.LogTail())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("clean shutdown ended with %d:\n%s%s; want code == 0", code, p.Output(), p.LogTail())
	}
}

// Done returns a channel that is closed when the process has ended.
func (p *Platform) Done() <-chan struct{} { return p.done }

// ExitCode returns the exit code of the ended process.
func (p *Platform) ExitCode() int { return p.cmd.ProcessState.ExitCode() }

// Secret reads one named secret of the data directory's credentials file.
func (p *Platform) Secret(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.Dir, "credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	s, _ := m[name].(string)
	if s == "" {
		t.Fatalf(`credentials.json holds no %q; want s != ""`, name)
	}
	return s
}

// Answer is a decoded HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON decodes the body into a map.
func (a Answer) JSON(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.Body, &m); err != nil {
		t.Fatalf("%d, not a JSON object: %v\n%s", a.Status, err, a.Body)
	}
	return m
}

// List decodes the body into a list of objects.
func (a Answer) List(t testing.TB) []map[string]any {
	t.Helper()
	var l []map[string]any
	if err := json.Unmarshal(a.Body, &l); err != nil {
		t.Fatalf("%d, not a JSON list: %v\n%s", a.Status, err, a.Body)
	}
	return l
}

var client = &http.Client{Timeout: 30 * time.Second}

// Call sends one request; body may be nil, a string (sent as it is) or a value (sent as JSON).
func Call(t testing.TB, method, url, token string, body any, headers ...string) Answer {
	t.Helper()
	a, err := TryCall(method, url, token, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, url, err)
	}
	return a
}

// TryCall is Call for requests that may fail.
func TryCall(method, url, token string, body any, headers ...string) (Answer, error) {
	var r io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		r = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			return Answer{}, err
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequest(method, url, r)
	if err != nil {
		return Answer{}, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" { // which a request does not take from its header
			req.Host = headers[i+1]
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return Answer{resp.StatusCode, resp.Header, data}, err
}

// Want calls and fails unless the status is the wanted one.
func Want(t testing.TB, status int, method, url, token string, body any, headers ...string) Answer {
	t.Helper()
	a := Call(t, method, url, token, body, headers...)
	if a.Status != status {
		t.Fatalf("%s %s: %d, want %d\n%s", method, url, a.Status, status, a.Body)
	}
	return a
}

// Eventually polls until fn returns nil.
func Eventually(t testing.TB, timeout time.Duration, fn func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var err error
	for {
		if err = fn(); err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("not within %s: %v", timeout, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Run runs a binary against this platform and returns stdout; a failure ends the test.
func (p *Platform) Run(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, errOut, code := p.Exec(t, name, args...)
	if code != 0 {
		t.Fatalf("%s %s: exit %d\n%s%s; want code == 0", name, strings.Join(args, " "), code, out, errOut)
	}
	return out
}

// Exec runs a binary against this platform and returns stdout, stderr and the exit code.
func (p *Platform) Exec(t testing.TB, name string, args ...string) (string, string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Bin(t, name), args...)
	cmd.Env = p.Environ()
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v; want (err == nil || errors.As(err, &exit))", name, err)
	}
	return out.String(), errOut.String(), cmd.ProcessState.ExitCode()
}

// Approval reads one approval record by id.
func (p *Platform) Approval(t testing.TB, id string) map[string]any {
	t.Helper()
	return Want(t, 200, "GET", p.Env["CONTROL_PLANE_URL"]+"/approvals/"+id, p.Env["CONTROL_PLANE_TOKEN"], nil).JSON(t)
}

// WaitRun waits for a flow run's terminal state and returns the run.
func (p *Platform) WaitRun(t testing.TB, id string, timeout time.Duration) map[string]any {
	t.Helper()
	var run map[string]any
	Eventually(t, timeout, func() error {
		a, err := TryCall("GET", p.Env["CONTROL_PLANE_URL"]+"/retrain/"+id, p.Env["CONTROL_PLANE_TOKEN"], nil)
		if err != nil {
			return err
		}
		if a.Status != 200 {
			return fmt.Errorf("%d %s", a.Status, a.Body)
		}
		run = a.JSON(t)
		if run["is_terminal"] != true {
			return fmt.Errorf("run is %v", run["state_type"])
		}
		return nil
	})
	return run
}

// NewShared prepares a platform whose directory outlives the test that made it; the caller removes dir.
func NewShared(t testing.TB, extra ...string) (p *Platform, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "platform-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return preparePlatform(t, dir, extra), dir
}

// Attached returns a platform that is already running, however it was started: E2E_PLATFORM names the folder of its
// credentials.json and samples, and the environment has its addresses and tokens. Tests can use it, but neither stop
// nor start it.
func Attached() (p *Platform, ok bool) {
	dir := os.Getenv("E2E_PLATFORM")
	if dir == "" {
		return nil, false
	}
	p = &Platform{Dir: dir, Env: map[string]string{}}
	for _, name := range exported {
		p.Env[name] = os.Getenv(name)
	}
	return p, true
}

// Setting returns the last value of a setting of this platform.
func (p *Platform) Setting(name string) string {
	value := ""
	for _, kv := range p.extra {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}
