package logtext_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/logtext"
)

// TestTellingLineOfAServer: each log is one of a common server, client or language with ordinary lines and often a
// decoy around the line that reports the fault; that one comes first.
func TestTellingLineOfAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		log, first, root, place string
	}{
		"nginx": {"10.0.0.1 - - [02/Jan/2026:10:00:00 +0000] \"GET /healthz HTTP/1.1\" 404 0\n10.0.0.1 - - [02/Jan/2026:10:00:01 +0000] \"GET /favicon.ico HTTP/1.1\" 404 153\n" +
			"2026/01/02 10:00:02 [error] 29#29: *1 connect() failed (111: Connection refused) while connecting to upstream, upstream: \"http://10.96.0.9:8085/x\"\n", "Connection refused", "", ""},
		"Envoy":         {"[2026-01-02T10:00:00.000Z] \"GET /a HTTP/1.1\" 200 - \"-\" 0 10 3\n[2026-01-02T10:00:01.000Z] \"GET /b HTTP/1.1\" 503 UF,URX \"-\" 0 91 3 - \"-\" \"10.0.0.2:80\"\n", "503 UF,URX", "", ""},
		"HAProxy":       {"[NOTICE] (1) : New worker (8) forked\n[WARNING] (8) : Server be/app1 is DOWN, reason: Layer4 timeout\n", "is DOWN", "", ""},
		"Apache":        {"[mpm_event:notice] AH00489: Apache configured\n[mpm_event:error] [pid 1] AH00484: server reached MaxRequestWorkers setting\n", "MaxRequestWorkers", "", ""},
		"PostgreSQL":    {"2026-01-02 10:00:00 UTC [9] LOG:  checkpoint complete\n2026-01-02 10:00:00 UTC [7] ERROR:  duplicate key value violates unique constraint \"users_pkey\"\n2026-01-02 10:00:00 UTC [7] DETAIL:  Key (id)=(7) already exists.\n", "duplicate key", "Key (id)=(7)", ""},
		"MySQL":         {"2026-01-02T10:00:00Z 7 [Note] ready\n2026-01-02T10:00:01Z 8 [ERROR] [MY-012872] Table './a/b' is marked as crashed\n", "marked as crashed", "", ""},
		"Redis":         {"1:M 02 Jan 2026 10:00:00.000 * 100 changes in 300 seconds. Saving...\n1:M 02 Jan 2026 10:00:01.000 # MISCONF Redis is configured to save RDB snapshots, but is currently not able to persist on disk\n", "MISCONF", "", ""},
		"MongoDB":       {"{\"s\":\"I\",\"msg\":\"Connection accepted\"}\n{\"s\":\"E\",\"msg\":\"Failed to unlink socket file\",\"attr\":{\"error\":\"Operation not permitted\"}}\n", "unlink socket", "", ""},
		"Kafka at INFO": {"INFO [GroupMetadata] loaded\nINFO Partition orders-3 is under replicated, ISR is [1]\n", "under replicated", "", ""},
		"RabbitMQ":      {"[info] accepting AMQP connection\n[warning] memory resource limit alarm set on node rabbit@a\n", "alarm set", "", ""},
		"SMTP":          {"sendmail: queued id=1\nsmtp.example.net:587: 535 5.7.8 Authentication credentials invalid\n", "535 5.7.8", "", ""},
		"LDAP":          {"bind uid=a\nLDAP: error code 49 - 80090308: AcceptSecurityContext error, data 52e\n", "error code 49", "", ""},
		"CoreDNS":       {"[INFO] plugin/reload: Running\n[ERROR] plugin/errors: 2 db.shop. A: read udp 10.0.0.1:53: i/o timeout\n", "i/o timeout", "", ""},
		"Go panic":      {"2026-01-02T10:00:00Z INFO GET /a\npanic: runtime error: index out of range [3] with length 3\n\ngoroutine 1 [running]:\nmain.handle(0xc0001)\n\t/src/app/handle.go:42 +0x1d\nmain.main()\n\t/src/app/main.go:9\n", "index out of range", "", "/src/app/handle.go:42"},
		"Rust":          {"INFO ready\nthread 'main' panicked at src/book.rs:317:45:\nattempt to subtract with overflow\nnote: run with `RUST_BACKTRACE=1`\n", "panicked at src/book.rs", "attempt to subtract", ""},
		"Python": {"WARNING: option x is deprecated\nERROR:    Exception in ASGI application\nTraceback (most recent call last):\n  File \"/srv/app/views.py\", line 61, in build\n    y = f(x)\n  File \"/usr/lib/python3.12/site-packages/lib/a.py\", line 9, in f\n    return x[k]\nKeyError: 'country'\nINFO: done\n",
			"Exception in ASGI", "KeyError: 'country'", "/srv/app/views.py:61"},
		"below a calm line":             {"INFO ready\nstarting worker\n  ERROR: cannot open the queue file\nINFO next\n", "cannot open the queue", "cannot open the queue", ""},
		"Laravel":                       {"[2026-01-02] production.INFO: booted\nIn Connection.php line 825:\n\n  SQLSTATE[HY000] [2002] Connection refused (SQL: select 1)\n\n", "SQLSTATE", "Connection refused", ""},
		"object of Node":                {"Error: connect failed\n    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1494:16) {\n  errno: -111,\n  code: 'ECONNREFUSED',\n  address: '10.0.0.9'\n}\n", "connect failed", "", "node:net:1494:16"},
		"printed JSON":                  {"{\n  \"level\": \"error\",\n  \"message\": \"no space left on device\",\n  \"errors\": []\n}\n", "no space left", "no space left", ""},
		"a health check that tells why": {"INFO ready\nWARN GET /ping: upstream ledger:9000 refused the connection\nINFO next\n", "ledger:9000 refused", "", ""},
		"a setting that is empty":       {"INFO up\ncannot start: variable LEDGER_URL is empty\n", "LEDGER_URL is empty", "", ""},
		"not restored":                  {"INFO up\nWARN session to ledger failed and could not be restored\n", "could not be restored", "", ""},
		"Java": {"10:00:00 INFO ready\n10:00:01 ERROR c.e.Api - request failed\njava.lang.RuntimeException: outer\n\tat com.example.Api.call(Api.java:10)\nCaused by: java.sql.SQLException: inner\n\tat org.postgresql.Driver.connect(Driver.java:1)\n\tat com.example.Store.load(Store.java:33)\n\t... 12 more\n10:00:02 INFO next\n",
			"request failed", "Caused by: java.sql.SQLException: inner", "Store.java:33"},
		"Node":       {"2026-01-02T10:00:00Z error: Error: ENOSPC: no space left on device, write '/data/x'\n    at async writeFile (node:internal/fs/promises:1180:5)\n    at async /srv/app/lib/store.js:88:7\n", "ENOSPC", "", "/srv/app/lib/store.js:88:7"},
		".NET":       {"info: Microsoft.Hosting[0] started\nUnhandled exception. System.InvalidOperationException: outer\n ---> System.TimeoutException: inner\n   at System.Net.Foo.Bar() in /_/src/Foo.cs:line 1\n   at Shop.Cart.Total() in /src/Cart.cs:line 42\n   --- End of inner exception stack trace ---\n", "InvalidOperationException", "---> System.TimeoutException: inner", "/src/Cart.cs:line 42"},
		"Ruby":       {"[2026-01-02T10:00:00] FATAL -- : NoMethodError (undefined method `percent' for nil:NilClass):\n[2026-01-02T10:00:00] FATAL -- : app/models/coupon.rb:54:in `apply_to'\n", "NoMethodError", "", "app/models/coupon.rb:54"},
		"PHP":        {"NOTICE: ready to handle connections\nPHP Fatal error:  Uncaught TypeError: bad in /var/www/a.php:7\nStack trace:\n#0 /var/www/b.php(9): f()\n  thrown in /var/www/a.php on line 7\n", "Uncaught TypeError", "", "/var/www/b.php(9)"},
		"JSON stack": {"{\"level\":\"info\",\"msg\":\"up\"}\n{\"level\":\"error\",\"msg\":\"boom\",\"stack\":\"a.B: x\\n\\tat a.b(C.java:1)\\nCaused by: a.D: disk gone\\n\\tat a.c(D.java:2)\"}\n", "boom", "Caused by: a.D: disk gone", ""},
		"pino":       {"{\"level\":30,\"msg\":\"up\"}\n{\"level\":50,\"msg\":\"no price for sku 7\"}\n", "no price", "", ""},
		"a retry that went well": {"WARN retry 1 of upload succeeded\nWARN option --x is deprecated and will be removed\nlevel=error msg=\"query failed\" err=\"pq: permission denied for table prices\"\nWARN retry 2 of upload succeeded\n",
			"permission denied", "", ""},
		"what stopped comes after what goes on": {"ERROR dial tcp 10.0.0.1:5432: connect: connection refused\n" + strings.Repeat("INFO served\n", 40) + "WARN cache miss storm, queue full\nWARN cache miss storm, queue full\n", "queue full", "", ""},
	} {
		groups, _ := logtext.Telling([]logtext.Source{{Pod: "a", Text: c.log}})
		if len(groups) == 0 {
			t.Errorf("%s: no line tells of trouble; want %q", name, c.first)
			continue
		}
		g := groups[0]
		if text := g.Line + "\n" + g.Root; !strings.Contains(text, c.first) || !strings.Contains(g.Root, c.root) || g.Place != c.place {
			t.Errorf("%s: first is %q, because of %q, at %q; want %q, %q, %q", name, g.Line, g.Root, g.Place, c.first, c.root, c.place)
		}
	}
}

// TestCalmLogs: logs of healthy programs show no problem.
func TestCalmLogs(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"INFO errors_total=0 failed=0 retries=0",
		`2026-01-02T10:00:00.000Z INFO entry saved text="ERROR 500 lol, the database is on fire"`,
		`{"level":"info","msg":"posted","body":"everything crashed: connection refused"}`,
		`{"op":"Me","ms":11,"warn":""}`,
		"2026-01-02T10:00:00.000000Z 812 [Note] [MY-010914] [Server] Aborted connection 812 to db: 'unconnected' user: 'unauthenticated' host: '10.244.1.1' (Got an error reading communication packets).",
		"INFO GET /error-codes 200",
		"INFO query returned 500 rows",
		"INFO cache replied 503 ms after the first call",
		"INFO child ended, exit code 501",
		"DEBUG loaded module ErrorPagePlugin without error",
		"INFO error handler registered",
		"WARN option --legacy is deprecated and will be removed in v9",
		`10.0.0.3 - - [02/Jan/2026:10:00:00 +0000] "GET /favicon.ico HTTP/1.1" 404 153`,
		"INFO connected to db, timeout=30s, max_retries=5",
		"1:M 02 Jan 2026 10:00:00.000 * Background saving terminated with success",
		"7:M 02 Jan 2026 10:00:00.000 * DB loaded from disk, keys loaded: 12, keys expired: 0.",
		"7:M 02 Jan 2026 10:00:00.000 * <module>  { false-error-rate      :      0.02 }",
		`{"level":"INFO","logger":"app.Metrics","message":"exporter enabled, but unavailable for the moment"}`,
		`{"message":"profiler enabled, and not configured yet","severity":"info","timestamp":"2026-01-02T10:00:00Z"}`,
		"requests: 812, timeouts: 0, refused: 0, latency 3ms",
		"LOG:  checkpoint complete: wrote 120 buffers (0.7%)",
		"INFO upload recovered after 1 retry",
		"WARN connection failed, restored at the second try",
		"INFO settings:\n  on_failure: restart\n  error_log: /var/log/app\n  retries: 5\n",
		"{\n  \"msg\": \"served\",\n  \"error\": null,\n  \"failed\": 0\n}\n",
	} {
		if groups, _ := logtext.Telling([]logtext.Source{{Text: line}}); len(groups) > 0 && !groups[0].Hint {
			t.Errorf("%q tells of trouble; want none", line)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	got := logtext.Refused([]logtext.Source{{Text: "\"GET /a HTTP/1.1\" 200 1\n\"GET /b?x=1 HTTP/1.1\" 503 UF,URX \"-\"\n\"GET /b HTTP/1.1\" 503 UF,URX \"-\"\nstatus=404 path=/c\n"}})
	if len(got) != 2 || got[0].Status != 503 || got[0].Count != 2 || got[0].All != 4 || got[0].Most != "GET /b" || got[0].Flags != "the connection to the upstream failed, the retries are used up" {
		t.Errorf("%+v; want 503 twice of 4, most of them GET /b", got)
	}
}

// TestQuotedTextIsData: what a line of level info quotes is no fault of the program.
func TestQuotedTextIsData(t *testing.T) {
	t.Parallel()
	for line, fault := range map[string]bool{
		`2026-01-02T10:00:00Z INFO question "What does error 404 mean?" shown`:  false,
		`2026-01-02T10:00:00Z INFO answer "failed to find page" marked correct`: false,
		`2026-01-02T10:00:00Z ERROR cannot parse "failed to find page"`:         true,
		`cannot open "/var/lib/queue": connection refused`:                      true,
	} {
		groups, _ := logtext.Telling([]logtext.Source{{Pod: "a", Text: line + "\n"}})
		if got := len(groups) > 0; got != fault {
			t.Errorf("%q reports a fault: %v, want %v", line, got, fault)
		}
	}
}

// TestNumbersInLogs: a question for a number finds it where no status is known, but not as an amount.
func TestNumbersInLogs(t *testing.T) {
	t.Parallel()
	text := "WARN upstream 503, retry 1 of 5\nINFO read 503 rows\nINFO GET /a 503\nINFO GET /b 200\n"
	if got := (logtext.Filter{Status: 503}).Choose(text).Messages; len(got) != 2 || !strings.HasPrefix(got[0], "WARN upstream") {
		t.Errorf("chosen are %q, want the first and the third line", got)
	}
}
