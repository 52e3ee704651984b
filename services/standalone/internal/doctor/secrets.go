package doctor

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/mlp-platform/platform/libs/trust"
	"github.com/mlp-platform/platform/services/standalone/internal/credentials"
)

const (
	// secretDue is the age at which a secret should be replaced, endSoon the time before a certificate's end at which
	// it should be renewed.
	secretDue = 365 * 24 * time.Hour
	endSoon   = 30 * 24 * time.Hour
	// maxPEM limits the files searched for certificates; a system's bundle of authorities, which changes with its
	// packages, has more than bundleSize of them.
	maxPEM     = 1 << 20
	bundleSize = 20
)

// checkSecrets reads every file that holds a secret, as a start does.
func (e *examination) checkSecrets() {
	file := e.path(credentials.File)
	_, err := credentials.Load(e.dir.Path)
	switch {
	case isAbsent(err) || !exists(file):
		e.notChecked("secrets", file, "it does not exist: a start makes it")
	case err != nil && isLoose(file):
		e.fail("secrets", file, "chmod 600 "+file, "%v", err)
	case err != nil:
		e.fail("secrets", file, "mv "+file+" "+file+".damaged && "+e.platform(), "%v", err)
	default:
		e.ok("secrets", file, "complete, readable by its owner alone")
	}
	for _, key := range e.Keys {
		err := key.Check(key.Path)
		switch {
		case !exists(key.Path):
			if exists(e.path("last-ready.json")) {
				e.fail("secrets", key.Path, e.restore(), "the %s is gone; a start would make another, which nobody trusts yet", key.Name)
			} else {
				e.notChecked("secrets", key.Path, "the %s does not exist: a start makes it", key.Name)
			}
		case err != nil && isLoose(key.Path):
			e.fail("secrets", key.Path, "chmod 600 "+key.Path, "the %s: %v", key.Name, err)
		case err != nil:
			e.fail("secrets", key.Path, e.restore(), "the %s: %v", key.Name, err)
		default:
			e.ok("secrets", key.Path, "the %s can be used", key.Name)
		}
	}
	if e.server.Data == 0 {
		return
	}
	password := e.path("postgres", "password")
	switch err := e.server.PasswordErr; {
	case err != nil && isLoose(password):
		e.fail("secrets", password, "chmod 600 "+password, "%v", err)
	case err != nil:
		e.fail("secrets", password, e.restore(), "%v", err)
	default:
		e.ok("secrets", password, "readable by its owner alone")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// isLoose reports whether others may use the file.
func isLoose(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&0o077 != 0
}

// dated are the secrets of credentials.json whose age matters: each start renews those of the stand-ins.
var dated = []struct{ member, name, variable string }{
	{"dashboard_jwt_secret", "key that signs the dashboard's sessions", "DASHBOARD_JWT_SECRET"},
	{"dashboard_sealing", "key that encrypts the dashboard's secrets", "DASHBOARD_SECRET_KEY"},
	{"dashboard_admin_password", "dashboard's password of admins", "DASHBOARD_ADMIN_PASSWORD"},
	{"dashboard_viewer_password", "dashboard's password of viewers", "DASHBOARD_VIEWER_PASSWORD"},
	{"control_plane_token", "control plane's token of a shell", ""}, {"ci_token", "control plane's token of CI", ""},
	{"operator_token", "control plane's token of operators", ""}, {"serving_token", "inference's token", ""},
	{"nats_token", "broker's token", ""}, {"bus_password", "message bus's password", ""},
	{"modelrepo_webhook_secret", "webhooks' secret", ""}, {"evidence_token", "evidence API's token", ""},
	{"assistant_admin", "assistant's key of admins", ""}, {"assistant_operator", "assistant's key of operators", ""},
	{"assistant_readonly", "assistant's key of readers", ""},
}

func (e *examination) checkAges() {
	file := e.path(credentials.File)
	made, err := credentials.Made(e.dir.Path)
	switch {
	case !exists(file):
		return // reported with the secrets
	case err != nil:
		e.notChecked("secret-ages", file, "%v", err)
	default:
		e.checkMemberAges(file, made)
	}
	files := slices.Clone(e.Keys)
	if e.server.Data != 0 {
		password := e.path("postgres", "password")
		files = append(files, File{Name: "database's password", Path: password,
			Renew: `P=$(openssl rand -hex 16) && echo "alter user platform password '$P'" | PGPASSWORD=$(cat ` + password + `) psql "host=` + e.path("postgres", "data") +
				` user=platform dbname=platform" && echo $P >` + password + ` && ` + e.platform("stop") + ` && ` + e.platform()})
	}
	for _, f := range files {
		info, err := os.Stat(f.Path)
		if err != nil {
			continue // reported with the secrets
		}
		e.checkAge("secret-age."+strings.ReplaceAll(f.Name, " ", "-"), f.Path, f.Name, info.ModTime(), f.Renew)
	}
}

func (e *examination) checkMemberAges(file string, made map[string]time.Time) {
	var unknown []string
	oldest := e.Now
	old := false
	for _, d := range dated {
		at, known := made[d.member]
		switch {
		case d.variable != "" && e.lookup(d.variable) != "":
			e.notChecked("secret-age."+d.member, d.variable, "the %s comes from this variable, which has no time", d.name)
		case !known:
			unknown = append(unknown, d.member)
		case e.Now.Sub(at) > secretDue:
			fix := e.restart("sed -i '/\"" + d.member + "\"/d' " + file)
			if d.member == "dashboard_sealing" {
				// Removed alone, it would make the stored secrets unreadable.
				fix = `export DASHBOARD_SECRET_KEY="$(openssl rand -base64 32),OLD_KEY" && ` + e.restart() + " && dashboard-bff rotate-secrets"
			}
			e.checkAge("secret-age."+d.member, file, d.name, at, fix)
			old = true
		case at.Before(oldest):
			oldest = at
		}
	}
	if len(unknown) > 0 {
		e.notChecked("secret-ages", file, "an earlier version made these and kept no times: %s", strings.Join(unknown, ", "))
	} else if !old {
		e.ok("secret-ages", file, "the oldest is %d days old", days(e.Now.Sub(oldest)))
	}
}

func (e *examination) checkAge(check, where, name string, at time.Time, fix string) {
	if age := e.Now.Sub(at); age > secretDue {
		e.warn(check, where, fix, "the %s is %d days old", name, days(age))
	} else {
		e.ok(check, where, "the %s is %d days old", name, days(age))
	}
}

// checkCertificates reads the certificates of every file that a variable names, those in the kubeconfig, and those of
// the containers of the same checkout.
func (e *examination) checkCertificates() {
	sources, seen := map[string][]byte{}, map[string]bool{}
	for _, kv := range e.Environ {
		name, value, _ := strings.Cut(kv, "=")
		for _, path := range append(filepath.SplitList(value), urlFiles(value)...) {
			if text := readSmall(path); strings.Contains(string(text), "-----BEGIN CERTIFICATE") {
				if !seen[path] { // one file may have many names
					sources[name+"="+path] = text
				}
				seen[path] = true
			} else if name == "KUBECONFIG" {
				for where, pem := range kubeconfigCertificates(text) {
					sources[name+"="+path+" "+where] = pem
				}
			}
		}
	}
	if e.dir.Exists {
		found, _ := filepath.Glob(e.path("compose", "*", "*.crt"))
		for _, path := range found {
			sources[path] = readSmall(path)
		}
	}
	if len(sources) == 0 {
		e.ok("certificates", "", "none: all ports are plain HTTP on loopback, and no variable names a certificate")
		return
	}
	wheres := make([]string, 0, len(sources))
	for where := range sources {
		wheres = append(wheres, where)
	}
	slices.Sort(wheres)
	for _, where := range wheres {
		e.checkCertificate(where, sources[where])
	}
}

func (e *examination) checkCertificate(where string, text []byte) {
	var first *x509.Certificate
	count := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		count++
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			e.fail("certificates", where, "openssl x509 -noout -text -in FILE", "certificate %d cannot be read: %v", count, err)
			return
		}
		if first == nil || c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	if first == nil {
		e.notChecked("certificates", where, "there is no certificate in it that can be read")
		return
	}
	if count > bundleSize {
		e.notChecked("certificates", where, "%d authorities: a bundle of the system, whose packages renew it", count)
		return
	}
	end := first.NotAfter
	detail := fmt.Sprintf("of %s, until %s", first.Subject, end.UTC().Format(time.RFC3339))
	fix := "openssl x509 -noout -issuer -dates -in " + where[strings.Index(where, "=")+1:] + " # and ask its issuer for a new one"
	if strings.HasPrefix(where, "KUBECONFIG=") {
		fix = "kubectl config view # and ask the cluster's administrator for a new one"
	}
	switch {
	case end.Before(e.Now):
		e.fail("certificates", where, fix, "has ended: %s", detail)
	case first.NotBefore.After(e.Now.Add(clockSlack)):
		e.fail("certificates", where, "timedatectl set-ntp true", "is not valid before %s", first.NotBefore.UTC().Format(time.RFC3339))
	case end.Sub(e.Now) < endSoon:
		e.warn("certificates", where, fix, "ends in %d days: %s", days(end.Sub(e.Now)), detail)
	default:
		e.ok("certificates", where, "%s", detail)
	}
}

// urlFiles are the files of certificates that a database URL names.
func urlFiles(value string) (files []string) {
	for _, parameter := range strings.FieldsFunc(value, func(r rune) bool { return r == '?' || r == '&' || r == ' ' }) {
		if name, file, ok := strings.Cut(parameter, "="); ok && (name == "sslcert" || name == "sslrootcert") {
			files = append(files, file)
		}
	}
	return files
}

// readSmall reads a regular file of at most maxPEM bytes; nil if path names none.
func readSmall(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxPEM {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return text
}

// kubeconfigCertificates returns the certificates that a kubeconfig contains, by their places in it.
func kubeconfigCertificates(text []byte) map[string][]byte {
	var config struct {
		Clusters []struct {
			Name    string
			Cluster struct {
				Data string `yaml:"certificate-authority-data"`
				File string `yaml:"certificate-authority"`
			}
		}
		Users []struct {
			Name string
			User struct {
				Data string `yaml:"client-certificate-data"`
				File string `yaml:"client-certificate"`
			}
		}
	}
	found := map[string][]byte{}
	if yaml.Unmarshal(text, &config) != nil {
		return found // the assistant reports it
	}
	add := func(where, data, file string) {
		if raw, err := base64.StdEncoding.DecodeString(data); err == nil && data != "" {
			found[where] = raw
		} else if raw := readSmall(file); raw != nil {
			found[where+" "+file] = raw
		}
	}
	for _, c := range config.Clusters {
		add("cluster "+c.Name, c.Cluster.Data, c.Cluster.File)
	}
	for _, u := range config.Users {
		add("user "+u.Name, u.User.Data, u.User.File)
	}
	return found
}

func (e *examination) checkSignOn() {
	path := e.lookup("PLATFORM_IAM_CONFIG")
	if path == "" {
		e.warn("sign-on", "PLATFORM_IAM_CONFIG", "export PLATFORM_IAM_CONFIG=FILE", "no identity provider is configured: everybody shares the passwords of the two roles")
		return
	}
	file, _, err := trust.Load(path, trust.Environment{LookupEnv: func(name string) (string, bool) { v := e.lookup(name); return v, v != "" }})
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			e.fail("sign-on", path, "${EDITOR:-vi} "+path, "%s", strings.TrimSpace(line))
		}
		return
	}
	e.ok("sign-on", path, "%d identity providers; whether they answer is not checked, which needs the network", len(file.Providers))
}
