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
		{"DBPASS=" + hideValue, "DBPASS="}, {"PGPASS: " + hideValue, "PGPASS"}, {"export MYSQLPASS=" + hideValue + " x", " x"}, {"ROOTPW=" + hideValue, "ROOTPW"}, {"MYSQL_PWD=" + hideValue, "MYSQL_PWD"},
		{"git clone https://" + hideValue + "@git.io/x.git failed", "@git.io/x.git failed"},
		{"curl -u admin:" + hideValue + " https://a.example", "-u admin:"}, {`["curl","-u","admin:` + hideValue + `","x"]`, `"x"`}, {"curl --user=admin:" + hideValue + " x", " x"},
		{"mysql -h db -p" + hideValue + " shop", " shop"}, {`["mysqldump","-p` + hideValue + `","shop"]`, `"shop"`},
		{"GET /x?sig=" + hideValue + "&se=1", "&se=1"}, {"https://b.example/o?X-Amz-Signature=" + hideValue + "&X-Amz-Date=1", "X-Amz-Date=1"},
		{"<password>" + hideValue + "</password><user>bob</user>", "<user>bob</user>"}, {`<add key="Password" value="` + hideValue + `"/>`, `key="Password"`},
		{`{"password":["` + hideValue + `", "b"],"user":"bob"}`, `"user":"bob"`}, {`{"passwords":{"a":"` + hideValue + `","b":"x"},"user":"bob"}`, `"user":"bob"`},
		{`{"log":"{\"tokens\":[\"a\",\"` + hideValue + `\"],\"user\":\"bob\"}"}`, `\"user\":\"bob\"`},
		{"requirepass " + hideValue + "\nport 6379", "port 6379"}, {"masterauth \"" + hideValue + "\"\nport 6379", "port 6379"}, {"bindpw " + hideValue + "\nbase dc=a", "base dc=a"},
		{"machine a.example login bob password " + hideValue + "\nmachine b", "machine b"},
		{"CREATE USER bob IDENTIFIED BY '" + hideValue + "' REQUIRE SSL", "REQUIRE SSL"}, {"ALTER ROLE bob WITH PASSWORD '" + hideValue + "';", "ALTER ROLE bob"},
		{"    client-key-data: " + hideValue + "\n    user: bob", "user: bob"},
		{"my password is " + hideValue + ", thanks", ", thanks"}, {"set the password of bob to " + hideValue, "of bob to "},
	} {
		got := redact.Text(tc.text)
		if strings.Contains(got, hideValue) || !strings.Contains(got, tc.keeps) || !strings.Contains(got, "[redacted ") {
			t.Errorf(`%q became %q; want !strings.Contains(got, hideValue) && strings.Contains(got, tc.keeps) && strings.Contains(got, "[redacted ")`, tc.text, got)
		}
		if again := redact.Text(got); again != got {
			t.Errorf("twice makes %q of %q; want again == %v", again, got, got)
		}
	}
}

// Words that only look similar stay.
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
			t.Errorf("%q became %q; want got == %v", text, got, text)
		}
	}
}
