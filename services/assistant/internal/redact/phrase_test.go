package redact_test

import (
	"strings"
	"testing"

	"github.com/mlp-platform/platform/services/assistant/internal/redact"
)

// Notations without a sign between a name and its value.
func TestPhrasesLoseSecrets(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, keeps string }{
		{"DBPASS=" + hidden, "DBPASS="}, {"PGPASS: " + hidden, "PGPASS"}, {"export MYSQLPASS=" + hidden + " x", " x"}, {"ROOTPW=" + hidden, "ROOTPW"}, {"MYSQL_PWD=" + hidden, "MYSQL_PWD"},
		{"git clone https://" + hidden + "@git.io/x.git failed", "@git.io/x.git failed"},
		{"curl -u admin:" + hidden + " https://a.example", "-u admin:"}, {`["curl","-u","admin:` + hidden + `","x"]`, `"x"`}, {"curl --user=admin:" + hidden + " x", " x"},
		{"mysql -h db -p" + hidden + " shop", " shop"}, {`["mysqldump","-p` + hidden + `","shop"]`, `"shop"`},
		{"GET /x?sig=" + hidden + "&se=1", "&se=1"}, {"https://b.example/o?X-Amz-Signature=" + hidden + "&X-Amz-Date=1", "X-Amz-Date=1"},
		{"<password>" + hidden + "</password><user>bob</user>", "<user>bob</user>"}, {`<add key="Password" value="` + hidden + `"/>`, `key="Password"`},
		{`{"password":["` + hidden + `", "b"],"user":"bob"}`, `"user":"bob"`}, {`{"passwords":{"a":"` + hidden + `","b":"x"},"user":"bob"}`, `"user":"bob"`},
		{`{"log":"{\"tokens\":[\"a\",\"` + hidden + `\"],\"user\":\"bob\"}"}`, `\"user\":\"bob\"`},
		{"requirepass " + hidden + "\nport 6379", "port 6379"}, {"masterauth \"" + hidden + "\"\nport 6379", "port 6379"}, {"bindpw " + hidden + "\nbase dc=a", "base dc=a"},
		{"machine a.example login bob password " + hidden + "\nmachine b", "machine b"},
		{"CREATE USER bob IDENTIFIED BY '" + hidden + "' REQUIRE SSL", "REQUIRE SSL"}, {"ALTER ROLE bob WITH PASSWORD '" + hidden + "';", "ALTER ROLE bob"},
		{"    client-key-data: " + hidden + "\n    user: bob", "user: bob"},
		{"my password is " + hidden + ", thanks", ", thanks"}, {"set the password of bob to " + hidden, "of bob to "},
	} {
		got := redact.Text(tc.text)
		if strings.Contains(got, hidden) || !strings.Contains(got, tc.keeps) || !strings.Contains(got, "[redacted ") {
			t.Errorf("%q became %q", tc.text, got)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("twice makes %q of %q", again, got)
		}
	}
}

// Words that only look like it stay.
func TestPhrasesKeepTheRest(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"BYPASS=1 COMPASS=north", "bypass: everything", "OLDPWD=/app", "the password is wrong", "password is required for user bob", "token is expired", "token is invalid: kid 12 unknown",
		"password to be rotated", "the secret is gateway-db2", "docker run -u 1000:1000 web", "chown -u www:www", "rsync -u a host:/data/x1", "git clone https://git@git.io/x.git",
		"kubectl get pods -p", "mysql --port 3306 -h db", "ssh -p22 host", "image: registry.example/mysql-pass:8.4", "Pulling image \"registry.example/shop/mysql:8.4\"",
		"<status>ok</status><token-url>https://a</token-url>", `{"key":"dedicated","operator":"Equal","value":"gpu"}`, "- key: dedicated\n  value: gpu\n", `{"keys":{"a":"x"}}`,
		"secret:\n  items:\n  - key: tls.key\n    path: tls.key\n", `"imagePullSecrets":[{"name":"regcred"}]`, `"secrets":[{"name":"default-token-x"}]`, `{"secret":{"secretName":"web-tls"}}`,
		"identified by its uid 'abc'", "certificate-authority-data: AAAA", "deployment/pass-service -n shop", "pod/passport-7d9f-x1 in shop", "signature: verified", "password authentication failed for user 'bob'",
		"couldn't find key 'password' in Secret shop/db", "GET https://api.example/a@b 200", "replicas: 3 of 3, token-service is ready-2", "key value store: etcd3",
	} {
		if got := redact.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
