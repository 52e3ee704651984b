package investigate

import (
	"strings"

	"github.com/mlp-platform/platform/services/assistant/internal/kubectl"
	"sigs.k8s.io/yaml"
)

// literalConfigMap rewrites kubectl create configmap NAME --from-literal=key=value as the equivalent manifest, which is
// proposed and shown. Any other line is returned unchanged.
func (w *work) literalConfigMap(line string) string {
	words, ok := kubectl.SplitWords(line)
	if !ok || len(words) < 4 || words[0] != "kubectl" || words[1] != "create" || words[2] != "configmap" && words[2] != "cm" {
		return line
	}
	name, namespace, dry, data := "", "", "", map[string]string{}
	for i := 3; i < len(words); i++ {
		word := words[i]
		value := func(flag string) (string, bool) {
			if v, ok := strings.CutPrefix(word, flag+"="); ok {
				return v, true
			}
			if word == flag && i+1 < len(words) {
				i++
				return words[i], true
			}
			return "", false
		}
		if v, ok := value("--from-literal"); ok {
			key, text, pair := strings.Cut(v, "=")
			if _, twice := data[key]; !pair || key == "" || twice {
				return line
			}
			data[key] = text
		} else if v, ok := value("-n"); ok {
			namespace = v
		} else if v, ok := value("--namespace"); ok {
			namespace = v
		} else if v, ok := value("--dry-run"); ok {
			dry = " --dry-run=" + v
		} else if strings.HasPrefix(word, "-") || name != "" {
			return line // the parser reports what it does not know
		} else {
			name = word
		}
	}
	if name == "" {
		return line
	}
	manifest, err := yaml.Marshal(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data})
	if err != nil {
		return line
	}
	mark := "EOF"
	for strings.Contains("\n"+string(manifest), "\n"+mark+"\n") {
		mark += "_"
	}
	in := ""
	if namespace != "" {
		in = " -n '" + strings.ReplaceAll(namespace, "'", "") + "'"
	}
	return "kubectl create" + in + dry + " -f - <<'" + mark + "'\n" + string(manifest) + mark
}
