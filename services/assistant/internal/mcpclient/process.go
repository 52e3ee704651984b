package mcpclient

import (
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stopTime is how long a started server may take to exit after its stdin is closed.
const stopTime = 2 * time.Second

// inherited are the variables that a started server inherits; the assistant's environment also contains its keys.
var inherited = []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ"}

// start runs the server's command in a separate process group, so that its children end with it.
func (s *Server) start() (link, error) {
	cmd := exec.Command(s.Command, s.Args...)
	ownGroup(cmd)
	cmd.Env = []string{}
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	for name, v := range s.Env {
		cmd.Env = append(cmd.Env, name+"="+v.Reveal())
	}
	said := &tail{}
	cmd.Stderr = said
	cmd.WaitDelay = stopTime // a grandchild may hold stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return link{}, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return link{}, err
	}
	if err := cmd.Start(); err != nil {
		return link{}, err
	}
	return link{
		transport: &mcp.IOTransport{Reader: io.NopCloser(stdout), Writer: stdin, MaxLineLength: maxAnswer},
		closed:    func() { stop(cmd, stdin) },
		said:      said.String,
	}, nil
}

// stop ends a process and its group, by closing its stdin or by killing it.
func stop(cmd *exec.Cmd, stdin io.Closer) {
	_ = stdin.Close() // it may be closed already
	kill := time.AfterFunc(stopTime, func() { killGroup(cmd) })
	defer kill.Stop()
	_ = cmd.Wait() // its exit status no longer matters
	killGroup(cmd) // its remaining children
}

// tail keeps the end of the written text.
type tail struct {
	mu   sync.Mutex // guards text
	text []byte
}

const maxTail = 1 << 10 // bytes

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-maxTail):]...)
	t.text = t.text[max(0, len(t.text)-maxTail):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
