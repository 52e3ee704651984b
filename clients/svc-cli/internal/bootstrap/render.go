package bootstrap

import (
	"embed"
	"strings"

	"github.com/mlp-platform/platform/libs/evidence/canon"
)

// Rendered is a planned file with its content.
type Rendered struct {
	Path                 string `json:"path"`
	Ownership            string `json:"ownership"`
	OverwritePolicy      string `json:"overwrite_policy"`
	RenderSource         string `json:"render_source"`
	ContentDigest        string `json:"content_digest"`
	SizeBytes            int    `json:"size_bytes"`
	SecretValuesAccessed bool   `json:"secret_values_accessed"`
	IntegrationAuthority bool   `json:"integration_authority"`
	Content              string `json:"content"`
}

//go:embed templates
var templates embed.FS

// renderFile fills a template. The ref and the branch hold no character that means anything
// in JSON or Markdown tables: both are checked before.
func renderFile(f File, ref, branch string) (Rendered, error) {
	name := strings.TrimPrefix(f.Path, configFolder)
	data, err := templates.ReadFile("templates/" + name)
	if err != nil {
		return Rendered{}, err
	}
	content := []byte(strings.NewReplacer("@REF@", ref, "@BRANCH@", branch).Replace(string(data)))
	if strings.HasSuffix(name, ".json") {
		v, err := canon.Parse(content)
		if err != nil {
			return Rendered{}, err
		}
		if content, err = canon.P(v); err != nil {
			return Rendered{}, err
		}
	}
	return Rendered{
		Path: f.Path, Ownership: f.Ownership, OverwritePolicy: f.OverwritePolicy, RenderSource: f.RenderSource,
		ContentDigest: canon.DigestBytes(content), SizeBytes: len(content), Content: string(content),
	}, nil
}
