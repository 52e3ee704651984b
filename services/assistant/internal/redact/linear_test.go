package redact_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mlp-platform/platform/libs/testenv"
	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Time is linear in the text, not quadratic: cluster text must not determine how long an answer takes. A short text is
// compared with a long one, since a fixed time would depend on the machine.
func TestTextIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{`"token":"x",`, "token: x ", "name: a value: b ", "a://b:c@", "token=", `\"`, "-----BEGIN X-----", "-", "key:\n", "- name: token\n", "secret: |\n  x\n", "[", "password: [", `password: ["a",`, `tokens: {"a":"b",`, "key=a value=", "<password>x", "<a ", "mysql -p", "mysql -px ", "-u a:", "password is ", "login a password ", "https://a", "identified by '", "eyJ", "%25", "\x1b[", "\\u0070", "&amp;", "password:\n\n", "tokens:\n- a\n", "redis-cli -a ", "mot de passe ", "cGFzc3dvcmQ9", "<value>", "htpasswd", "[redacted 1 bytes]", "token=a [redacted 1 bytes]", "$6$a", ":::", "*a", "jdbc:oracle:thin:a/", "a:b@tcp(", "docker login -p x;", "vault kv put a=b ", "\xe2\x80\x8b"} {
		took := map[int]time.Duration{}
		// Eight times the text takes eight times as long, or with quadratic time sixty-four times. Processor time counts,
		// since a busy machine makes a test wait; it also empties caches, so the fastest run counts, and more are taken while
		// the two are too far apart.
		linear := func() bool { return took[16<<10] <= 32*took[2<<10] }
		for try := range 30 {
			for _, size := range []int{2 << 10, 16 << 10} {
				text := strings.Repeat(piece, size/len(piece))
				if d := testenv.ProcessorTime(t, func() { redact.Text(text) }); try == 0 || d < took[size] {
					took[size] = d
				}
			}
			if try >= 2 && linear() {
				break
			}
		}
		if !linear() {
			t.Errorf("%q: %v for 2 KiB and 16 KiB; want at most 32 times as long", piece, took)
		}
	}
}
