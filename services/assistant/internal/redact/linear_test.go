package redact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Time grows with the text, not with its square: cluster text decides nothing, also not how long an answer takes.
func TestTextIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{`"token":"x",`, "token: x ", "name: a value: b ", "a://b:c@", "token=", `\"`, "-----BEGIN X-----", "-", "key:\n", "- name: token\n", "secret: |\n  x\n", "[", "password: [", `password: ["a",`, `tokens: {"a":"b",`, "key=a value=", "<password>x", "<a ", "mysql -p", "mysql -px ", "-u a:", "password is ", "login a password ", "https://a", "identified by '", "eyJ", "%25", "\x1b[", "\\u0070", "&amp;", "password:\n\n", "tokens:\n- a\n", "redis-cli -a ", "mot de passe ", "cGFzc3dvcmQ9", "<value>", "htpasswd", "[redacted 1 bytes]", "token=a [redacted 1 bytes]", "$6$a", ":::", "*a", "jdbc:oracle:thin:a/", "a:b@tcp(", "docker login -p x;", "vault kv put a=b ", "\xe2\x80\x8b"} {
		text := strings.Repeat(piece, (64<<10)/len(piece))
		start := time.Now()
		redact.Text(text)
		// Most take some milliseconds. What grew with the square would take minutes on a busy machine, and the race detector makes each ten times as slow.
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%q: %v for 64 KiB; want took <= 30 * time.Second", piece, took)
		}
	}
}
