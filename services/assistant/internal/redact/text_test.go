package redact_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

const hideValue = "hunter2-Correct.Horse9"

// Text with a secret loses it, and keeps the text around it.
func TestTextLosesSecrets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, keeps string }{
		{"assignment", "DB_PASSWORD=" + hideValue + " next", "next"},
		{"assignment in one word", "PGPASSWORD=" + hideValue, "PGPASSWORD="},
		{"log", "level=info token=" + hideValue + " user=bob", "user=bob"},
		{"query", "GET /x?api_key=" + hideValue + "&page=2", "&page=2"},
		{"yaml", "  db:\n    password: " + hideValue + "\n    user: bob", "user: bob"},
		{"yaml with blanks", "password: first " + hideValue + " last\nuser: bob", "user: bob"},
		{"yaml block", "secret: |\n  first\n  " + hideValue + "\nuser: bob", "user: bob"},
		{"yaml folded", "passphrase: \"first\n  " + hideValue + "\"\nuser: bob", "passphrase"},
		{"yaml list", "- name: APP_SECRET\n  value: " + hideValue + "\n- name: USER\n  value: bob", "value: bob"},
		{"yaml list, value first", "- value: " + hideValue + "\n  name: APP_SECRET\n- value: bob\n  name: USER", "value: bob"},
		{"yaml block in a list", "- name: API_KEY\n  value: |\n    first\n    " + hideValue + "\n- name: USER", "- name: USER"},
		{"json", `{"password":"` + hideValue + `","user":"bob"}`, `"user":"bob"`},
		{"json with blanks", `{"password" : "a ` + hideValue + ` \" b", "user": "bob"}`, `"user": "bob"`},
		{"json list", `{"name":"DB_PASSWORD","value":"` + hideValue + `"},{"name":"USER","value":"bob"}`, `"value":"bob"`},
		{"yaml block in a list, value first", "- value: |\n    first\n    " + hideValue + "\n  name: API_KEY\n- name: USER", "- name: USER"},
		{"json in json", `{"log":"{\"password\":\"` + hideValue + `\",\"user\":\"bob\"}"}`, `\"user\":\"bob\"`},
		{"docker config", `{"auths":{"registry.example":{"auth":"` + hideValue + `"}}}`, "registry.example"},
		{"flag with equals", "app --db-password=" + hideValue + " --verbose", "--verbose"},
		{"flag", "app --token " + hideValue + " --verbose", "--verbose"},
		{"flag in a list", `["--token","` + hideValue + `","--verbose"]`, `"--verbose"`},
		{"flag in yaml", "- --token\n- " + hideValue + "\n- --verbose", "- --verbose"},
		{"describe", "    Environment:\n      DB_PASSWORD:  " + hideValue + "\n      LOG:          debug\n", "debug"},
		{"bearer", "> Authorization: Bearer " + hideValue + "\n> Host: a.example", "Host: a.example"},
		{"bearer alone", "sent bearer " + hideValue + " to a.example", "to a.example"},
		{"basic", `curl -H "Authorization: Basic ` + hideValue + `" https://a.example`, "https://a.example"},
		{"url", "dial postgres://bob:" + hideValue + "@db:5432/shop failed", "@db:5432/shop failed"},
		{"url, at sign inside", "redis://:a@" + hideValue + "@cache:6379/0", "cache:6379/0"},
		{"pem", "before\n-----BEGIN PRIVATE KEY-----\n" + hideValue + "\n-----END PRIVATE KEY-----\nafter", "after"},
		{"pem in json", `"-----BEGIN EC PRIVATE KEY-----\n` + hideValue + `\n-----END EC PRIVATE KEY-----\n"`, `"`},
		{"dsn", "user=bob password='a " + hideValue + "' host=db", "host=db"},
	} {
		got := redact.Text(tc.text)
		if strings.Contains(got, hideValue) || !strings.Contains(got, tc.keeps) || !strings.Contains(got, "[redacted ") {
			t.Errorf(`%s: %q became %q; want !strings.Contains(got, hideValue) && strings.Contains(got, tc.keeps) && strings.Contains(got, "[redacted ")`, tc.name, tc.text, got)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("%s: twice makes %q of %q; want again == %v", tc.name, again, got, got)
		}
	}
}

func TestTextLosesCredentialsByForm(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
		"AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + strings.Repeat("a1", 18), "glpat-" + strings.Repeat("b2", 10), "xoxb-" + "1234567890-abcdef",
		"sk_live_" + strings.Repeat("c3", 12), "sk-" + strings.Repeat("d4", 20), "AIza" + strings.Repeat("e", 35),
		"hf_" + strings.Repeat("f5", 17), "ki-admin-" + "0123456789abcdef",
	} {
		if got := redact.Text("saw " + secret + ", ok"); strings.Contains(got, secret) || !strings.HasPrefix(got, "saw [redacted ") || !strings.HasSuffix(got, ", ok") {
			t.Errorf(`%s: %q; want !strings.Contains(got, secret) && strings.HasPrefix(got, "saw [redacted ") && strings.HasSuffix(got, ", ok")`, secret, got)
		}
	}
	long := strings.Repeat("QUJD", 16)
	for _, cut := range []string{"-----BEGIN RSA PRIVATE KEY-----\n" + long + "\n" + long, long + "\n" + long + "\n-----END RSA PRIVATE KEY-----"} {
		if got := redact.Text(cut); strings.Contains(got, "QUJD") {
			t.Errorf(`a block that was cut: %q; want !strings.Contains(got, "QUJD")`, got)
		}
	}
}

// Everything that a diagnosis needs stays: names, keys, references, images, states.
func TestTextKeepsTheRest(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`Error: couldn't find key DATABASE_URL in Secret payments/gateway-db`,
		`MountVolume.SetUp failed for volume "certs" : secret "web-tls" not found`,
		"env:\n- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      key: DATABASE_URL\n      name: gateway-db\n",
		"      DB_PASSWORD:  <set to the key 'password' in secret 'db'>  Optional: false\n      NEXT: 1",
		"volumes:\n- name: certs\n  secret:\n    defaultMode: 420\n    secretName: web-tls\n",
		"imagePullSecrets:\n- name: regcred\n", "automountServiceAccountToken: true\n", "topologyKey: kubernetes.io/hostname\n",
		"tolerations:\n- key: dedicated\n  operator: Equal\n  value: gpu\n", "expirationSeconds: 3607\ntokenExpirationSeconds: 3607\n",
		`Failed to pull image "registry.example/shop/auth-token:2.4.0": not found`, "max_tokens: 500", "password: <none>", "DB_PASSWORD=",
		"--password-file=/run/secrets/db", "TOKEN_URL=https://id.example/token", "cache_key=user:42 hits=3", "GET http://api:8080/a@b 200",
		"pull access denied, repository does not exist or may require authorization: server message: insufficient_scope",
		"image: registry.example/shop/web@sha256:" + strings.Repeat("ab", 32), "kubectl rollout undo deployment/token-service -n shop",
		"FATAL: password authentication failed for user bob", "name: api\nvalue: 3\n",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q became %q; want got == %v", text, got, text)
		}
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, value, want string }{
		{"DB_PASSWORD", "abc", "[redacted 3 bytes]"}, {"dbPassword", "abc", "[redacted 3 bytes]"}, {"SECRETS", "abc", "[redacted 3 bytes]"},
		{"KEY", "abc", "[redacted 3 bytes]"}, {"TOKEN_PROD", "abc", "[redacted 3 bytes]"}, {"PASSWORD2", "abc", "[redacted 3 bytes]"},
		{"DB_PASSWORD", "", ""}, {"DB_PASSWORD", "$(OTHER)", "$(OTHER)"}, {"SECRET_NAME", "db", "db"}, {"LOG_LEVEL", "debug", "debug"},
		{"MONKEY", "see", "see"}, {"DATABASE_URL", "postgres://a:b@c/d", "postgres://a:[redacted 1 bytes]@c/d"},
	} {
		if got := redact.Value(tc.name, tc.value); got != tc.want {
			t.Errorf("%s=%s: %s, want %s", tc.name, tc.value, got, tc.want)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{
		"kind: Secret\ndata:\n  a: |\n    b\n\n  c: d\nx: y", "kind: Secret\nstringData: {a: b, 'c': \"d}\"}", `{\"kind\":\"Secret\",\"data\":{\"a\":\"b,c\"}}`, "kubectl patch secret x -p '{\"data\":{\"a\":\"b",
		"password=a b", "- name: TOKEN\n  value: |\n    x\n", `{"secret":"a\"b"}`, `\"token\":\"x\\\"y\"`, "--token x", "a://b:c@d@e", "Authorization: Basic x", "Bearer abcdefgh1",
		`"passwords":{"a":"b\"c",x`, `password=["a","b`, "mysql -pa -p[redacted", "https://a@b@c", "-u a:b:c", "password is a1b2c3.", "requirepass \"a b\"", "<token>a</token>", `key="TOKEN" value='x'`,
		"-----BEGIN X-----\nabc", "abc=\n-----END X-----", "[redacted 3 bytes]", "token=[redacted 3 bytes]x", "pass\x1b[0mword=x", "token%3Dx%26y", "\\u0070assword: x", "password:\n  x\n", "tokens:\n- a\n- b", "<a name=\"token\"><![CDATA[x]]></a>", "a:b@tcp(c)/d", "h:5432:d:u:p",
		"machine a login b password c", "redis-cli -a x", "REJfUEFTU1dPUkQ9YWJj", "$6$abcdefgh$ijklmnopqrst", "mot de passe : x1", "\u5bc6\u7801\uff1ax", "secret = \"\"\"a\nb\"\"\"", "&quot;token&quot;:&quot;x&quot;", "value: a\nname: KEY", "secret: \"a\n  b\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once := redact.Text(s)
		if twice := redact.Text(once); twice != once {
			t.Errorf("%q, then %q, then %q; want twice == %v", s, once, twice, once)
		}
		if len(once) > len(s)*24+64 {
			t.Errorf("%d bytes became %d; want len(once) <= len(s)*24 + 64", len(s), len(once))
		}
	})
}
