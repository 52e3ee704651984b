package investigate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
)

// createsSecret reports whether a line would create a Secret.
func createsSecret(words []string) bool {
	if len(words) < 3 || words[1] != "create" {
		return false
	}
	at := 2
	switch flag, _, joined := strings.Cut(words[2], "="); {
	case flag != "-n" && flag != "--namespace":
	case joined:
		at = 3
	default:
		at = 4
	}
	return at < len(words) && words[at] == "secret"
}

var (
	// plainNameExpr matches a valid name in a cluster.
	plainNameExpr = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
	keyExpr       = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)
)

// secretFlags are the flags of create secret whose values are omitted.
var secretFlags = []string{
	"--from-file", "--from-env-file", "--docker-server", "--docker-username", "--docker-password", "--docker-email", "--cert", "--key", "--type",
}

// secretTemplate rebuilds a line that creates a Secret from names alone: it keeps only the type, the name, the
// namespace, the keys and known flags. Removing values from the line instead would show any value written in an
// unforeseen way.
func secretTemplate(line string) string {
	words, ok := kubectl.SplitWords(line)
	at := slices.Index(words, "secret")
	if !ok || at < 0 {
		return "kubectl create secret generic NAME --from-literal=KEY=VALUE"
	}
	kind, name := "generic", "NAME"
	rest := words[at+1:]
	if len(rest) > 0 && slices.Contains([]string{"generic", "docker-registry", "tls"}, rest[0]) {
		kind = rest[0]
		if rest = rest[1:]; len(rest) > 0 && plainNameExpr.MatchString(rest[0]) {
			name = rest[0]
		}
	}
	parts := []string{"kubectl", "create", "secret", kind, name}
	for i, word := range words {
		flag, value, joined := strings.Cut(word, "=")
		if !joined && i+1 < len(words) {
			value = words[i+1]
		}
		switch {
		case (flag == "-n" || flag == "--namespace") && plainNameExpr.MatchString(value):
			parts = append(parts, "-n", value)
		case flag == "--dry-run" && (value == "client" || value == "server"):
			parts = append(parts, word)
			if !joined {
				parts = append(parts, value)
			}
		case flag == "--from-literal":
			key, _, pair := strings.Cut(value, "=")
			if !pair || !keyExpr.MatchString(key) {
				key = "KEY"
			}
			parts = append(parts, "--from-literal="+key+"=VALUE")
		case slices.Contains(secretFlags, flag):
			parts = append(parts, flag+"=VALUE")
		}
	}
	return strings.Join(parts, " ")
}
