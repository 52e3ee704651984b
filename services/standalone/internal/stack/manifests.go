package stack

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/google/renameio/v2"
)

// auditKey is the file that signs the audit ledger. All replicas of the control plane sign with the same key.
const auditKey = "audit-signing.key"

// charted are the services of deploy/helm that read secrets.
var charted = []string{"assistant", "bus-bridge", "control-plane", "dashboard", "inference", "worker"}

var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$`)

// kubernetesSecret is a Secret of Kubernetes, as far as it is used here.
type kubernetesSecret struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Type       string            `json:"type"`
	Data       map[string][]byte `json:"data"`
}

// PrintManifests writes the secrets that WriteSecrets made in dir as a list of Kubernetes Secrets in JSON, one for each
// service of the chart, named <release>-<service>. It makes the key of the audit ledger on the first call.
func PrintManifests(dir, release string, out io.Writer) error {
	if !releaseName.MatchString(release) {
		return fmt.Errorf("%q is no name of a release: use up to 53 lower-case letters, digits and hyphens", release)
	}
	if _, err := os.Stat(filepath.Join(dir, "control-plane")); err != nil {
		return fmt.Errorf("there are no secrets in %s; make them with: stack secrets %s", dir, dir)
	}
	key, err := loadAuditKey(filepath.Join(dir, auditKey))
	if err != nil {
		return err
	}
	var secrets []kubernetesSecret
	for _, service := range charted {
		data, err := readFolder(filepath.Join(dir, service))
		if err != nil {
			return err
		}
		if service == "control-plane" {
			data[auditKey] = key
		}
		secrets = append(secrets, kubernetesSecret{
			APIVersion: "v1", Kind: "Secret", Type: "Opaque", Data: data,
			Metadata: map[string]string{"name": release + "-" + service},
		})
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": secrets})
}

// CopySecrets copies the files of the folder from, in which Kubernetes mounts a Secret, to the folder to. Mounted files
// belong to root and are readable for a group; the services refuse keys that more than one user can read.
func CopySecrets(from, to string) error {
	files, err := readFolder(from)
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := renameio.WriteFile(filepath.Join(to, name), content, 0o600, renameio.WithStaticPermissions(0o600)); err != nil {
			return fmt.Errorf("copy a secret: %w", err)
		}
	}
	return nil
}

// readFolder reads the files of dir by name. Names that begin with a dot are Kubernetes' own.
func readFolder(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no secrets", dir)
	}
	return files, nil
}

// loadAuditKey reads the key, PKCS #8 in PEM, and makes it first if there is none.
func loadAuditKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, err
	}
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	return key, renameio.WriteFile(path, key, 0o600, renameio.WithStaticPermissions(0o600))
}
