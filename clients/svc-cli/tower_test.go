package svccli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const token = "test-token-0123456789-0123456789-0123456789"

// process is svc running, its output line by line.
type process struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errOut bytes.Buffer // to be read once the process ended
}

func startTower(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: svcProcess(t, dir, args...)}
	p.Env = append(p.Env, env...)
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.Stderr = &p.errOut
	p.out = bufio.NewReader(out)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil {
		_ = p.Process.Kill()
		_ = p.Wait()
		t.Fatalf("no line: %v, %q; stderr: %s", err, s, p.errOut.String())
	}
	return strings.TrimSuffix(s, "\n")
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// ends waits for exit code 0 and returns the remaining output.
func (p *process) ends(t *testing.T) string {
	t.Helper()
	rest, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, p.errOut.String())
	}
	return string(rest)
}

// towerOn starts a tower over a store and returns its address.
func towerOn(t *testing.T, dir string, args ...string) (*process, string) {
	t.Helper()
	p := startTower(t, dir, []string{"SVC_CONTROL_TOWER_TOKEN=" + token}, append([]string{"control-tower", "--no-browser"}, args...)...)
	url, ok := strings.CutPrefix(p.line(t), "control-tower: ")
	if !ok {
		t.Fatal("no address")
	}
	return p, url
}

func getURL(t *testing.T, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-SVC-UI-Token", token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// Nothing listens when a value is bad: the port of each line is in use, and no error mentions that.
func TestRow56BadStartValues(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() }) // the parallel cases end after this function
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	for name, tc := range map[string]struct {
		token *string
		args  []string
		want  string
	}{
		"token of 31":          {token: stringPointer(strings.Repeat("a", 31)), want: "SVC_CONTROL_TOWER_TOKEN must be 32 to 4096"},
		"token of 4097":        {token: stringPointer(strings.Repeat("a", 4097)), want: "SVC_CONTROL_TOWER_TOKEN must be 32 to 4096"},
		"token with a space":   {token: stringPointer(strings.Repeat("a", 31) + " b"), want: "SVC_CONTROL_TOWER_TOKEN must be 32 to 4096"},
		"empty token":          {token: stringPointer(""), want: "SVC_CONTROL_TOWER_TOKEN must be 32 to 4096"},
		"timeout too short":    {args: []string{"--request-timeout", "0.05"}, want: "the request timeout must be from 0.1 to 300.0 seconds"},
		"timeout too long":     {args: []string{"--request-timeout", "300.1"}, want: "the request timeout must be from 0.1 to 300.0 seconds"},
		"timeout no number":    {args: []string{"--request-timeout", "nan"}, want: "--request-timeout must be a number of seconds"},
		"too many requests":    {args: []string{"--max-concurrent-requests", "1025"}, want: "from 1 to 1024"},
		"no requests":          {args: []string{"--max-concurrent-requests", "0"}, want: "from 1 to 1024"},
		"no streams":           {args: []string{"--max-sse-clients", "0"}, want: "from 1 to 64"},
		"too many streams":     {args: []string{"--max-sse-clients", "65"}, want: "from 1 to 64"},
		"streams no number":    {args: []string{"--max-sse-clients", "x"}, want: "--max-sse-clients must be an integer"},
		"port":                 {args: []string{"--port", "65536"}, want: "the port must be from 0"},
		"empty store":          {args: []string{"--product-spine-store", ""}, want: "--product-spine-store needs a path"},
		"all faults at once":   {token: stringPointer("x"), args: []string{"--max-sse-clients", "0"}, want: "; the number of event streams"},
		"report absent":        {args: []string{"none.json"}, want: "(input_read_error)"},
		"report is a folder":   {args: []string{"."}, want: "is no regular file of at most 2 MiB (input_read_error)"},
		"report is too large":  {args: []string{"large.json"}, want: "is no regular file of at most 2 MiB (input_read_error)"},
		"report is not UTF-8":  {args: []string{"latin1.json"}, want: "is not UTF-8 (invalid_utf8)"},
		"one report too many":  {args: []string{"a", "b"}, want: `unexpected argument "b"`},
		"the port is taken":    {want: "port " + port + " on 127.0.0.1 is taken"},
		"an option it has not": {args: []string{"--prot", "1"}, want: "did you mean: --port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			for file, data := range map[string][]byte{"large.json": make([]byte, 2<<20+1), "latin1.json": {'"', 0xe9, '"'}} {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := svcProcess(t, dir, append([]string{"control-tower", "--no-browser", "--port", port}, tc.args...)...)
			if tc.token != nil {
				c.Env = append(c.Env, "SVC_CONTROL_TOWER_TOKEN="+*tc.token)
			}
			var out, errOut bytes.Buffer
			c.Stdout, c.Stderr = &out, &errOut
			err := c.Run()
			if c.ProcessState == nil || c.ProcessState.ExitCode() != 2 || out.Len() > 0 ||
				!strings.HasPrefix(errOut.String(), "error: ") || !strings.Contains(errOut.String(), tc.want) {
				t.Errorf(`%v: %q %q; want c.ProcessState != nil && c.ProcessState.ExitCode() == 2 && out.Len() <= 0 && strings.HasPrefix(errOut.String(), "error: ") && strings.Contains(errOut.String(), tc.want)`, err, out.String(), errOut.String())
			}
			if tc.token != nil && len(*tc.token) > 1 && strings.Contains(errOut.String(), *tc.token) {
				t.Error("the token is printed")
			}
		})
	}
}

func stringPointer(s string) *string { return &s }

func TestControlTower(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requireSuccess(t, runWords(t, dir, "fixtures samples --store s.db"))
	p, url := towerOn(t, dir, "samples/spine/report.json", "--port", "0", "--product-spine-store", "s.db")
	first, found := strings.CutPrefix(p.line(t), "open once: ")
	if !found || !strings.HasPrefix(first, url+"/?launch=") {
		t.Fatalf(`launch address %q; want found && strings.HasPrefix(first, url+"/?launch=")`, first)
	}
	if status, body := getURL(t, first); status != 200 || !strings.Contains(body, token) || !strings.Contains(body, "run/demo:0002") {
		t.Errorf(`launch: %d, token and report in it: %t, %t; want status == 200 && strings.Contains(body, token) && strings.Contains(body, "run/demo:0002")`, status, strings.Contains(body, token), strings.Contains(body, "run/demo:0002"))
	}
	if status, body := getURL(t, first); status != 200 || strings.Contains(body, token) {
		t.Errorf("launch again: %d; want status == 200 && !strings.Contains(body, token)", status)
	}
	if _, err := p.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	second, _ := strings.CutPrefix(p.line(t), "open once: ")
	if status, body := getURL(t, second); second == first || status != 200 || !strings.Contains(body, token) {
		t.Errorf("second launch %q: %d; want second != first && status == 200 && strings.Contains(body, token)", second, status)
	}

	// The page of a list is the command's, byte for byte, but for the form it is written in.
	_, page := getURL(t, url+"/api/v1/runs?limit=2")
	if r := requireSuccess(t, runWords(t, dir, "run list --limit 2 --store s.db --json")); page+"\n" != r.out {
		t.Errorf("API:\n%s\ncommand:\n%s; want page + \"\\n\" == %v", page, r.out, r.out)
	}
	p.signal(t, syscall.SIGTERM)
	if rest := p.ends(t); strings.Contains(first+second+rest+p.errOut.String(), token) || p.errOut.Len() > 0 {
		t.Errorf("printed %q %q; want !strings.Contains(first+second+rest+p.errOut.String(), token) && p.errOut.Len() <= 0", rest, p.errOut.String())
	}
}

// The access log is a line on stderr for every request, if enabled in the environment.
func TestControlTowerAccessLog(t *testing.T) {
	t.Parallel()
	p := startTower(t, t.TempDir(), []string{"SVC_CONTROL_TOWER_TOKEN=" + token, "SVC_HTTP_ACCESS_LOG=on"}, "control-tower", "--no-browser", "--port", "0")
	url, _ := strings.CutPrefix(p.line(t), "control-tower: ")
	if status, body := getURL(t, url+"/api/v1/status?secret=1"); status != 400 {
		t.Errorf("%d %s; want status == 400", status, body)
	}
	p.signal(t, os.Interrupt)
	p.ends(t)
	log := p.errOut.String()
	if strings.Count(log, "\n") != 1 || !strings.Contains(log, `"event":"http_request"`) || !strings.Contains(log, `"path":"/api/v1/status"`) ||
		!strings.Contains(log, `"status":400`) || strings.Contains(log, "secret") || strings.Contains(log, token) {
		t.Errorf("%q; want strings.Count(log, \"\\n\") == 1 && strings.Contains(log, `\"event\":\"http_request\"`) && strings.Contains(log, `\"path\":\"/api/v1/status\"`) && …", log)
	}
}

// A store that cannot be opened is warned of; the tower starts and answers store_error.
func TestControlTowerWithoutItsStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "garbage.db"), bytes.Repeat([]byte("garbage "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	p, url := towerOn(t, dir, "--port", "0", "--product-spine-store", "garbage.db")
	if status, body := getURL(t, url+"/api/v1/runs"); status != 500 || !strings.Contains(body, `"code":"store_error"`) {
		t.Errorf("%d %s; want status == 500 && strings.Contains(body, `\"code\":\"store_error\"`)", status, body)
	}
	p.signal(t, os.Interrupt)
	p.ends(t)
	if !strings.HasPrefix(p.errOut.String(), "warning: the store cannot be prepared, its reads will answer store_error: ") {
		t.Error(p.errOut.String(), `want strings.HasPrefix(p.errOut.String(), "warning: the store cannot be prepared, its reads will answer store_error: ")`)
	}
}

// A missing store is made, folders too.
func TestControlTowerMakesItsStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, url := towerOn(t, dir, "--port", "0", "--product-spine-store", "new/deep/s.db")
	if status, body := getURL(t, url+"/api/v1/runs"); status != 200 || !strings.Contains(body, `"items":[]`) {
		t.Errorf("%d %s; want status == 200 && strings.Contains(body, `\"items\":[]`)", status, body)
	}
	p.signal(t, os.Interrupt)
	p.ends(t)
}

// SIGTERM with a stream open and a report that never comes: the stream gets its end marker, requests are refused, the
// process lives, and it ends with 0 once its five seconds are over.
func TestRow48Drain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	requireSuccess(t, runWords(t, dir, "fixtures samples --store s.db"))
	p, url := towerOn(t, dir, "--port", "0", "--product-spine-store", "s.db")
	stream := sendRequest(t, url, "GET /api/v1/events/stream HTTP/1.1\r\n\r\n")
	if s, err := stream.ReadString('\n'); err != nil || !strings.Contains(s, " 200 ") {
		t.Fatalf(`%v %q; want strings.Contains(s, " 200 ")`, err, s)
	}
	holdInspection(t, url)
	begun := time.Now()
	p.signal(t, syscall.SIGTERM)
	if rest, err := io.ReadAll(stream); err != nil || !strings.HasSuffix(string(rest), "\r\n\r\nretry: 3000\n\n: stream-ended reason=shutdown\n\n") {
		t.Errorf("%v %q; want strings.HasSuffix(string(rest), \"\\r\\n\\r\\nretry: 3000\\n\\n: stream-ended reason=shutdown\\n\\n\")", err, rest)
	}
	refused, err := io.ReadAll(sendRequest(t, url, "GET /api/v1/status HTTP/1.1\r\n\r\n"))
	if head, body, _ := strings.Cut(string(refused), "\r\n\r\n"); err != nil || !strings.HasPrefix(head, "HTTP/1.1 503 ") ||
		!strings.Contains(head+"\r\n", "\r\nRetry-After: 1\r\n") || !strings.Contains(body, `"code":"shutting_down"`) {
		t.Errorf("%v %s; want strings.HasPrefix(head, \"HTTP/1.1 503 \") && strings.Contains(head+\"\\r\\n\", \"\\r\\nRetry-After: 1\\r\\n\") && strings.Contains(body, `\"code\":\"shutting_down\"`)", err, refused)
	}
	if status, body := getURL(t, url+"/healthz"); status != 200 || body != "ok\n" {
		t.Errorf("%d %q; want status == 200 && body == \"ok\\n\"", status, body)
	}
	p.ends(t)
	// The time that a process needs to end on a busy machine comes on top.
	if took := time.Since(begun); took < 4900*time.Millisecond || took > 5500*time.Millisecond+busy {
		t.Errorf("ended after %v; want took >= 4900 * time.Millisecond && took <= 5500*time.Millisecond + busy", took)
	}
}

// busy is the extra time for a machine that runs all tests at once.
const busy = 10 * time.Second

// sendRequest writes a request line, the rest of its head and the following bytes, with Host and token, and returns the
// response.
func sendRequest(t *testing.T, url, text string) *bufio.Reader {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(text, "\r\n")
	fmt.Fprintf(conn, "%s\r\nHost: 127.0.0.1\r\nX-SVC-UI-Token: %s\r\n%s", first, token, rest)
	return bufio.NewReader(conn)
}

// holdInspection announces a report that never comes; once this returns, the request has its slot.
func holdInspection(t *testing.T, url string) {
	t.Helper()
	in := sendRequest(t, url, "POST /api/v1/run-evidence/inspect HTTP/1.1\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n")
	if s, err := in.ReadString('\n'); err != nil || !strings.Contains(s, "100") {
		t.Fatalf(`%v %q; want strings.Contains(s, "100")`, err, s)
	}
}

// A request that is still coming holds the drain for five seconds, unless a second signal ends it.
func TestSecondSignalEndsTheDrain(t *testing.T) {
	t.Parallel()
	p, url := towerOn(t, t.TempDir(), "--port", "0")
	holdInspection(t, url)
	begun := time.Now()
	p.signal(t, syscall.SIGTERM)
	// The drain has begun when a request is answered so.
	for {
		if status, body := getURL(t, url+"/api/v1/status"); status == 503 && strings.Contains(body, "shutting_down") {
			break
		}
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t)
	if took := time.Since(begun); took > 14*time.Second {
		t.Errorf("ended after %v; want took <= 14 * time.Second", took)
	}
}

func TestFollowStore(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	requireSuccess(t, runWords(t, dir, "run create spine/run.json --store s.db --idempotency-key a --created-at 2026-01-02T03:04:05Z"))
	p := startTower(t, dir, nil, "events", "follow", "--store", "s.db", "--after", "0")
	first := p.line(t)
	// The envelope of the fixture, whose size is published.
	if !strings.Contains(first, `"event_id":"evt-000000000001"`) || len(first) != 649 {
		t.Errorf("%d bytes: %s; want strings.Contains(first, `\"event_id\":\"evt-000000000001\"`) && len(first) == 649", len(first), first)
	}
	requireSuccess(t, runWords(t, dir, "run cancel run/demo:0001 --store s.db"))
	if second := p.line(t); !strings.Contains(second, `"event_type":"run.cancelled"`) {
		t.Error(second, "want strings.Contains(second, `\"event_type\":\"run.cancelled\"`)")
	}
	p.signal(t, os.Interrupt)
	if rest := p.ends(t); rest != "" || p.errOut.Len() > 0 {
		t.Errorf(`%q %q; want rest == "" && p.errOut.Len() <= 0`, rest, p.errOut.String())
	}
	wantOut(t, runWords(t, dir, "events follow --store s.db --after 0 --max-events 1 --event-type run.created"), first+"\n")
	wantFault(t, dir, "events follow --store s.db --after 3", "invalid_last_event_id")
}

// A stream that its tower ends is resumed after its last event, on the tower that comes next.
func TestFollowURL(t *testing.T) {
	t.Parallel()
	dir := samplesIn(t)
	p, url := towerOn(t, dir, "--port", "0", "--product-spine-store", "s.db")
	port := url[strings.LastIndex(url, ":")+1:]
	env := []string{"SVC_CONTROL_TOWER_TOKEN=" + token}
	f := startTower(t, dir, env, "events", "follow", "--url", url, "--after", "0")
	requireSuccess(t, runWords(t, dir, "run create spine/run.json --store s.db --idempotency-key a"))
	if s := f.line(t); !strings.Contains(s, `"sequence":1,`) {
		t.Error(s, "want strings.Contains(s, `\"sequence\":1,`)")
	}
	p.signal(t, syscall.SIGTERM)
	p.ends(t)
	requireSuccess(t, runWords(t, dir, "run cancel run/demo:0001 --store s.db"))
	p, _ = towerOn(t, dir, "--port", port, "--product-spine-store", "s.db")
	if s := f.line(t); !strings.Contains(s, `"sequence":2,`) {
		t.Error(s, "want strings.Contains(s, `\"sequence\":2,`)")
	}
	f.signal(t, os.Interrupt)
	if rest := f.ends(t); rest != "" || f.errOut.Len() > 0 {
		t.Errorf(`%q %q; want rest == "" && f.errOut.Len() <= 0`, rest, f.errOut.String())
	}

	// Over the wire and from the file come the same bytes.
	c := svcProcess(t, dir, "events", "follow", "--url", url, "--after", "0", "--max-events", "2")
	c.Env = append(c.Env, env...)
	wire, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	wantOut(t, runWords(t, dir, "events follow --store s.db --after 0 --max-events 2"), string(wire))

	for _, tc := range []struct{ token, args, code string }{
		{token, "--after 3", "invalid_last_event_id"},
		{strings.Repeat("b", 40), "", "invalid_session_token"},
		{"short", "", "invalid_arguments"},
		{"", "", "invalid_arguments"},
	} {
		c := svcProcess(t, dir, append([]string{"events", "follow", "--json", "--url", url}, strings.Fields(tc.args)...)...)
		c.Env = append(c.Env, "SVC_CONTROL_TOWER_TOKEN="+tc.token)
		out, _ := c.Output()
		if c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), `"code":"`+tc.code+`"`) {
			t.Errorf("%s: exit %d %s; want c.ProcessState.ExitCode() == 2 && strings.Contains(string(out), `\"code\":\"`+tc.code+`\"`)", tc.code, c.ProcessState.ExitCode(), out)
		}
	}
	p.signal(t, os.Interrupt)
	p.ends(t)

	// The server has stopped listening.
	c = svcProcess(t, dir, "events", "follow", "--json", "--url", url)
	c.Env = append(c.Env, env...)
	out, _ := c.Output()
	if c.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), `"code":"transport_error"`) {
		t.Errorf("exit %d %s; want c.ProcessState.ExitCode() == 2 && strings.Contains(string(out), `\"code\":\"transport_error\"`)", c.ProcessState.ExitCode(), out)
	}
}
